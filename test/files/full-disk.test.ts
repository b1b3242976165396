// Removals and moves on a disk without room: they take what they need from a reserve, and writes do not.
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { openFiles, type FileTree } from "../../src/files/index.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { until } from "../waiting.ts";
import { fill, fillNames, mountSmallDisk } from "../durable/small-disk.ts";
import { makeRealSite, makeSimulatedSite } from "../sites/sites.ts";
import { codeOf } from "./file-sites.ts";
import { indexedOn } from "./index/indexed-sites.ts";

const makers = new Set<string | symbol>(["createFile", "mkdir", "link"]);
/** So many names have room when a file of the reserve goes. */
const namesPerFile = 10;

/** A disk with room for so many names. */
function limited(disk: Disk, room: { left: number }): Disk {
  return new Proxy(disk, {
    get: (target, name) => {
      if (makers.has(name) && room.left <= 0)
        return async (path: string) => {
          throw diskError("ENOSPC", String(name), path);
        };
      if (makers.has(name)) room.left--;
      if (name === "unlink")
        return async (path: string) => {
          await target.unlink(path);
          room.left += /\/reserve\/\d/.test(path) ? namesPerFile : 1;
        };
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

it.each([
  ["real", makeRealSite],
  ["simulated", makeSimulatedSite],
])("a removal and a move on a full %s disk are done, and a write is not", async (_, make) => {
  const site = await indexedOn(make);
  const room = { left: Infinity };
  const files = await site.open({ work: false }, (ports) => ({ ...ports, disk: limited(ports.disk, room) }));
  for (const name of ["a", "b", "c"]) await files.write(`${name}.md`, name);
  const working = await site.open();
  await working.settled();
  await working.close();
  expect(await site.disk.list(`${site.state}/reserve`)).not.toEqual([]);
  room.left = 0;
  expect(await codeOf(files.write("d.md", "d"))).toBe("DISK_FULL");
  await files.remove("a.md");
  room.left = 0;
  await files.move("b.md", "moved.md");
  expect(await files.stat("a.md")).toBeUndefined();
  expect(await files.readText("moved.md")).toBe("b");
});

async function open(root: string): Promise<FileTree> {
  const files = await openFiles(root);
  onTestFinished(() => files.close());
  return files;
}

it("on a file system without a free block a removal works, also by a process that opens the tree then", async (context) => {
  const mount = mountSmallDisk(context, "size=4m");
  const root = join(mount, "tree");
  const [first, second] = [join(mount, "first"), join(mount, "second")];
  for (const directory of [first, second]) mkdirSync(directory);
  const files = await open(root);
  for (const name of ["a", "b", "c"]) await files.write(`d/${name}.md`, `wolf ${name}`);
  await files.write("large.bin", Buffer.alloc(300_000, 1));
  await files.settled();
  await until(() => readdirSync(join(root, ".holdfast/files/reserve")).length === 48);
  fill(first);
  expect(await codeOf(files.write("e.md", "e".repeat(100_000)))).toBe("DISK_FULL");
  await files.remove("d/a.md");
  await files.close();
  fill(second);
  const next = await open(root);
  await next.move("d/b.md", "d/moved.md");
  await next.remove("large.bin");
  await next.remove("d/c.md");
  expect(["a", "c"].filter((name) => existsSync(join(root, `d/${name}.md`)))).toEqual([]);
  await next.write("e.md", "there is room again");
  await next.settled();
  expect((await next.search("wolf")).map(({ path }) => path)).toEqual(["d/moved.md"]);
});

it("on a file system without a free inode a removal works, also by a process that opens the tree then", async (context) => {
  const mount = mountSmallDisk(context, "size=20m,nr_inodes=400");
  const root = join(mount, "tree");
  const [first, second] = [join(mount, "first"), join(mount, "second")];
  for (const directory of [first, second]) mkdirSync(directory);
  const files = await open(root);
  for (const name of ["a", "b", "c"]) await files.write(`d/${name}.md`, `wolf ${name}`);
  await files.settled();
  await until(() => readdirSync(join(root, ".holdfast/files/reserve")).length === 48);
  fillNames(first);
  expect(await codeOf(files.write("e.md", "e"))).toBe("DISK_FULL");
  await files.remove("d/a.md");
  await files.close();
  fillNames(second);
  const next = await open(root);
  await next.remove("d");
  expect(existsSync(join(root, "d"))).toBe(false);
});
