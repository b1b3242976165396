// The real OS lock: waits in the kernel on a local volume, asks again and again on any other.
import type { Clock } from "../clock.ts";
import type { Volume } from "../disk.ts";
import type { OsLock } from "../os-lock.ts";
import type { Random } from "../random.ts";
import { openKernelLock } from "./kernel-lock.ts";
import { existingLockFileFlags, loadNativeLock, lockFileFlags, type NativeModule } from "./native-lock.ts";
import { callsFor } from "./share-calls.ts";
import { openPolledLock } from "./polled-lock.ts";

/** `load` brings the native module; tests hand in one that does not load. */
export function createNodeOsLock(
  volume: Volume,
  clock: Clock,
  random: Random,
  load?: () => Promise<NativeModule>,
): OsLock {
  return {
    async open(path, { create = true } = {}) {
      const native = await loadNativeLock(path, load);
      const flags = create ? lockFileFlags : existingLockFileFlags;
      return volume.kind === "local"
        ? openKernelLock(path, native, flags)
        : openPolledLock(path, native, { calls: callsFor(volume), clock, random, flags });
    },
  };
}
