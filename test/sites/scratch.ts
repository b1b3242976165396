// Temporary directories for tests, and a way to lose root's permissions in them.
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A new directory that every user can enter; removed when the running test ends. */
export function makeScratch(): string {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-test-"));
  chmodSync(directory, 0o755);
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/**
 * Root may do everything, so a refusal can only be seen as another user. Without root it runs as
 * the current user.
 */
export async function asOrdinaryUser<T>(action: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return action();
  process.seteuid?.(65534);
  try {
    return await action();
  } finally {
    process.seteuid?.(0);
  }
}
