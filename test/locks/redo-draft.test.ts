// Drafts of redos: what is refused before it could block its paths for ever, what a draft is once
// it is over, and what the answer to a commit means.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdir, readlink, symlink } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { PathHold } from "../../src/locks/path/path-hold.ts";
import type { RedoDraft } from "../../src/locks/redo/draft.ts";
import type { TablePathLocks } from "../../src/locks/path/table-path-locks.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import { LocksWorld, withDisk } from "../sites/path-locks.ts";

let world: LocksWorld;
let locks: TablePathLocks;
let hold: PathHold;
let draft: RedoDraft;
/** Calls that fail, by what they are and their path: all of them, or the one of that number. */
interface Failing {
  readonly call: string;
  readonly end: RegExp;
  readonly errno: string;
  readonly only?: number;
}
let failing: Failing | undefined;
/** How many came that `failing` is about. */
let met = 0;

beforeEach(async () => {
  failing = undefined;
  world = await LocksWorld.make();
  const orFail = async <T>(call: string, path: string, action: () => Promise<T>): Promise<T> => {
    if (failing?.call === call && failing.end.test(path) && [++met, undefined].includes(failing.only))
      throw diskError(failing.errno, call, path);
    return await action();
  };
  locks = await world.open({
    tamper: withDisk((disk) => ({
      createFile: (path, bytes, options) => orFail("create", path, () => disk.createFile(path, bytes, options)),
      list: (path) => orFail("list", path, () => disk.list(path)),
      rename: (from, to) => orFail("rename", to, () => disk.rename(from, to)),
      rmdir: (path) => orFail("rmdir", path, () => disk.rmdir(path)),
    })),
  });
  hold = await locks.acquire("", { mode: "tree" });
  draft = await locks.draft(hold);
});
afterEach(() => world.end());

const at = (...names: string[]): string => join(world.root, ...names);
const text = (path: string): string => readFileSync(at(path), "utf8");
const filled = (content: string) => async (path: string) => writeFileSync(path, content);
const tree = async (path: string): Promise<void> => {
  await mkdir(path);
  writeFileSync(join(path, "inside"), "inside");
};
const staged = (): string[] => readdirSync(at(".holdfast/redo"));

async function makeDirectory(name: string, ...files: string[]): Promise<void> {
  await mkdir(at(name));
  for (const file of files) writeFileSync(at(name, file), file);
}

/** Nothing has happened, and no path is blocked. */
async function nothingHappened(): Promise<void> {
  expect(staged()).toEqual([]);
  expect((await locks.table.read()).state.redos).toEqual([]);
  await hold.release();
  await (await (await world.open()).acquire("", { mode: "tree" })).release();
}

describe("a draft for one step", () => {
  it("stages a file as one name, and leaves nothing behind", async () => {
    const single = await locks.draft(hold, { isSingle: true });
    const others = new Set(staged());
    await single.in("f", filled("new"));
    const [name = ""] = staged().filter((each) => !others.has(each));
    expect(readFileSync(at(".holdfast/redo", name), "utf8")).toBe("new");
    await single.commit();
    expect(text("f")).toBe("new");
    expect(staged()).toEqual([...others]);
    expect(readdirSync(at(".holdfast/done"))).toEqual([]);
  });

  it("removes and moves files and directories, and leaves nothing behind", async () => {
    await draft.discard();
    await makeDirectory("d", "1");
    writeFileSync(at("f"), "f");
    for (const stage of [
      (each: RedoDraft) => each.out("d"),
      (each: RedoDraft) => each.move("f", "g"),
      (each: RedoDraft) => each.in("d", tree),
      (each: RedoDraft) => each.move("d", "e"),
    ]) {
      const single = await locks.draft(hold, { isSingle: true });
      await stage(single);
      await single.commit();
    }
    expect(readdirSync(world.root).sort()).toEqual([".holdfast", "e", "g"]);
    expect(text("e/inside")).toBe("inside");
    for (const room of ["redo", "done", "trash"]) expect(readdirSync(at(".holdfast", room))).toEqual([]);
  });

  it("refuses a second one", async () => {
    const single = await locks.draft(hold, { isSingle: true });
    await single.in("f", filled("new"));
    await expect(single.in("g", filled("new"))).rejects.toThrow("one step");
    await single.discard();
    await draft.discard();
    await nothingHappened();
  });
});

