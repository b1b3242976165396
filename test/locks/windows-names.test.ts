// Names on Windows, and where names must be valid there: refused before anything is written, and
// one lock for all spellings of one file.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { mustBeNameable } from "../../src/backup/restore.ts";
import { isTop, parentOf } from "../../src/durable/publish/directory.ts";
import { findStoreAbove } from "../../src/durable/store/store-record.ts";
import { Ground } from "../../src/durable/liveness/ground.ts";
import { openFiles } from "../../src/files/index.ts";
import { FolderFiles } from "../../src/files/files.ts";
import { openTree } from "../../src/files/tree/open-tree.ts";
import { openPathLocks } from "../../src/locks/index.ts";
import { followLinks } from "../../src/locks/naming/follow-path.ts";
import { LockKeys } from "../../src/locks/naming/lock-key.ts";
import { TablePathLocks } from "../../src/locks/path/table-path-locks.ts";
import { checkTarget } from "../../src/locks/redo/preflight.ts";
import { InProcessLocks } from "../../src/locks/semaphore/in-process.ts";
import { PortsSemaphore } from "../../src/locks/semaphore/semaphore.ts";
import { openStore } from "../../src/index.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import type { Disk, Volume } from "../../src/ports/disk.ts";
import { createSimulation } from "../../src/testing/sim/simulation.ts";
import { makeScratch } from "../sites/scratch.ts";

const windows: Volume = { kind: "local", type: "ntfs", mountOptions: [], hasWindowsNames: true };
const refused = ["q?", "star*", "CON", "dir/aux.txt", "nul", "end.", "end ", "a.txt::$DATA", "dir./a", 'say "hi"'];

/** A disk of Windows with these entries: names by their real paths, links by their targets. */
function drive(real: Readonly<Record<string, string>>, links: Readonly<Record<string, string>> = {}): Disk {
  const missing = (path: string): never => {
    throw diskError("ENOENT", "resolve", path);
  };
  return {
    volume: windows,
    realPath: async (path: string) => real[path] ?? missing(path),
    readLink: async (path: string) => links[path] ?? missing(path),
    hasLink: async (root: string, path: string) => links[`${root.replace(/\/$/, "")}/${path}`] !== undefined,
  } as unknown as Disk;
}

describe("a path on Windows", () => {
  const disk = drive({
    "D:/shop": "D:/shop",
    "D:/": "D:/",
    "D:/shop/LONGNA~1.TXT": "D:/shop/Long name of a file.txt",
    "D:/shop/REPORT~1": "D:/shop/reports of 2026",
  });
  const open = async (root = "D:/shop"): Promise<LockKeys> =>
    await LockKeys.open(disk, root, { caseSensitive: false, portable: false });
  const keyOf = async (path: string, root?: string): Promise<string> => {
    const keys = await open(root);
    return await keys.keyOf(keys.clean(path));
  };

  it("has one key in any case, with either slash, relative or absolute", async () => {
    for (const path of ["a/File.txt", "A\\FILE.TXT", "d:\\SHOP\\a\\file.txt", "D:/shop/a/file.txt", "a//./file.txt"])
      expect(await keyOf(path)).toBe("a/file.txt");
    for (const path of ["D:\\shop", "d:/shop/", ""]) expect(await keyOf(path)).toBe("");
    await expect(keyOf("D:\\shopping\\a")).rejects.toMatchObject({ code: "INVALID_PATH" });
    await expect(keyOf("E:\\shop\\a")).rejects.toMatchObject({ code: "INVALID_PATH" });
  });

  it("has the key of the long name of an existing file, if it is given by the short one", async () => {
    expect(await keyOf("LONGNA~1.TXT")).toBe("long name of a file.txt");
    expect(await keyOf("REPORT~1/new.txt")).toBe("reports of 2026/new.txt");
    expect(await keyOf("backup~1")).toBe("backup~1");
  });

  it("is found in the root of a drive", async () => {
    expect(await keyOf("D:\\a", "D:/")).toBe("a");
    expect(await keyOf("~1/b", "D:/")).toBe("~1/b");
  });

  it.each(refused)("is refused with the name in %j", async (path) => {
    const keys = await open();
    expect(() => keys.clean(path)).toThrowError(expect.objectContaining({ code: "INVALID_PATH" }));
  });

  it("follows links to other drives, and relative ones on its own", async () => {
    const real = { "D:/": "D:/", "E:/x": "E:/x", "D:/x": "D:/x" };
    const linked = drive(real, { "D:/far": "E:/x/new", "D:/near": "x/new", "D:/x/up": "../x/y" });
    expect((await followLinks(linked, "D:/far")).path).toBe("E:/x/new");
    expect((await followLinks(linked, "D:/near/z")).path).toBe("D:/x/new/z");
    expect((await followLinks(linked, "D:/x/up")).path).toBe("D:/x/y");
    expect(await followLinks(linked, "D:/new")).toEqual({ path: "D:/new", existing: "D:/" });
  });

  it("is checked again before a committed change names it", async () => {
    const { disk: simulated, clock, random } = createSimulation({ volume: windows }).ports("till");
    const files = { ports: { disk: simulated, clock, random }, root: "/shop", directory: "/ground" };
    for (const path of refused) await expect(checkTarget(files, path)).rejects.toMatchObject({ code: "INVALID_PATH" });
  });
});

