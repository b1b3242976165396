// The world of one check of the disk contract.
import assert from "node:assert/strict";
import { isHoldfastError } from "../../errors.ts";
import { errnoOf } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";

/** A disk to check. */
export interface DiskSite {
  /** The disk. */
  readonly disk: Disk;
  /** An existing, empty directory. */
  readonly root: string;
  /** Called after the check, to clean up. */
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

/** Returns the errno with which the operation fails. */
export async function failure(operation: Promise<unknown>): Promise<string> {
  const error: unknown = await operation.then(
    () => "no error",
    (reason: unknown) => reason,
  );
  assert.ok(isHoldfastError(error), String(error));
  return errnoOf(error) ?? "no errno";
}
