// The real OS lock: its descriptor is kept on a local volume, and lives for one acquisition on any
// other.
import type { Clock } from "../../clock.ts";
import type { Volume } from "../../disk.ts";
import type { OsLock } from "../../os-lock.ts";
import type { Random } from "../../random.ts";
import type { Watch } from "../../watch.ts";
import { blockingCalls } from "../disk/file-calls.ts";
import { openLockFile } from "./lock-file.ts";
import { loadNativeLock, type NativeModule } from "./native-lock.ts";
import { callsFor } from "../disk/share-calls.ts";

/** `load` brings the native module; tests hand in one that does not load. */
export function createNodeOsLock(
  volume: Volume,
  parts: { readonly clock: Clock; readonly random: Random; readonly watch: Watch },
  load?: () => Promise<NativeModule>,
): OsLock {
  const isLocal = volume.kind === "local";
  const calls = isLocal ? blockingCalls : callsFor(volume);
  return {
    open: async (path, { note, make } = {}) =>
      await openLockFile(path, { ...parts, native: await loadNativeLock(path, load), calls, isLocal, note, make }),
  };
}
