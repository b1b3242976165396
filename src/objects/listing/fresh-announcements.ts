// FreshAnnouncements reads the announcements that are in no run yet, for listings and merges.
import { listIfThere } from "../../durable/publish/directory.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { announcementKind, linesOf } from "./announcements.ts";
import { compareLines, type IndexLine } from "./index-line.ts";
import type { Manifest } from "./manifest.ts";

/** How many files are read in parallel. */
const readsAtOnce = 16;
/** Limits of one merge, in announcements and in characters of keys. */
const someMax = 1024;
const someLength = 4 * 1024 * 1024;
/** How many announcements are cached between listings. The files never change. */
const rememberedMax = 512;

export interface AnnouncedLife {
  readonly names: readonly string[];
  /** In sorted order. */
  readonly lines: readonly IndexLine[];
}

export class FreshAnnouncements {
  readonly #bucket: OpenBucket;
  #remembered = new Map<string, readonly IndexLine[]>();
  #last: AnnouncedLife = { names: [], lines: [] };

  constructor(bucket: OpenBucket) {
    this.#bucket = bucket;
  }

  /** Names of the announcements that the runs of this manifest do not contain. */
  async names(state: Manifest): Promise<string[]> {
    const { storage, layout } = this.#bucket;
    // Forces the client of a share to revalidate its cached directory.
    if (storage.disk.volume.kind !== "local") await storage.disk.canOpen(layout.entries);
    const known = new Set([...state.merged.map((name) => `new/${name}`), ...state.last, ...state.due]);
    return (await listIfThere(storage.disk, layout.entries)).filter((name) => !known.has(`new/${name}`));
  }

  /** Reads these announcements. Returns undefined if one was removed meanwhile. */
  async read(names: readonly string[]): Promise<AnnouncedLife | undefined> {
    const last = this.#last;
    if (names.length === last.names.length && names.every((name, index) => name === last.names[index])) return last;
    const found = await this.#readFiles(names, Infinity);
    if (found === undefined) return undefined;
    this.#remembered = new Map([...found].slice(0, rememberedMax));
    const announced = announcedOf(found);
    if (names.length <= rememberedMax) this.#last = announced;
    return announced;
  }

  /** Like `read`, but stops at the limits of one merge. */
  async readSome(names: readonly string[]): Promise<AnnouncedLife | undefined> {
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
    const { storage, layout } = this.#bucket;
    const found = await findRecord(storage.disk, announcementKind, `${layout.entries}/${name}`);
    return found && linesOf(found);
  }
}

function announcedOf(found: ReadonlyMap<string, readonly IndexLine[]>): AnnouncedLife {
  return { names: [...found.keys()], lines: [...found.values()].flat().sort(compareLines) };
}
