// The disks on which one and the same guarantee is tested: a real directory, memory, and the
// simulated server.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Staging } from "../../src/durable/publish/staging.ts";
import type { RecordKind } from "../../src/format/record.ts";
import { objectOf, textOf } from "../../src/format/decoding.ts";
import { createMemoryDisk } from "../../src/ports/memory/disk.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { openNodeDisk } from "../../src/ports/node/disk/disk.ts";
import { nodeRandom } from "../../src/ports/node/random.ts";
import { makeScratch } from "./scratch.ts";
import { World, nfs } from "./world.ts";

export interface Place {
  readonly staging: Staging;
  /** Where temp files are made. */
  readonly temp: string;
  /** Empty; for the files of the test. */
  readonly directory: string;
}

export const places: readonly [name: string, make: () => Promise<Place>][] = [
  ["the real disk", makeRealPlace],
  [
    "the memory disk",
    async () =>
      placeOn(
        createMemoryDisk(() => 1_700_000_000_000),
        "/place",
      ),
  ],
  ["the simulated disk", async () => placeOn(new World().ports("ada").disk, "/place")],
  ["the simulated network mount", async () => placeOn(new World({ volume: nfs }).ports("ada").disk, "/place")],
];

export async function makeRealPlace(): Promise<Place> {
  const root = makeScratch();
  for (const name of ["temp", "files"]) mkdirSync(join(root, name));
  return placeAt(await openNodeDisk(root), root);
}

async function placeOn(disk: Disk, root: string): Promise<Place> {
  for (const path of [root, `${root}/temp`, `${root}/files`]) await disk.mkdir(path);
  return placeAt(disk, root);
}

function placeAt(disk: Disk, root: string): Place {
  const temp = `${root}/temp`;
  return { staging: { disk, random: nodeRandom, directory: async () => temp }, temp, directory: `${root}/files` };
}

/** The same place with a disk on which some operations are different. */
export function withDisk(place: Place, change: (disk: Disk) => Partial<Disk>): Place {
  return { ...place, staging: { ...place.staging, disk: changedDisk(place.staging.disk, change) } };
}

export function changedDisk(disk: Disk, change: (disk: Disk) => Partial<Disk>): Disk {
  const changes = change(disk);
  return new Proxy(disk, {
    get(target, key): unknown {
      const source = key in changes ? changes : target;
      const value: unknown = Reflect.get(source, key);
      return typeof value === "function" ? value.bind(source) : value;
    },
  });
}

export async function readText(disk: Disk, path: string): Promise<string> {
  return Buffer.from(await disk.readFile(path, 10_000_000)).toString();
}

/** The smallest body of a record. */
export const noteKind: RecordKind<{ readonly text: string }> = {
  kind: "note",
  decode: (body) => ({ text: textOf(objectOf(body).text) }),
};
