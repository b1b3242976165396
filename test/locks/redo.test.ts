// Redo on the real disk: all of it or nothing, whichever process completes it, and what is refused
// before the commit.
import { mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path/posix";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { PathHold } from "../../src/locks/path/path-hold.ts";
import type { RedoDraft } from "../../src/locks/redo/draft.ts";
import type { TablePathLocks } from "../../src/locks/path/table-path-locks.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import type { Disk } from "../../src/ports/disk.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { LocksWorld } from "../sites/path-locks.ts";

let world: LocksWorld;
let locks: TablePathLocks;
let hold: PathHold;
let draft: RedoDraft;

beforeEach(async () => {
  world = await LocksWorld.make();
  locks = await world.open();
  hold = await locks.acquire("", { mode: "tree" });
  draft = await locks.draft(hold);
});
afterEach(() => world.end());

const at = (...names: string[]): string => join(world.root, ...names);
const fill =
  (text: string) =>
  async (path: string): Promise<void> =>
    await locks.table.ground.ports.disk.createFile(path, Buffer.from(text), { sync: true });
const text = async (path: string): Promise<string> => await readFile(at(path), "utf8");

/**
 * Ports of a process that stops at the `count`th call of one kind, and tells: nothing that it asks
 * for afterwards is answered.
 */
function stoppingAt(method: "rename" | "rmdir", count: number, onStop: () => void): (ports: Ports) => Ports {
  let calls = 0;
  let isStopped = false;
  const never = new Promise<never>(() => undefined);
  return (ports) => ({
    ...ports,
    disk: new Proxy(ports.disk, {
      get: (disk, name) => {
        const value = Reflect.get(disk, name) as unknown;
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => {
          if (name === method && ++calls === count) {
            isStopped = true;
            onStop();
          }
          return isStopped ? never : (Reflect.apply(value, disk, args) as unknown);
        };
      },
    }),
  });
}

describe("a redo", () => {
  it("puts, replaces, removes and moves files and directories in one commit", async () => {
    await mkdir(at("old/deep"), { recursive: true });
    await writeFile(at("old/deep/f"), "deep");
    await writeFile(at("gone"), "gone");
    await writeFile(at("replaced"), "before");
    await draft.in("new", fill("new"));
    await draft.in("replaced", fill("after"));
    await draft.in("tree", async (path) => {
      await mkdir(path);
      await writeFile(join(path, "inside"), "inside");
    });
    await draft.out("gone");
    await draft.move("old", "moved");
    expect(await readdir(world.root)).not.toContain("new");
    await draft.commit();
    expect([await text("new"), await text("replaced"), await text("tree/inside"), await text("moved/deep/f")]).toEqual([
      "new",
      "after",
      "inside",
      "deep",
    ]);
    for (const name of ["gone", "old"]) expect(await readdir(world.root)).not.toContain(name);
    for (const room of ["redo", "done", "trash"]) expect(await readdir(at(".holdfast", room))).toEqual([]);
    await expect(draft.commit()).rejects.toThrow(TypeError);
  });

  it("that is discarded, or whose hold was broken, has never happened", async () => {
    await draft.in("x", fill("x"));
    await draft.discard();
    const other = await locks.draft(hold);
    await other.in("y", fill("y"));
    const breaker = await world.open();
    await breaker.break("y");
    await expect(other.commit()).rejects.toMatchObject({ code: "LOCK_LOST" });
    for (const name of ["x", "y"]) expect(await readdir(world.root)).not.toContain(name);
    expect(await readdir(at(".holdfast/redo"))).toEqual([]);
  });

  it("changes only what its hold covers, and only below the root", async () => {
    await hold.release();
    const exact = await locks.acquire("dir");
    await mkdir(at("dir"));
    await writeFile(at("file"), "");
    const narrow = await locks.draft(exact);
    await expect(narrow.in("file", fill(""))).rejects.toMatchObject({ code: "NOT_HELD" });
    await expect(narrow.move("dir", "dir")).rejects.toMatchObject({ code: "NOT_HELD" });
    await expect(narrow.out("dir")).rejects.toMatchObject({ code: "NOT_HELD", path: "dir" });
    for (const path of ["", "../x", "a\0b"])
      await expect(narrow.out(path)).rejects.toMatchObject({ code: "INVALID_PATH" });
    const reader = await locks.acquire("shared", { shared: true });
    await expect((await locks.draft(reader)).out("shared")).rejects.toMatchObject({ code: "NOT_HELD" });
  });

  it("is refused before its commit where a directory is missing", async () => {
    await expect(draft.in("no/such/place", fill(""))).rejects.toMatchObject({
      code: "NO_SUCH_FILE",
      path: at("no/such"),
    });
  });

  it("reaches through a symbolic link only what that link's target allows", async () => {
    await mkdir(at("real"));
    await symlink("real", at("link"));
    await hold.release();
    const narrow = await locks.acquire("other");
    await expect((await locks.draft(narrow)).in("link/f", fill(""))).rejects.toMatchObject({ code: "NOT_HELD" });
    const right = await locks.acquire("link/f");
    const through = await locks.draft(right);
    await through.in("link/f", fill("through"));
    await through.commit();
    expect(await text("real/f")).toBe("through");
  });

  it("that cannot be completed now keeps its paths locked, and says why", async () => {
    await mkdir(at("dir"));
    await draft.in("dir/f", fill("f"));
    const disk = locks.table.ground.ports.disk as { rename: Disk["rename"] };
    const rename = disk.rename.bind(disk);
    disk.rename = async (from, to) => {
      if (to === at("dir/f")) throw diskError("EBUSY", "rename", to);
      return await rename(from, to);
    };
    await expect(draft.commit()).rejects.toMatchObject({
      code: "RESOURCE_BUSY",
      path: at("dir/f"),
      worthWaiting: true,
    });
    await expect(hold.release()).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    const other = await world.open();
    expect(await other.tryAcquire("dir/f")).toBe(undefined);
    disk.rename = rename;
    await hold.release();
    expect(await text("dir/f")).toBe("f");
    await (await other.acquire("dir/f")).release();
  });

  it("whose target's directory a foreign program removed says so, and goes on when it is back", async () => {
    await mkdir(at("dir"));
    await draft.in("dir/f", fill("f"));
    await rm(at("dir"), { recursive: true });
    await expect(draft.commit()).rejects.toMatchObject({
      code: "RESOURCE_BUSY",
      message: expect.stringContaining("make it again"),
    });
    await mkdir(at("dir"));
    await hold.release();
    expect(await text("dir/f")).toBe("f");
  });
});

describe("a committer that gets no further", () => {
  async function moveWithExtra(committer: TablePathLocks): Promise<void> {
    const held = await committer.acquireMove("a", "b");
    const { disk } = committer.table.ground.ports;
    const move = await committer.draft(held);
    await move.in("a/extra", (path) => disk.createFile(path, Buffer.from("extra"), { sync: true }));
    await move.move("a", "b");
    await move.commit();
  }

  // The renames of this redo: extra in, a out, a in as b, and the mark that it is done; the
  // removals: two steps.
  for (const [method, count] of [
    ["rename", 1],
    ["rename", 2],
    ["rename", 3],
    ["rename", 4],
    ["rmdir", 1],
    ["rmdir", 2],
  ] as const)
    it(`than ${method} ${count} leaves a redo that the next holder completes`, async () => {
      await hold.release();
      await mkdir(at("a"));
      await writeFile(at("a/f"), "f");
      const stopped = new Promise<void>((resolve) => {
        const tamper = stoppingAt(method, count, resolve);
        // Never closed: it has nothing that could still be answered.
        void world.open({ tamper, isClosedByItself: true }).then(moveWithExtra);
      });
      await stopped;
      expect(await locks.break("a")).toHaveLength(2);
      const next = await locks.acquireMove("a", "b");
      expect((await readdir(at("b"))).sort()).toEqual(["extra", "f"]);
      expect(await readdir(world.root)).not.toContain("a");
      await next.release();
    });
});