describe("a file with a name that Windows refuses", () => {
  it("is refused there before anything is written, and costs no lock", async () => {
    const ports = createSimulation({ volume: windows, quirks: { caseInsensitive: true } }).ports("till");
    await ports.disk.mkdir("/shop");
    await ports.disk.mkdir("/outside");
    await ports.disk.createFile("/outside/q?", new Uint8Array(), { sync: true });
    const { tree, close } = await openTree(ports, "/shop");
    const openFolder = async (path: string | URL) => ({ path: String(path), disk: ports.disk });
    const files = new FolderFiles({ tree, close }, { openFolder });
    onTestFinished(() => files.close());
    await files.write("a.txt", "a");
    for (const path of refused) {
      await expect(files.write(path, "x")).rejects.toMatchObject({ code: "INVALID_PATH" });
      await expect(files.move("a.txt", path)).rejects.toMatchObject({ code: "INVALID_PATH" });
    }
    await expect(files.add("/outside", "in")).rejects.toMatchObject({ code: "INVALID_PATH" });
    expect((await ports.disk.list("/shop")).sort()).toEqual([".holdfast", "a.txt"]);
    await (await tree.locks.acquire("", { mode: "tree" })).release();
  });

  it("is refused on every machine once a store was told so", async () => {
    const directory = join(makeScratch(), "shop");
    await using store = await openStore(directory, { names: "portable" });
    const files = await store.files({ index: false });
    await files.write("notes/a.txt", "a");
    for (const path of refused) {
      await expect(files.write(path, "x")).rejects.toMatchObject({ code: "INVALID_PATH" });
      await expect((await store.locks()).acquire(path)).rejects.toMatchObject({ code: "INVALID_PATH" });
    }
    await using later = await openStore(directory);
    await expect((await later.files({ index: false })).write("q?", "x")).rejects.toMatchObject({
      code: "INVALID_PATH",
    });
    expect(readdirSync(join(directory, "files"))).toEqual(["notes"]);
  });

  it("is reported, and stops nothing, where another program made it", async () => {
    const root = join(makeScratch(), "tree");
    await using files = await openFiles(root, { names: "portable" });
    await files.write("wolf.md", "wolf one");
    writeFileSync(join(root, "wolf?.md"), "wolf two");
    const problems: string[] = [];
    const paths: string[] = [];
    for await (const { path } of files.list("", { onProblem: ({ path }) => void problems.push(path) }))
      paths.push(path);
    expect({ paths, problems }).toEqual({ paths: ["wolf.md"], problems: ["wolf?.md"] });
    expect(await files.verify({ repair: true })).toMatchObject({ ok: true });
    await files.rebuildIndex();
    await files.settled();
    expect((await files.search("wolf")).map(({ path }) => path)).toEqual(["wolf.md"]);
  });

  it("is accepted elsewhere, also by a process after one that refused it only for itself", async () => {
    const root = makeScratch();
    await using locks = await openPathLocks(root);
    await (await locks.acquire("q?")).release();
    await using strict = await openPathLocks(root, { names: "portable" });
    await expect(strict.acquire("q?")).rejects.toMatchObject({ code: "INVALID_PATH" });
    await using again = await openPathLocks(root);
    await (await again.acquire("q?")).release();
  });

  it.each([
    ["network", undefined, true],
    ["network", "any", false],
    ["local", undefined, false],
    ["unknown", undefined, false],
    ["local", "portable", true],
  ] as const)("in new locks on a %s volume with names %s: refused is %s", async (kind, names, isRefused) => {
    const ports = createSimulation({ volume: { kind, type: "test", mountOptions: [] } }).ports("till");
    for (const path of ["/shop", "/shop/.holdfast"]) await ports.disk.mkdir(path);
    const ground = await Ground.open(ports, "/shop/.holdfast");
    const locks = await TablePathLocks.open(ground, { root: "/shop", names, ownsGround: true });
    onTestFinished(() => locks.close());
    const code = await locks.acquire("q?").then(
      () => undefined,
      (error: unknown) => (error as { readonly code?: unknown }).code,
    );
    expect(code).toBe(isRefused ? "INVALID_PATH" : undefined);
  });

  it("is no matter of a location in a database, and `names` has two values", async () => {
    await expect(openStore("postgres://host/db", { names: "portable" })).rejects.toMatchObject({ code: "UNSUPPORTED" });
    const wrong = { names: "windows" } as unknown as { names: "portable" };
    await expect(openPathLocks(makeScratch(), wrong)).rejects.toThrow(TypeError);
    await expect(openStore(join(makeScratch(), "s"), wrong)).rejects.toThrow(TypeError);
  });
});

