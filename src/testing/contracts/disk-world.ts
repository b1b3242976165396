// What a check of the disk contract has at hand.
import assert from "node:assert/strict";
import { isHoldfastError } from "../../errors.ts";
import { errnoOf } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";

export interface DiskSite {
  readonly disk: Disk;
  /** Exists and is empty. */
  readonly root: string;
  /** Called after the check. */
  readonly end?: () => Promise<void>;
}

export interface DiskWorld extends DiskSite {
  readonly at: (...names: readonly string[]) => string;
  readonly create: (path: string, text: string) => Promise<void>;
  readonly read: (path: string) => Promise<string>;
}

export function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

/** The errno that the operation fails with. */
export async function failure(operation: Promise<unknown>): Promise<string> {
  const error: unknown = await operation.then(
    () => "no error",
    (reason: unknown) => reason,
  );
  assert.ok(isHoldfastError(error), String(error));
  return errnoOf(error) ?? "no errno";
}