describe("a redo that could never be done is refused before its commit", () => {
  it("because something is at its target that cannot be replaced", async () => {
    await makeDirectory("a", "1");
    await makeDirectory("b", "2");
    await makeDirectory("empty");
    writeFileSync(at("file"), "");
    for (const stage of [
      (each: RedoDraft) => each.move("a", "b"),
      (each: RedoDraft) => each.move("a", "empty"),
      (each: RedoDraft) => each.move("a", "file"),
      (each: RedoDraft) => each.move("file", "a"),
      (each: RedoDraft) => each.move("a/1", "a"),
      (each: RedoDraft) => each.in("a", filled("")),
      (each: RedoDraft) => each.in("a", tree),
      (each: RedoDraft) => each.in("file", tree),
    ]) {
      const each = await locks.draft(hold);
      await stage(each);
      await expect(each.commit()).rejects.toMatchObject({ code: "FILE_EXISTS" });
    }
    await draft.discard();
    await nothingHappened();
    expect([text("a/1"), text("b/2"), text("file")]).toEqual(["1", "2", ""]);
  });

  it("because an earlier step is in its way", async () => {
    await makeDirectory("d", "1");
    await draft.out("d");
    await draft.in("d/x", filled("x"));
    await expect(draft.commit()).rejects.toMatchObject({ code: "NO_SUCH_FILE", path: at("d") });
    const moved = await locks.draft(hold);
    await moved.move("d", "e");
    await moved.in("d/x", filled("x"));
    await expect(moved.commit()).rejects.toMatchObject({ code: "NO_SUCH_FILE" });
    const twice = await locks.draft(hold);
    await twice.in("new", tree);
    await twice.move("d", "new");
    await expect(twice.commit()).rejects.toMatchObject({ code: "FILE_EXISTS" });
    await nothingHappened();
    expect(text("d/1")).toBe("1");
  });

  it("because it leads into itself, below a file, or into the locks", async () => {
    await makeDirectory("a", "1");
    await expect(draft.move("a", "a/b")).rejects.toMatchObject({ code: "INVALID_PATH" });
    await expect(draft.in("a/1/x", filled(""))).rejects.toMatchObject({ code: "NO_SUCH_FILE", path: at("a/1") });
    for (const path of [".holdfast", ".holdfast/holds", "./.holdfast/redo/x"])
      await expect(draft.out(path)).rejects.toMatchObject({ code: "INVALID_PATH" });
    await expect(draft.move(".holdfast/holds", "b")).rejects.toMatchObject({ code: "INVALID_PATH" });
    await draft.discard();
    await nothingHappened();
  });

  it("because a directory would come to a path of which only that very path is held", async () => {
    await hold.release();
    await makeDirectory("a", "1");
    const exact = await locks.acquireAll([{ path: "a", mode: "tree" }, "b"]);
    await expect((await locks.draft(exact)).move("a", "b")).rejects.toMatchObject({ code: "NOT_HELD", path: "b" });
    await exact.release();
  });
});

it("steps that make way for each other are done in their order", async () => {
  await makeDirectory("a", "1");
  await makeDirectory("b", "2");
  await draft.out("b");
  await draft.move("a", "b");
  await draft.in("a", tree);
  await draft.in("a/more", filled("more"));
  await draft.move("b/1", "a/1");
  await draft.commit();
  expect([readdirSync(at("a")).sort(), readdirSync(at("b"))]).toEqual([["1", "inside", "more"], []]);
});

it("a symbolic link stays, and what it leads to is changed, as it is what is locked", async () => {
  writeFileSync(at("real"), "old");
  await symlink("real", at("link"));
  await symlink("not-yet", at("dangling"));
  await hold.release();
  hold = await locks.acquireAll(["link", "dangling"]);
  const through = await locks.draft(hold);
  await through.in("link", filled("new"));
  await through.in("dangling", filled("made"));
  await through.commit();
  expect([text("real"), text("not-yet"), await readlink(at("link"))]).toEqual(["new", "made", "real"]);
  const other = await world.open();
  for (const path of ["link", "real", "dangling", "not-yet"]) expect(await other.tryAcquire(path)).toBe(undefined);
  await hold.release();
});

