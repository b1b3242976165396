// A real disk that delays some calls, so that windows of microseconds stay open long enough for other processes to hit
// them.
import { setTimeout as sleep } from "node:timers/promises";
import type { Disk } from "../../src/ports/disk.ts";
import type { Chance } from "./chance.ts";

export interface DawdlingOptions {
  readonly chance: Chance;
  /** The probability that a call waits. */
  readonly probability: number;
  /** The longest wait. Most waits are much shorter, as in reality: half of them take at most a sixteenth of this. */
  readonly msMax: number;
}

/** Calls that decide something wait this many times more often: an earlier check may be out of date by then. */
const decisive = 4;

/** Behaves like `disk`, only later. Every delay could also happen on a busy machine. */
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