describe("the root of a drive or of a share", () => {
  const disk = (stores: readonly string[], asked: string[]): Disk =>
    ({
      volume: windows,
      look: async (path: string) => {
        asked.push(path);
        if (!stores.includes(path.replace("//holdfast.json", "/holdfast.json")))
          throw diskError("ENOENT", "look", path);
        return { kind: "file" };
      },
      readFile: async (path: string) => {
        throw diskError("ENOENT", "read", path);
      },
      canOpen: async () => false,
    }) as unknown as Disk;

  it("has no parent, and a search for a store ends there", async () => {
    for (const root of ["C:/", "/"]) expect(parentOf(root)).toBe(root);
    expect(parentOf("C:/a")).toBe("C:/");
    for (const root of ["C:/", "/", "//server/share", "//server/share/"]) expect(isTop(disk([], []), root)).toBe(true);
    expect(isTop({ ...disk([], []), volume: { ...windows, hasWindowsNames: false } }, "//ground/temp")).toBe(false);
    for (const path of ["C:/a/b", "//server/share/a/b", "C:/", "//server/share"]) {
      const asked: string[] = [];
      expect(await findStoreAbove(disk([], asked), path)).toBe(undefined);
      expect(asked.filter((each) => each.startsWith("//") && !each.startsWith("//server/share"))).toEqual([]);
    }
  });

  it("is found as the store of what lies in it", async () => {
    expect((await findStoreAbove(disk(["C:/holdfast.json"], []), "C:/files/a/b"))?.directory).toBe("C:/");
    const share = disk(["//server/share/holdfast.json"], []);
    expect((await findStoreAbove(share, "//server/share/files/a"))?.directory).toBe("//server/share");
  });
});

it("a backup with a name that Windows does not accept is not restored there", () => {
  const elsewhere: Volume = { kind: "local", type: "ext4", mountOptions: [] };
  mustBeNameable([{ path: "files/a?b" }], elsewhere);
  mustBeNameable([{ path: "files/a-b" }], windows);
  expect(() => mustBeNameable([{ path: "files/a-b" }, { path: "files/nul.txt" }], windows)).toThrowError(
    expect.objectContaining({ code: "INVALID_PATH", path: "files/nul.txt" }),
  );
});

it("a semaphore refuses a name that Windows does not accept, instead of waiting for it", async () => {
  const ports = createSimulation({ volume: windows }).ports("till");
  await ports.disk.mkdir("/locks");
  const inProcess = new InProcessLocks();
  const open = (path: string) => new PortsSemaphore({ openPorts: async () => ports, inProcess }, path).tryAcquire();
  for (const name of ['"quoted".lock', "nul", "till.lock."])
    await expect(open(`/locks/${name}`)).rejects.toMatchObject({ code: "INVALID_PATH" });
});

it("the rule for names is recorded beside the rule for case", async () => {
  const root = makeScratch();
  await using _locks = await openPathLocks(root, { names: "portable" });
  const record = join(root, ".holdfast", "names.json");
  expect(existsSync(record)).toBe(true);
  expect(readFileSync(record, "utf8")).toContain('"portable":true');
});
