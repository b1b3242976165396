// What every disk promises, whatever it is made of: the contract of src/ports/disk.ts as tests.
import { posix } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { isHoldfastError } from "../../src/errors.ts";
import { errnoOf } from "../../src/ports/disk-error.ts";
import type { Disk } from "../../src/ports/disk.ts";

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** `makeDisk` gives a disk and an existing empty directory on it, new for each test. */
export function describeDiskContract(name: string, makeDisk: () => Promise<{ disk: Disk; root: string }>): void {
  describe(`the disk contract on ${name}`, () => {
    let disk: Disk;
    let root: string;
    const at = (...names: string[]): string => posix.join(root, ...names);
    const create = (path: string, text: string): Promise<void> => disk.createFile(path, bytesOf(text), { sync: false });
    const read = async (path: string): Promise<string> => textOf(await disk.readFile(path, 1000));
    const failure = async (operation: Promise<unknown>): Promise<string> => {
      const error: unknown = await operation.then(
        () => "no error",
        (reason: unknown) => reason,
      );
      expect(isHoldfastError(error), String(error)).toBe(true);
      return errnoOf(error) ?? "no errno";
    };

    beforeEach(async () => {
      ({ disk, root } = await makeDisk());
    });

    describe("createFile", () => {
      it("makes a file with exactly the given bytes, synced or not", async () => {
        await create(at("a"), "plain");
        await disk.createFile(at("b"), bytesOf("synced"), { sync: true });
        await create(at("empty"), "");
        expect([await read(at("a")), await read(at("b")), await read(at("empty"))]).toEqual(["plain", "synced", ""]);
      });

      it("says EEXIST and leaves what is there when the name is taken by a file or a directory", async () => {
        await create(at("a"), "first");
        await disk.mkdir(at("d"));
        expect(await failure(create(at("a"), "second"))).toBe("EEXIST");
        expect(await failure(create(at("d"), "second"))).toBe("EEXIST");
        expect(await read(at("a"))).toBe("first");
      });

      it("lets one of many callers win a name", async () => {
        const results = await Promise.allSettled(Array.from({ length: 8 }, (_, i) => create(at("a"), `${i}`)));
        expect(results.filter((result) => result.status === "fulfilled")).toHaveLength(1);
        const winner = results.findIndex((result) => result.status === "fulfilled");
        expect(await read(at("a"))).toBe(`${winner}`);
      });

      it("says ENOENT when the directory is missing and ENOTDIR when it is a file", async () => {
        await create(at("a"), "");
        expect(await failure(create(at("missing", "b"), ""))).toBe("ENOENT");
        expect(await failure(create(at("a", "b"), ""))).toBe("ENOTDIR");
      });

      it("keeps the bytes as they were when the caller changes its buffer afterwards", async () => {
        const bytes = bytesOf("before");
        await disk.createFile(at("a"), bytes, { sync: false });
        bytes.fill(0);
        expect(await read(at("a"))).toBe("before");
      });
    });

    describe("readFile", () => {
      it("gives a file of exactly bytesMax and says EFBIG for one byte more", async () => {
        await create(at("a"), "12345");
        expect(textOf(await disk.readFile(at("a"), 5))).toBe("12345");
        expect(await failure(disk.readFile(at("a"), 4))).toBe("EFBIG");
      });

      it("says ENOENT, ENOTDIR or EISDIR when there is no file to read", async () => {
        await create(at("a"), "");
        expect(await failure(disk.readFile(at("missing"), 10))).toBe("ENOENT");
        expect(await failure(disk.readFile(at("a", "b"), 10))).toBe("ENOTDIR");
        expect(await failure(disk.readFile(root, 10))).toBe("EISDIR");
      });

      it("gives bytes that the caller may change without changing the file", async () => {
        await create(at("a"), "before");
        (await disk.readFile(at("a"), 10)).fill(0);
        expect(await read(at("a"))).toBe("before");
      });
    });

    describe("canOpen", () => {
      it("is true for a file that is there and false for a name that is not, or lies below a file", async () => {
        await create(at("a"), "");
        expect(await disk.canOpen(at("a"))).toBe(true);
        expect(await disk.canOpen(at("missing"))).toBe(false);
        expect(await disk.canOpen(at("a", "b"))).toBe(false);
        await disk.unlink(at("a"));
        expect(await disk.canOpen(at("a"))).toBe(false);
      });
    });

    describe("open", () => {
      it("says ENOENT for a missing file to read or write, and EEXIST for a taken name to create", async () => {
        await create(at("a"), "");
        expect(await failure(disk.open(at("missing"), "read"))).toBe("ENOENT");
        expect(await failure(disk.open(at("missing"), "write"))).toBe("ENOENT");
        expect(await failure(disk.open(at("a"), "create"))).toBe("EEXIST");
        expect(await disk.canOpen(at("missing"))).toBe(false);
      });

      it("reads from any offset, and less at the end of the file", async () => {
        await create(at("a"), "0123456789");
        const file = await disk.open(at("a"), "read");
        expect(textOf(await file.read(3, 4))).toBe("3456");
        expect(textOf(await file.read(8, 100))).toBe("89");
        expect(await file.read(10, 1)).toHaveLength(0);
        expect(await file.read(500, 1)).toHaveLength(0);
        await file.close();
      });

      it("reads in bulk what it reads otherwise, and only what is there", async () => {
        await create(at("a"), "0123456789");
        const file = await disk.open(at("a"), "read", { isBulk: true });
        expect(textOf(await file.read(0, 100))).toBe("0123456789");
        expect(["EBADF", "EPERM"]).toContain(await failure(file.write(0, bytesOf("x"))));
        await file.close();
        expect(await failure(disk.open(at("missing"), "read", { isBulk: true }))).toBe("ENOENT");
      });

      it("writes all bytes at any offset and keeps those around them", async () => {
        const file = await disk.open(at("a"), "create");
        await file.write(0, bytesOf("0123456789"));
        await file.write(2, bytesOf("xy"));
        await file.write(12, bytesOf("end"));
        await file.sync();
        expect(textOf(await file.read(0, 100))).toBe("01xy456789\0\0end");
        await file.close();
        const again = await disk.open(at("a"), "write");
        await again.write(0, bytesOf("A"));
        await again.close();
        expect(await read(at("a"))).toBe("A1xy456789\0\0end");
      });

      it("refuses to write through a handle that was opened to read", async () => {
        await create(at("a"), "kept");
        const file = await disk.open(at("a"), "read");
        expect(["EBADF", "EPERM"]).toContain(await failure(file.write(0, bytesOf("x"))));
        await file.close();
        expect(await read(at("a"))).toBe("kept");
      });

      it("does nothing when there is nothing to write, also behind the end of the file", async () => {
        const file = await disk.open(at("a"), "create");
        await file.write(10, new Uint8Array());
        expect((await file.stat()).size).toBe(0);
        await file.close();
      });

      it("keeps what was written as it was when the caller changes its buffer afterwards, and gives bytes that may be changed", async () => {
        const file = await disk.open(at("a"), "create");
        const bytes = bytesOf("before");
        await file.write(0, bytes);
        bytes.fill(0);
        (await file.read(0, 10)).fill(0);
        await file.sync();
        expect(textOf(await file.read(0, 10))).toBe("before");
        await file.close();
        expect(await read(at("a"))).toBe("before");
      });

      it("keeps a handle valid when its name is removed or moved", async () => {
        await create(at("a"), "gone");
        await create(at("b"), "moved");
        const [gone, moved] = [await disk.open(at("a"), "read"), await disk.open(at("b"), "write")];
        await disk.unlink(at("a"));
        await disk.rename(at("b"), at("c"));
        await moved.write(0, bytesOf("MOVED"));
        expect(textOf(await gone.read(0, 10))).toBe("gone");
        expect(await read(at("c"))).toBe("MOVED");
        await Promise.all([gone.close(), moved.close()]);
      });

      it("closes any number of times, and refuses the handle afterwards", async () => {
        const file = await disk.open(at("a"), "create");
        await Promise.all([file.close(), file.close()]);
        await file.close();
        // Which may well get the descriptor that was just given back.
        const next = await disk.open(at("next"), "create");
        expect(await failure(file.write(0, bytesOf("x")))).toBe("EBADF");
        expect(await failure(file.read(0, 1))).toBe("EBADF");
        await next.close();
        expect(await read(at("next"))).toBe("");
      });
    });

    describe("link", () => {
      it("gives a file a second name that outlives the first", async () => {
        await create(at("a"), "content");
        await disk.link(at("a"), at("b"));
        const [a, b] = [await disk.stat(at("a")), await disk.stat(at("b"))];
        expect(a.identity).toBe(b.identity);
        await disk.unlink(at("a"));
        expect(await read(at("b"))).toBe("content");
      });

      it("says EEXIST and changes nothing when the name is taken", async () => {
        await create(at("a"), "mine");
        await create(at("b"), "theirs");
        await disk.mkdir(at("d"));
        expect(await failure(disk.link(at("a"), at("b")))).toBe("EEXIST");
        expect(await failure(disk.link(at("a"), at("d")))).toBe("EEXIST");
        expect(await read(at("b"))).toBe("theirs");
      });

      it("says ENOENT when the file or the directory of the new name is missing", async () => {
        await create(at("a"), "");
        expect(await failure(disk.link(at("missing"), at("b")))).toBe("ENOENT");
        expect(await failure(disk.link(at("a"), at("missing", "b")))).toBe("ENOENT");
      });

      it("lets one of many callers win a name", async () => {
        const names = ["1", "2", "3", "4", "5", "6"];
        for (const name of names) await create(at(name), name);
        const results = await Promise.allSettled(names.map((name) => disk.link(at(name), at("won"))));
        expect(results.filter((result) => result.status === "fulfilled")).toHaveLength(1);
        expect(await read(at("won"))).toBe(names[results.findIndex((result) => result.status === "fulfilled")]);
      });
    });

    describe("rename", () => {
      it("moves a file, replacing the one that is there", async () => {
        await create(at("a"), "new");
        await create(at("b"), "old");
        await disk.rename(at("a"), at("b"));
        expect(await read(at("b"))).toBe("new");
        expect(await disk.list(root)).toEqual(["b"]);
      });

      it("does nothing when both names are the same file", async () => {
        await create(at("a"), "content");
        await disk.link(at("a"), at("b"));
        await disk.rename(at("a"), at("b"));
        await disk.rename(at("b"), at("b"));
        expect((await disk.list(root)).sort()).toEqual(["a", "b"]);
        expect(await read(at("a"))).toBe("content");
      });

      it("refuses to move a directory into itself, and to put a file and a directory in each other's place", async () => {
        await disk.mkdir(at("d"));
        await create(at("a"), "");
        expect(await failure(disk.rename(at("d"), at("d", "inner")))).toBe("EINVAL");
        expect(await failure(disk.rename(at("d"), at("a")))).toBe("ENOTDIR");
        expect(await failure(disk.rename(at("a"), at("d")))).toBe("EISDIR");
        expect((await disk.list(root)).sort()).toEqual(["a", "d"]);
      });

      it("moves a directory with what is in it, also over an empty one", async () => {
        await disk.mkdir(at("d"));
        await disk.mkdir(at("e"));
        await create(at("d", "a"), "inside");
        await disk.rename(at("d"), at("e"));
        expect(await read(at("e", "a"))).toBe("inside");
        expect(await disk.list(root)).toEqual(["e"]);
      });

      it("says ENOTEMPTY or EEXIST for a directory that has something in it", async () => {
        await disk.mkdir(at("d"));
        await disk.mkdir(at("e"));
        await create(at("e", "a"), "");
        expect(["ENOTEMPTY", "EEXIST"]).toContain(await failure(disk.rename(at("d"), at("e"))));
      });

      it("says ENOENT when the source or the target's directory is missing", async () => {
        await create(at("a"), "");
        expect(await failure(disk.rename(at("missing"), at("b")))).toBe("ENOENT");
        expect(await failure(disk.rename(at("a"), at("missing", "b")))).toBe("ENOENT");
      });
    });

    describe("unlink", () => {
      it("removes a name, and says ENOENT when it is gone and ENOTDIR below a file", async () => {
        await create(at("a"), "");
        await create(at("b"), "");
        await disk.unlink(at("a"));
        expect(await disk.list(root)).toEqual(["b"]);
        expect(await failure(disk.unlink(at("a")))).toBe("ENOENT");
        expect(await failure(disk.unlink(at("b", "c")))).toBe("ENOTDIR");
      });
    });

    describe("directories", () => {
      it("are made one at a time: EEXIST when the name is taken, ENOENT when the parent is missing", async () => {
        await disk.mkdir(at("d"));
        await create(at("a"), "");
        expect(await failure(disk.mkdir(at("d")))).toBe("EEXIST");
        expect(await failure(disk.mkdir(at("a")))).toBe("EEXIST");
        expect(await failure(disk.mkdir(at("missing", "d")))).toBe("ENOENT");
        expect(await failure(disk.mkdir(at("a", "d")))).toBe("ENOTDIR");
      });

      it("are removed only when empty: ENOTEMPTY otherwise, ENOENT when missing, ENOTDIR for a file", async () => {
        await disk.mkdir(at("d"));
        await create(at("d", "a"), "");
        expect(await failure(disk.rmdir(at("d")))).toBe("ENOTEMPTY");
        expect(await failure(disk.rmdir(at("missing")))).toBe("ENOENT");
        expect(await failure(disk.rmdir(at("d", "a")))).toBe("ENOTDIR");
        await disk.unlink(at("d", "a"));
        await disk.rmdir(at("d"));
        expect(await disk.list(root)).toEqual([]);
      });

      it("list exactly the names in them: ENOENT when missing, ENOTDIR for a file", async () => {
        await disk.mkdir(at("d"));
        await create(at("a"), "");
        await create(at("d", "inner"), "");
        expect((await disk.list(root)).sort()).toEqual(["a", "d"]);
        expect(await disk.list(at("d"))).toEqual(["inner"]);
        expect(await failure(disk.list(at("missing")))).toBe("ENOENT");
        expect(await failure(disk.list(at("a")))).toBe("ENOTDIR");
      });

      it("list as many names as are asked for, each once, and fewer only when there are no more", async () => {
        const names = Array.from({ length: 40 }, (_, i) => `name-${i}`);
        for (const name of names) await create(at(name), "");
        const some = await disk.listSome(root, 7);
        expect(new Set(some).size).toBe(7);
        expect(names).toEqual(expect.arrayContaining(some));
        for (const count of [40, 1000]) expect((await disk.listSome(root, count)).sort()).toEqual([...names].sort());
        expect(await disk.listSome(root, 0)).toEqual([]);
        expect(await failure(disk.listSome(at("missing"), 7))).toBe("ENOENT");
        expect(await failure(disk.listSome(at("name-0"), 7))).toBe("ENOTDIR");
      });

      it("can be synced: ENOENT when missing", async () => {
        await disk.mkdir(at("d"));
        await disk.syncDirectory(at("d"));
        await disk.syncDirectory(root);
        if (process.platform !== "win32") expect(await failure(disk.syncDirectory(at("missing")))).toBe("ENOENT");
      });
    });

    describe("stat", () => {
      it("tells kind, size and identity, by name and by handle alike", async () => {
        await create(at("a"), "12345");
        await create(at("b"), "12345");
        const file = await disk.open(at("a"), "read");
        const [a, b, handle] = [await disk.stat(at("a")), await disk.stat(at("b")), await file.stat()];
        await file.close();
        expect(a).toMatchObject({ kind: "file", size: 5 });
        expect(handle).toEqual(a);
        expect(b.identity).not.toBe(a.identity);
        expect((await disk.stat(root)).identity).not.toBe(a.identity);
        expect((await disk.stat(root)).kind).toBe("directory");
        expect(await failure(disk.stat(at("missing")))).toBe("ENOENT");
      });

      it("stamps a later write with a time that is not earlier", async () => {
        await create(at("a"), "");
        const before = await disk.stat(at("a"));
        const file = await disk.open(at("a"), "write");
        await file.write(0, bytesOf("x"));
        await file.close();
        expect((await disk.stat(at("a"))).mtimeMs).toBeGreaterThanOrEqual(before.mtimeMs);
      });
    });

    describe("findStat", () => {
      it("tells what stat tells, and undefined of a name that is missing or lies below a file", async () => {
        await create(at("a"), "12345");
        for (const path of [at("a"), root]) expect(await disk.findStat(path)).toEqual(await disk.stat(path));
        for (const path of [at("missing"), at("missing", "b"), at("a", "b")])
          expect(await disk.findStat(path)).toBeUndefined();
      });
    });

    describe("look", () => {
      it("tells what stat tells of a file and of a directory", async () => {
        await create(at("a"), "12345");
        await disk.mkdir(at("d"));
        for (const path of [at("a"), at("d"), root]) expect(await disk.look(path)).toEqual(await disk.stat(path));
      });

      it("says ENOENT for what is missing, and ENOTDIR below a file", async () => {
        await create(at("a"), "");
        expect(await failure(disk.look(at("missing")))).toBe("ENOENT");
        expect(await failure(disk.look(at("missing", "b")))).toBe("ENOENT");
        expect(await failure(disk.look(at("a", "b")))).toBe("ENOTDIR");
      });
    });

    describe("hasLink", () => {
      it("says no of plain names, whether they are there or not", async () => {
        await disk.mkdir(at("d"));
        for (const path of ["d", "d/missing", "missing/below"]) expect(await disk.hasLink(root, path)).toBe(false);
      });
    });

    describe("realPath", () => {
      it("gives back an existing path without links, and says ENOENT when it is missing and ENOTDIR below a file", async () => {
        await create(at("a"), "");
        await disk.mkdir(at("d"));
        const real = await disk.realPath(root);
        expect(await disk.realPath(at("a"))).toBe(posix.join(real, "a"));
        expect(await disk.realPath(at("d"))).toBe(posix.join(real, "d"));
        expect(await failure(disk.realPath(at("missing")))).toBe("ENOENT");
        expect(await failure(disk.realPath(at("a", "b")))).toBe("ENOTDIR");
      });
    });

    describe("readLink", () => {
      it("says EINVAL for what is no link and ENOENT for what is not there", async () => {
        await create(at("a"), "");
        expect(await failure(disk.readLink(at("a")))).toBe("EINVAL");
        expect(await failure(disk.readLink(root))).toBe("EINVAL");
        expect(await failure(disk.readLink(at("missing")))).toBe("ENOENT");
      });
    });

    it("names the path and the POSIX errno in every error", async () => {
      const error: unknown = await disk.readFile(at("missing"), 1).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ name: "HoldfastError", code: "IO_ERROR", errno: "ENOENT", path: at("missing") });
      expect(String(error)).toContain(at("missing"));
    });
  });
}
