// A real disk that dawdles: now and then a call waits before it is made, so that windows of
// microseconds stand open for others to fall through.
import { setTimeout as sleep } from "node:timers/promises";
import type { Disk } from "../../ports/disk.ts";
import type { Chance } from "./chance.ts";

export interface DawdlingOptions {
  readonly chance: Chance;
  /** How likely a call is to wait. */
  readonly probability: number;
  /** Most waits are much shorter, as they are in life: half of them take a sixteenth of this. */
  readonly msMax: number;
}

/**
 * How much more often those calls wait that decide something: what was looked at before may be
 * different by then.
 */
const decisive = 4;

/** Does what `disk` does, only later. Every delay is one that a busy machine could have made. */
export function dawdlingDisk(disk: Disk, { chance, probability, msMax }: DawdlingOptions): Disk {
  const late =
    <Args extends unknown[], Result>(call: (...args: Args) => Promise<Result>, weight = 1) =>
    async (...args: Args): Promise<Result> => {
      if (chance.happens(weight * probability)) await sleep(msMax * chance.fraction() ** 4);
      return await call(...args);
    };
  return {
    volume: disk.volume,
    createFile: late((path, bytes, options) => disk.createFile(path, bytes, options)),
    readFile: late((path, bytesMax) => disk.readFile(path, bytesMax)),
    canOpen: late((path) => disk.canOpen(path)),
    open: late((path, mode, options) => disk.open(path, mode, options)),
    link: late((from, to) => disk.link(from, to), decisive),
    rename: late((from, to) => disk.rename(from, to), decisive),
    unlink: late((path) => disk.unlink(path)),
    mkdir: late((path) => disk.mkdir(path)),
    rmdir: late((path) => disk.rmdir(path), decisive),
    list: late((path) => disk.list(path)),
    listSome: late((path, count) => disk.listSome(path, count)),
    stat: late((path) => disk.stat(path)),
    findStat: late((path) => disk.findStat(path)),
    look: late((path) => disk.look(path)),
    realPath: late((path) => disk.realPath(path)),
    hasLink: late((root, path) => disk.hasLink(root, path)),
    readLink: late((path) => disk.readLink(path)),
    syncDirectory: late((path) => disk.syncDirectory(path)),
  };
}
