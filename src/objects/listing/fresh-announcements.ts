// Announcements that no run has yet, as a listing and a merge read them.
import { findRecord } from "../../durable/publish/record-file.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { announcementKind, linesOf } from "./announcements.ts";
import { compareLines, type IndexLine } from "./index-line.ts";
import type { Manifest } from "./manifest.ts";
import { namesIn } from "./walk-keys.ts";

/** So many files are read at the same time. */
const readsAtOnce = 16;
/** So many announcements, and so many characters of keys, are merged at once. */
const someMax = 1024;
const someLength = 4 * 1024 * 1024;
/** So many are remembered from one listing to the next: a file never changes. */
const rememberedMax = 512;

export interface Announced {
  readonly names: readonly string[];
  /** Sorted. */
  readonly lines: readonly IndexLine[];
}

export class FreshAnnouncements {
  readonly #bucket: OpenBucket;
  #remembered = new Map<string, readonly IndexLine[]>();
  #last: Announced = { names: [], lines: [] };

  constructor(bucket: OpenBucket) {
    this.#bucket = bucket;
  }

  /** The names of those that the runs of this manifest do not have. */
  async names(state: Manifest): Promise<string[]> {
    const { place, layout } = this.#bucket;
    // Makes the client of a share ask for the directory anew.
    if (place.disk.volume.kind !== "local") await place.disk.canOpen(layout.entries);
    const known = new Set([...state.merged.map((name) => `new/${name}`), ...state.last, ...state.due]);
    return (await namesIn(place.disk, layout.entries)).filter((name) => !known.has(`new/${name}`));
  }

  /** Undefined when one was removed meanwhile. */
  async read(names: readonly string[]): Promise<Announced | undefined> {
    const last = this.#last;
    if (names.length === last.names.length && names.every((name, index) => name === last.names[index])) return last;
    const found = await this.#readFiles(names, Infinity);
    if (found === undefined) return undefined;
    this.#remembered = new Map([...found].slice(0, rememberedMax));
    const announced = announcedOf(found);
    if (names.length <= rememberedMax) this.#last = announced;
    return announced;
  }

  /** The same of as many as are merged at once. */
  async readSome(names: readonly string[]): Promise<Announced | undefined> {
    const found = await this.#readFiles(names.slice(0, someMax), someLength);
    return found && announcedOf(found);
  }

  async #readFiles(
    names: readonly string[],
    lengthMax: number,
  ): Promise<Map<string, readonly IndexLine[]> | undefined> {
    const found = new Map<string, readonly IndexLine[]>();
    let length = 0;
    for (let at = 0; at < names.length && length < lengthMax; at += readsAtOnce) {
      const some = names.slice(at, at + readsAtOnce);
      for (const [index, lines] of (await Promise.all(some.map((name) => this.#readFile(name)))).entries()) {
        if (lines === undefined) return undefined;
        found.set(some[index] ?? "", lines);
        for (const { key } of lines) length += key.length;
      }
    }
    return found;
  }

  async #readFile(name: string): Promise<readonly IndexLine[] | undefined> {
    const remembered = this.#remembered.get(name);
    if (remembered !== undefined) return remembered;
    const { place, layout } = this.#bucket;
    const found = await findRecord(place.disk, announcementKind, `${layout.entries}/${name}`);
    return found && linesOf(found);
  }
}

function announcedOf(found: ReadonlyMap<string, readonly IndexLine[]>): Announced {
  return { names: [...found.keys()], lines: [...found.values()].flat().sort(compareLines) };
}
