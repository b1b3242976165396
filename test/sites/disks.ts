// A staging directory and an empty one on every site: for suites that need no more than a disk.
import type { Staging } from "../../src/durable/publish/staging.ts";
import type { RecordKind } from "../../src/format/record.ts";
import { objectOf, textOf } from "../../src/format/decoding.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { nodeRandom } from "../../src/ports/node/random.ts";
import { makeRealSite, sites, type Site } from "./sites.ts";

export interface Place {
  readonly staging: Staging;
  /** Where temp files are made. */
  readonly temp: string;
  /** Empty; for the files of the test. */
  readonly directory: string;
}

export const places: readonly [name: string, make: () => Promise<Place>][] = sites.map(([name, make]) => [
  name,
  async () => await placeOn(await make()),
]);

export async function makeRealPlace(): Promise<Place> {
  return await placeOn(await makeRealSite());
}

async function placeOn({ directory, openPorts }: Site): Promise<Place> {
  const { disk } = await openPorts();
  for (const name of ["temp", "files"]) await disk.mkdir(`${directory}/${name}`);
  return placeAt(disk, directory);
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
