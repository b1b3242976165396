// Moves unreadable records aside. Derived data starts over and never blocks the tree; a numbered
// record is replaced by another one.
import type { Ground } from "../../durable/liveness/ground.ts";
import { putIfAbsent, replace } from "../../durable/publish/publish.ts";
import type { Staging } from "../../durable/publish/staging.ts";
import { isHoldfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import { linkAside, moveAside } from "../../part/aside.ts";
import { hasErrno } from "../../ports/disk-error.ts";

/** True if this one record is unreadable, and others can be read. */
export function isDamagedRecord(error: unknown): boolean {
  return isHoldfastError(error, "CORRUPT") || hasErrno(error, "EISDIR", "ENXIO", "ELOOP");
}

/** Returns the result of `open`. If it finds damage, `path` is moved into `aside/`, and `open` is called again. */
export async function resetIfDamaged<T>(
  { ground, layout }: { readonly ground: Ground; readonly layout: { readonly directory: string } },
  path: string,
  open: () => Promise<T>,
): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (!isDamagedRecord(error)) throw error;
    ground.ports.host.warn(`${path} cannot be read, so it is moved aside and starts over. ${String(error)}`);
  }
  await moveAside(asideOf(ground.staging, layout.directory), path);
  return await open();
}

/**
 * Replaces a damaged or missing record in one step: a free number would be reused. The damaged one
 * is kept in `aside/` of `directory`.
 */
export async function replaceRecord(
  staging: Staging,
  directory: string,
  path: string,
  record: Uint8Array,
): Promise<void> {
  const aside = asideOf(staging, directory);
  const kind = (await staging.disk.findStat(path))?.kind;
  if (kind === "file") {
    await linkAside(aside, path);
    return await replace(staging, path, record);
  }
  // A rename cannot replace what another program put there.
  if (kind !== undefined) await moveAside(aside, path);
  await putIfAbsent(staging, path, record);
}

function asideOf({ disk, random }: Staging, directory: string): Parameters<typeof moveAside>[0] {
  return { disk, directory, newId: () => randomName(random.bytes(16)) };
}
