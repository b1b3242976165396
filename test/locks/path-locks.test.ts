// Path locks on the real disk: the contract, and what only a folder promises.
import { mkdir, readdir, readFile, rename, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path/posix";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { PathHold } from "../../src/locks/path/path-hold.ts";
import type { TablePathLocks } from "../../src/locks/path/table-path-locks.ts";
import { LocksWorld } from "../sites/path-locks.ts";
import { describePathLocks, failureOf } from "./path-locks-contract.ts";

describePathLocks("the real disk", () => LocksWorld.make());

let world: LocksWorld;
let a: TablePathLocks;
let b: TablePathLocks;

beforeEach(async () => {
  world = await LocksWorld.make();
  [a, b] = [await world.open(), await world.open()];
});
afterEach(() => world.end());

/** A request is in the table behind another. */
async function somebodyWaits(): Promise<void> {
  while ((await a.list()).flatMap(({ waiting }) => waiting).length === 0) await sleep(5);
}

describe("a hold in a tree", () => {
  it("can be had on a path that does not exist, and survives removal and move of what it protects", async () => {
    const missing = await a.acquire("not/yet/there");
    expect(await b.tryAcquire("not/yet/there")).toBe(undefined);
    await mkdir(join(world.root, "dir/sub"), { recursive: true });
    const tree = await a.acquire("dir", { mode: "tree" });
    await rename(join(world.root, "dir"), join(world.root, "elsewhere"));
    await rm(join(world.root, "elsewhere"), { recursive: true });
    await tree.assertHeld();
    expect(await b.tryAcquire("dir/sub")).toBe(undefined);
    await tree.release();
    await missing.release();
  });

  it("is one for all spellings of a path", async () => {
    await mkdir(join(world.root, "real"));
    await symlink("real", join(world.root, "link"));
    const hold = await a.acquire("real/f\u00e9");
    for (const path of ["./real//x/../fe\u0301", "link/f\u00e9", join(world.root, "real/f\u00e9")])
      expect(await b.tryAcquire(path)).toBe(undefined);
    await hold.release();
  });

  it("follows a symbolic link that was swapped while it waited", async () => {
    await mkdir(join(world.root, "one"));
    await mkdir(join(world.root, "two"));
    await symlink("one", join(world.root, "link"));
    const first = await a.acquire("one/f");
    const waiting = b.acquire("link/f", { timeoutMs: 10_000 });
    await somebodyWaits();
    await rm(join(world.root, "link"));
    await symlink("two", join(world.root, "link"));
    await first.release();
    const hold = await waiting;
    expect(await a.tryAcquire("two/f")).toBe(undefined);
    await (await a.acquire("one/f")).release();
    await hold.release();
  });

  it("is refused for a path whose links lead out of the root, or nowhere", async () => {
    await symlink("/", join(world.root, "out"));
    await symlink("circle", join(world.root, "circle"));
    for (const path of ["out/etc", "circle/x"])
      expect(await failureOf(a.acquire(path))).toMatchObject({ code: "INVALID_PATH" });
  });
});

describe("damage", () => {
  async function newestSlot(): Promise<string> {
    const table = join(world.root, ".holdfast/table");
    const epoch = (await readdir(table)).find((name) => name.includes("-"))!;
    const slots = (await readdir(join(table, epoch))).filter((name) => name !== "open").sort();
    return join(table, epoch, slots.at(-1)!);
  }

  it("in the newest record of the table never reads as no locks", async () => {
    const hold = await a.acquire("x");
    const slot = await newestSlot();
    const bytes = await readFile(slot);
    await truncate(slot, bytes.length - 20);
    // At once: each takes its time to find out that the holder is alive.
    const looks = [world.open(), b.acquire("x"), b.list()].map(failureOf);
    for (const failure of await Promise.all(looks))
      expect(failure).toMatchObject({ code: "CORRUPT", action: "fix-data", path: slot });
    await writeFile(slot, bytes.toString().replace('"x"', '"y"'));
    expect(await failureOf(b.acquire("x"))).toMatchObject({ code: "CORRUPT", path: slot });
    await writeFile(slot, bytes);
    expect(await b.tryAcquire("x")).toBe(undefined);
    await hold.release();
  });

  it("of the whole ground under a living holder is told to the holder and to all others", async () => {
    const hold = await a.acquire("x");
    await rm(join(world.root, ".holdfast"), { recursive: true });
    expect(await failureOf(hold.assertHeld())).toMatchObject({
      code: expect.stringMatching(/CORRUPT|LOCK_LOST|IO_ERROR/),
    });
    expect(await failureOf(b.acquire("x"))).toMatchObject({
      code: expect.stringMatching(/CORRUPT|LOCK_LOST|IO_ERROR/),
    });
  });

  it("does not come from foreign files in the ground", async () => {
    for (const directory of ["holds", "redo", "done", "trash", "table", "table/epochs", "holders"])
      await writeFile(join(world.root, ".holdfast", directory, "README.txt"), "hello");
    const c = await world.open();
    const hold: PathHold = await c.acquire("x");
    expect(await b.tryAcquire("x")).toBe(undefined);
    await hold.release();
  });
});
