import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path/posix";
import { describe, expect, it } from "vitest";
import {
  ensureDirectory,
  removeDirectory,
  removeTree,
  unlinkUnlessForeign,
  unlinkIfThere,
} from "../../src/durable/publish/directory.ts";
import { openNodeDisk } from "../../src/ports/node/disk/disk.ts";
import { asOrdinaryUser, makeScratch } from "../sites/scratch.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import { changedDisk, places } from "../sites/disks.ts";
import { World } from "../sites/world.ts";

describe.each(places)("a directory on %s", (_, make) => {
  it("is made with all that is missing above it, also by many at once, and again", async () => {
    const { staging, directory } = await make();
    const path = `${directory}/a/b/c`;
    await Promise.all(Array.from({ length: 5 }, () => ensureDirectory(staging.disk, path)));
    await ensureDirectory(staging.disk, path);
    expect((await staging.disk.stat(path)).kind).toBe("directory");
  });

  it.each(["a", "a/b", "a/b/c"])("is not made where %s is a file, which is named", async (file) => {
    const { staging, directory } = await make();
    const path = `${directory}/a/b/c`;
    const above = `${directory}/${file}`;
    if (file !== "a") await ensureDirectory(staging.disk, above.slice(0, above.lastIndexOf("/")));
    await staging.disk.createFile(above, Buffer.from("x"), { sync: false });
    await expect(ensureDirectory(staging.disk, path)).rejects.toMatchObject({
      code: "IO_ERROR",
      errno: "ENOTDIR",
      path: expect.stringContaining(above) as string,
      message: expect.stringContaining("move it away") as string,
    });
  });

  it("is removed with the files in it, by many at once", async () => {
    const { staging, directory } = await make();
    const { disk } = staging;
    const path = `${directory}/a`;
    await disk.mkdir(path);
    for (let index = 0; index < 10; index++)
      await disk.createFile(`${path}/${index}`, Buffer.from("x"), { sync: false });
    expect(await Promise.all([1, 2, 3].map(() => removeDirectory(disk, path)))).toContain(true);
    expect(await disk.list(directory)).toEqual([]);
    expect(await removeDirectory(disk, path)).toBe(true);
  });

  it("is left, and no error, when there is something foreign in it", async () => {
    const { staging, directory } = await make();
    const { disk } = staging;
    const path = `${directory}/a`;
    await disk.mkdir(path);
    await disk.mkdir(`${path}/sub`);
    expect(await removeDirectory(disk, path)).toBe(false);
    await disk.createFile(`${directory}/file`, Buffer.from("x"), { sync: false });
    expect(await removeDirectory(disk, `${directory}/file`)).toBe(false);
    expect((await disk.list(directory)).sort()).toEqual(["a", "file"]);
  });
});

describe("a directory on the real disk", () => {
  it("is not made behind a symbolic link that leads nowhere, which is named, and nothing hangs", async () => {
    const root = makeScratch();
    const disk = await openNodeDisk(root);
    const link = join(root, "share");
    symlinkSync(join(root, "unmounted"), link);
    for (const path of [link, join(link, "ground"), join(link, "ground", "holders")])
      await expect(ensureDirectory(disk, path)).rejects.toMatchObject({
        code: "IO_ERROR",
        errno: "ENOENT",
        path: link,
      });
    expect(existsSync(join(root, "unmounted"))).toBe(false);
  });

  it("is made behind a symbolic link that leads somewhere", async () => {
    const root = makeScratch();
    const disk = await openNodeDisk(root);
    mkdirSync(join(root, "mounted"));
    symlinkSync(join(root, "mounted"), join(root, "share"));
    await ensureDirectory(disk, join(root, "share", "ground"));
    expect(existsSync(join(root, "mounted", "ground"))).toBe(true);
    await ensureDirectory(disk, join(root, "share"));
  });

  it("is not made behind links in a circle", async () => {
    const root = makeScratch();
    const disk = await openNodeDisk(root);
    symlinkSync(join(root, "b"), join(root, "a"));
    symlinkSync(join(root, "a"), join(root, "b"));
    await expect(ensureDirectory(disk, join(root, "a", "x"))).rejects.toMatchObject({
      code: "INVALID_PATH",
      errno: "ELOOP",
    });
  });

  it("that cannot be removed because it is in use is left for the next time", async () => {
    const world = new World({ quirks: { busyWhileOpen: true } });
    const { disk } = world.ports("ada");
    await disk.mkdir("/a");
    await disk.createFile("/a/x", Buffer.from("x"), { sync: false });
    const file = await disk.open("/a/x", "read");
    expect(await removeDirectory(disk, "/a")).toBe(false);
    await file.close();
    expect(await removeDirectory(disk, "/a")).toBe(true);
  });
});

