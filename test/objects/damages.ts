// Ways in which one file of an object store can be damaged.
import { expect } from "vitest";
import { checksumOf } from "../../src/format/checksum.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import type { Disk } from "../../src/ports/disk.ts";

export type Damage = (disk: Disk, path: string) => Promise<void>;

export async function rewrite(disk: Disk, path: string, change: (bytes: Buffer) => Uint8Array): Promise<void> {
  const bytes = Buffer.from(await disk.readFile(path, 1_000_000));
  await disk.unlink(path);
  await disk.createFile(path, change(bytes), { sync: true });
}

/** Flips the lowest bit of the first byte of `text`. */
export const flip =
  (text: string): Damage =>
  async (disk, path) =>
    await rewrite(disk, path, (bytes) => {
      const at = bytes.indexOf(text);
      expect(at).toBeGreaterThanOrEqual(0);
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      return bytes;
    });

export const recordDamages: Readonly<Record<string, Damage>> = {
  "a flipped bit in its time": flip('"atMs"'),
  "a flipped bit in its id": flip('"id":"'),
  "a flipped bit in its kind": flip('"kind":"put"'),
  "a flipped bit in its checksum": flip('"crc"'),
  "no bytes": async (disk, path) => await rewrite(disk, path, () => new Uint8Array()),
  "its first half": async (disk, path) => await rewrite(disk, path, (bytes) => bytes.subarray(0, bytes.length / 2)),
  zeros: async (disk, path) => await rewrite(disk, path, (bytes) => bytes.fill(0)),
  garbage: async (disk, path) => await rewrite(disk, path, () => Buffer.from("\u0000\u0001garbage\n".repeat(99))),
  "a directory in its place": async (disk, path) => {
    await disk.unlink(path);
    await disk.mkdir(path);
  },
};

/** A record of the same kind, as a later release may write it. */
export const makeNewer: Damage = async (disk, path) =>
  await rewrite(disk, path, (bytes) => {
    const kind = /"kind":("[^"]*")/.exec(bytes.toString("utf8"))?.[1] ?? '"version"';
    const head = `{"kind":${kind},"format":99,"by":"9.9.9","body":{}`;
    return Buffer.from(`${head},"crc":"${checksumOf(head)}"}\n`);
  });

/** Every damage that any file may have; the last byte is flipped where no name is known. */
export const fileDamages: Readonly<Record<string, Damage>> = {
  "a flipped bit": async (disk, path) =>
    await rewrite(disk, path, (bytes) => {
      const at = Math.floor(bytes.length / 2);
      bytes[at] = (bytes[at] ?? 0) ^ 1;
      return bytes;
    }),
  "no bytes": recordDamages["no bytes"]!,
  "its first half": recordDamages["its first half"]!,
  "a directory in its place": recordDamages["a directory in its place"]!,
  "a newer format": makeNewer,
};

/** The disk of a user who may not read this file. */
export function withoutRight(disk: Disk, path: string): Disk {
  const refused = (name: string, given: unknown): boolean => given === path && ["open", "readFile"].includes(name);
  return new Proxy(disk, {
    get: (target, name: string) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...args: readonly unknown[]): unknown => {
        if (refused(name, args[0])) return Promise.reject(diskError("EACCES", name, path));
        return Reflect.apply(value, target, args);
      };
    },
  });
}
