// The real OS lock. It keeps its descriptor on a local volume; elsewhere a descriptor lives for one
// acquisition.
import type { Clock } from "../../clock.ts";
import type { Volume } from "../../disk.ts";
import type { OsLock } from "../../os-lock.ts";
import type { Random } from "../../random.ts";
import type { Watch } from "../../watch.ts";
import { openLockFile } from "./lock-file.ts";
import { loadNativeLock, type NativeModule } from "./native-lock.ts";
import { callsFor } from "../disk/volume-calls.ts";

/** `load` loads the native module; tests pass one that fails to load. */
export function createNodeOsLock(
  volume: Volume,
  ports: { readonly clock: Clock; readonly random: Random; readonly watch: Watch },
  load?: () => Promise<NativeModule>,
): OsLock {
  const isLocal = volume.kind === "local";
  const calls = callsFor(volume);
  return {
    open: async (path, { note, make } = {}) =>
      await openLockFile(path, { ...ports, native: await loadNativeLock(path, load), calls, isLocal, note, make }),
  };
}