describe("a draft", () => {
  it("takes no more steps once it is committed, though it is not done yet", async () => {
    writeFileSync(at("keep"), "");
    await draft.in("f", filled("f"));
    failing = { call: "rename", end: /\/f$/, errno: "EIO" };
    await expect(draft.commit()).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    await expect(draft.out("keep")).rejects.toThrow(TypeError);
    await expect(draft.in("more", filled(""))).rejects.toThrow(TypeError);
    await expect(draft.move("keep", "moved")).rejects.toThrow(TypeError);
    await draft.discard();
    failing = undefined;
    await hold.release();
    expect([text("f"), existsSync(at("keep")), existsSync(at("more"))]).toEqual(["f", true, false]);
  });

  it("omits steps that failed and keeps the rest", async () => {
    const broken = new Error("cannot be read");
    await draft.in("first", filled("first"));
    const half = async (path: string): Promise<void> => {
      await filled("half")(path);
      throw broken;
    };
    await expect(draft.in("failed", half)).rejects.toBe(broken);
    await draft.in("last", filled("last"));
    await draft.commit();
    expect([text("first"), text("last"), existsSync(at("failed"))]).toEqual(["first", "last", false]);
    expect(staged()).toEqual([]);
  });

  it("is not committed while a step of it is being staged", async () => {
    let goOn = (): void => undefined;
    const waiting = new Promise<void>((resolve) => (goOn = resolve));
    const staging = draft.in("slow", async (path) => {
      await filled("slow")(path);
      await waiting;
    });
    await expect.poll(() => readdirSync(at(".holdfast/redo", staged()[0] as string))).toEqual(["0"]);
    await expect(draft.commit()).rejects.toThrow(TypeError);
    goOn();
    await staging;
    await draft.commit();
    expect(text("slow")).toBe("slow");
  });

  it("leaves nothing when its commit failed, or when its hold ends", async () => {
    await draft.in("f", filled("f"));
    failing = { call: "create", end: /\/temp\//, errno: "ENOSPC" };
    await expect(draft.commit()).rejects.toMatchObject({ code: "DISK_FULL" });
    failing = undefined;
    expect(staged()).toEqual([]);
    const inner = await locks.acquire("inner", { within: hold });
    for (const each of [hold, inner]) await (await locks.draft(each)).in("inner", filled(""));
    expect(staged()).toHaveLength(2);
    await hold.release();
    expect(staged()).toEqual([]);
    await (await locks.draft(await locks.acquire("f"))).in("f", filled(""));
    await locks.close();
    expect(staged()).toEqual([]);
  });
});

describe("a commit that counts", () => {
  it("is told as done, though what is left of it cannot be removed", async () => {
    await draft.in("f", filled("f"));
    failing = { call: "list", end: /\/trash$/, errno: "EIO" };
    await draft.commit();
    expect(text("f")).toBe("f");
  });

  it("is never reported as failed, whatever disk error its completion meets", async () => {
    await draft.in("f", filled("f"));
    failing = { call: "rename", end: /\/f$/, errno: "EIO" };
    await expect(draft.commit()).rejects.toMatchObject({
      code: "RESOURCE_BUSY",
      committed: true,
      cause: { code: "OUTCOME_UNKNOWN", cause: { code: "IO_ERROR" } },
    });
    failing = undefined;
    await hold.release();
    expect(text("f")).toBe("f");
  });

  it("is reported as done only when all of it is, at whichever change a handle was stale", async () => {
    for (const call of ["rename", "rmdir"])
      for (let at = 1; at <= (call === "rename" ? 5 : 3); at++) {
        const names = { file: `file-${call}-${at}`, gone: `gone-${call}-${at}`, from: `from-${call}-${at}` };
        for (const name of Object.values(names)) writeFileSync(join(world.root, name), "old");
        const each = await locks.draft(hold);
        await each.in(names.file, filled("new"));
        await each.out(names.gone);
        await each.move(names.from, `${names.from}.moved`);
        // The last `rename` is the one that marks it as done.
        failing = { call, end: /./, errno: "ESTALE", only: at };
        met = 0;
        await each.commit();
        expect(met).toBeGreaterThan(at);
        failing = undefined;
        expect(text(names.file)).toBe("new");
        expect(existsSync(join(world.root, names.gone))).toBe(false);
        expect(existsSync(join(world.root, names.from))).toBe(false);
        expect(text(`${names.from}.moved`)).toBe("old");
      }
  });

  it("keeps the only copy of a file whose step directory stays stale, and completes the move later", async () => {
    writeFileSync(at("precious"), "the only copy");
    await draft.move("precious", "elsewhere");
    failing = { call: "rename", end: /elsewhere$/, errno: "ESTALE" };
    await expect(draft.commit()).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    await expect(hold.release()).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    failing = undefined;
    await hold.release();
    expect(text("elsewhere")).toBe("the only copy");
    expect(existsSync(at("precious"))).toBe(false);
  });
});
