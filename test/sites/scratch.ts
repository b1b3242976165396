// Temporary directories for tests, what is open in them, and a way to lose root's permissions.
import { chmodSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A new directory that every user can enter, as Holdfast writes its path; removed when the running test ends. */
export function makeScratch(): string {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-test-"));
  chmodSync(directory, 0o755);
  onTestFinished(() => rmSync(directory, { recursive: true, force: true, maxRetries: 10 }));
  return asHoldfastWrites(directory);
}

/** Holdfast separates names by `/` on Windows too. */
export function asHoldfastWrites(path: string): string {
  return process.platform === "win32" ? path.replaceAll("\\", "/") : path;
}

/**
 * What this process has open at and below a path. Linux only: empty elsewhere. Descriptors of other
 * places are left out: test files share a process, and what one of them has begun may end later.
 */
export function openFilesBelow(path: string): string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc/self/fd").flatMap((descriptor) => {
    try {
      const file = readlinkSync(`/proc/self/fd/${descriptor}`);
      return file === path || file.startsWith(`${path}/`) ? [file] : [];
    } catch {
      // It was the descriptor of this very listing.
      return [];
    }
  });
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
