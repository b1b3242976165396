// The capabilities of a store's file system, as far as they are known without a test that writes.
import type { Ports } from "../ports/ports.ts";
import { isThere } from "../durable/publish/directory.ts";
import { StoreLayout } from "../durable/store/store-record.ts";
import { checkLocation } from "./checks/location.ts";
import { checkMountOptions } from "./checks/mount-options.ts";

/** The capabilities of a store's file system, found when it was opened. `doctor` tests more, and takes longer. */
export interface Capabilities {
  /** True if other machines may use the store too, or if that is unknown. */
  readonly network: boolean;
  /** True if hard links work. Always true for an open store: without them it is refused. */
  readonly hardLinks: boolean;
  /** True if processes exclude each other by OS locks, which are freed as soon as a process is killed. */
  readonly osLocks: boolean;
  /** True if names can be made durable. Always true for an open store. */
  readonly directorySync: boolean;
  /** True if changes wake waiting processes. If false, they poll. */
  readonly watch: boolean;
  /** True if `A` and `a` are two files. */
  readonly caseSensitive: boolean;
  /** For people: each limitation, its consequence, and a remedy. */
  readonly warnings: readonly string[];
}

export interface OpenFindings {
  /** The directory of the store. */
  readonly directory: string;
  /** True if this process could lock its own heartbeat file. */
  readonly hasOsLock: boolean;
  readonly isWritable: boolean;
}

/** For an open store: without hard links and directory sync it would have been refused. */
export async function findCapabilities(
  { disk }: Pick<Ports, "disk">,
  { directory, hasOsLock, isWritable }: OpenFindings,
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
    // On a share an OS lock can be lost without notice, so nothing relies on it there.
    osLocks: isLocal && hasOsLock,
    directorySync: true,
    watch: isLocal,
    caseSensitive: !(await isThere(disk, upper)),
    warnings: isWritable ? risks : [unwritable, ...risks],
  };
}
