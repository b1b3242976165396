// A real disk that names the steps of a protocol as they happen, so that a process can be ended or stopped right before
// or after each of them.
import type { Disk } from "../../src/ports/disk.ts";

/** A change of names, with one or two paths. */
export interface DiskChange {
  readonly operation: "createFile" | "link" | "rename" | "unlink" | "mkdir" | "rmdir";
  readonly path: string;
  /** The new path of a link or a rename. */
  readonly target?: string;
  /**
   * The content of a new file. A record is staged under a random name, so only its content shows what its link will
   * do.
   */
  readonly bytes?: Uint8Array;
}

/** Returns the name of the step that a change makes, or undefined if it is not a step of the protocol. */
export type StepNamer = (change: DiskChange) => string | undefined;

/**
 * Behaves like `disk`, and calls `at` with "before <step>" and "after <step>". The disk continues when `at` resolves.
 * A failed step has no "after".
 */
export function crashPointDisk(
  disk: Disk,
  stepOf: StepNamer,
  at: (point: string, change: DiskChange) => Promise<void>,
): Disk {
  const told = async (change: DiskChange, make: () => Promise<void>): Promise<void> => {
    const step = stepOf(change);
    if (step === undefined) return await make();
    await at(`before ${step}`, change);
    await make();
    await at(`after ${step}`, change);
  };
  return {
    volume: disk.volume,
    createFile: (path, bytes, options) =>
      told({ operation: "createFile", path, bytes }, () => disk.createFile(path, bytes, options)),
    readFile: (path, bytesMax) => disk.readFile(path, bytesMax),
    canOpen: (path) => disk.canOpen(path),
    open: (path, mode, options) => disk.open(path, mode, options),
    link: (path, target) => told({ operation: "link", path, target }, () => disk.link(path, target)),
    rename: (path, target) => told({ operation: "rename", path, target }, () => disk.rename(path, target)),
    unlink: (path) => told({ operation: "unlink", path }, () => disk.unlink(path)),
    mkdir: (path) => told({ operation: "mkdir", path }, () => disk.mkdir(path)),
    rmdir: (path) => told({ operation: "rmdir", path }, () => disk.rmdir(path)),
    list: (path) => disk.list(path),
    listSome: (path, count) => disk.listSome(path, count),
    stat: (path) => disk.stat(path),
    findStat: (path) => disk.findStat(path),
    look: (path) => disk.look(path),
    realPath: (path) => disk.realPath(path),
    hasLink: (root, path) => disk.hasLink(root, path),
    readLink: (path) => disk.readLink(path),
    syncDirectory: (path) => disk.syncDirectory(path),
  };
}