it("a file that is in use stops no sweep, and goes with the next one", async () => {
  const { disk } = new World({ quirks: { busyWhileOpen: true } }).ports("ada");
  await disk.createFile("/beat", Buffer.from("x"), { sync: false });
  const file = await disk.open("/beat", "read");
  await unlinkUnlessForeign(disk, "/beat");
  expect(await disk.list("/")).toContain("beat");
  await file.close();
  await unlinkUnlessForeign(disk, "/beat");
  expect(await disk.list("/")).not.toContain("beat");
});

describe("a symbolic link that leads out of what is removed", () => {
  /**
   * A foreign directory with a file that this test's ordinary user may remove, and a place beside
   * it for what is to be removed.
   */
  function makeStranger(): { readonly root: string; readonly stranger: string } {
    const root = makeScratch();
    const stranger = join(root, "stranger");
    mkdirSync(stranger);
    writeFileSync(join(stranger, "book"), "not yours");
    giveAway(root, stranger);
    return { root, stranger };
  }

  it("is unlinked with the tree that it lies in, and nothing behind it is touched", async () => {
    const { root, stranger } = makeStranger();
    mkdirSync(join(root, "tree", "below"), { recursive: true });
    symlinkSync(stranger, join(root, "tree", "below", "link"));
    symlinkSync(join(root, "nowhere"), join(root, "tree", "below", "dangling"));
    await removeTree(await openNodeDisk(root), join(root, "tree"));
    expect(existsSync(join(root, "tree"))).toBe(false);
    expect(readdirSync(stranger)).toEqual(["book"]);
  });

  it("stays where nothing may be removed, and what it leads to stays too", async () => {
    const { root, stranger } = makeStranger();
    const closed = join(root, "tree", "closed");
    mkdirSync(closed, { recursive: true });
    symlinkSync(stranger, join(closed, "link"));
    giveAway(join(root, "tree"), closed);
    chmodSync(closed, 0o555);
    const disk = await openNodeDisk(root);
    await asOrdinaryUser(() => removeTree(disk, join(root, "tree")));
    expect(readdirSync(stranger)).toEqual(["book"]);
    expect(readdirSync(closed)).toEqual(["link"]);
  });

  it.each(["EPERM", "EACCES", "EBUSY"])("stays when its removal is refused with %s", async (errno) => {
    const { root, stranger } = makeStranger();
    const link = join(root, "link");
    symlinkSync(stranger, link);
    const disk = changedDisk(await openNodeDisk(root), (real) => ({
      unlink: async (path) => {
        if (path === link) throw diskError(errno, "unlink", path);
        await real.unlink(path);
      },
    }));
    await removeTree(disk, link);
    expect(readdirSync(stranger)).toEqual(["book"]);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
  });

  it.each(["stranger", "nowhere"])("is not taken for a directory of files, when it leads to %s", async (target) => {
    const { root, stranger } = makeStranger();
    const link = join(root, "link");
    symlinkSync(join(root, target), link);
    expect(await removeDirectory(await openNodeDisk(root), link)).toBe(false);
    expect(readdirSync(stranger)).toEqual(["book"]);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
  });

  /** To the user that `asOrdinaryUser` becomes. */
  function giveAway(...paths: readonly string[]): void {
    if (process.geteuid?.() === 0) for (const path of paths) chownSync(path, 65534, 65534);
  }
});

describe("a unique name whose handle has become stale", () => {
  it.each([
    [2, undefined],
    [3, "ESTALE"],
  ])("is unlinked by asking again: %i times stale, told %s", async (stale, errno) => {
    const [, makeMemory] = places[1]!;
    const { staging, directory } = await makeMemory();
    const path = `${directory}/own`;
    await staging.disk.createFile(path, new Uint8Array(), { sync: false });
    let left = stale;
    const disk = changedDisk(staging.disk, (real) => ({
      unlink: async (name) => {
        if (left-- > 0) throw diskError("ESTALE", "unlink", name);
        await real.unlink(name);
      },
    }));
    const told = await unlinkIfThere(disk, path).catch((error: unknown) => (error as { errno: string }).errno);
    expect(told).toBe(errno ?? true);
    expect(await staging.disk.canOpen(path)).toBe(errno !== undefined);
  });
});
