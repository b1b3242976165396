// What a store can be trusted with, as far as it is known without a test that writes.
import type { Ports } from "../ports/ports.ts";
import { isThere, StoreLayout } from "../durable/store/store-record.ts";
import { checkLocation } from "./checks/location.ts";
import { checkMountOptions } from "./checks/mount-options.ts";

/**
 * What a store can be trusted with, found when it was opened. `doctor` tests more, and takes
 * longer.
 */
export interface Capabilities {
  /** Other machines may use the store too, or it is not known that they cannot. */
  readonly network: boolean;
  readonly hardLinks: boolean;
  /**
   * Processes exclude each other by locks of the operating system, which a killed process gives up
   * at once.
   */
  readonly osLocks: boolean;
  readonly directorySync: boolean;
  /** A process that waits is woken by a change; otherwise it looks again and again. */
  readonly watch: boolean;
  /** `A` and `a` are two files. */
  readonly caseSensitive: boolean;
  /** For people: what holds less than it seems to, what that means, and what helps. */
  readonly warnings: readonly string[];
}

export interface FoundAtOpen {
  /** Of the store. */
  readonly directory: string;
  /** Whether this process could lock its own heartbeat file. */
  readonly hasOsLock: boolean;
  readonly isWritable: boolean;
}

/**
 * Of a store that is there: making one takes hard links and a sync of its directory, and is refused
 * without.
 */
export async function findCapabilities(
  { disk }: Pick<Ports, "disk">,
  { directory, hasOsLock, isWritable }: FoundAtOpen,
): Promise<Capabilities> {
  const { volume } = disk;
  const isLocal = volume.kind === "local";
  const { record } = new StoreLayout(directory);
  const upper = `${directory}/${record.slice(directory.length + 1).toUpperCase()}`;
  const risks = [...(volume.kind === "network" ? [] : [checkLocation(volume)]), ...checkMountOptions(volume)]
    .filter(({ verdict }) => verdict !== "good")
    .map(({ finding, meaning, remedy = "" }) => `${finding} ${meaning} ${remedy}`.trimEnd());
  const unwritable = "Nothing can be written here: the store is open for reading. Give this user the right to write.";
  return {
    network: !isLocal,
    hardLinks: true,
    // On a share such a lock can be lost without a word, so nothing rests on it there.
    osLocks: isLocal && hasOsLock,
    directorySync: true,
    watch: isLocal,
    caseSensitive: !(await isThere(disk, upper)),
    warnings: isWritable ? risks : [unwritable, ...risks],
  };
}
