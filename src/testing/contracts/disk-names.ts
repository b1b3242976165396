// The contract of every disk for names: links, renames, directories, and their metadata.
import assert from "node:assert/strict";
import { posix } from "node:path";
import { assertHas, type Contract } from "./contract.ts";
import { bytesOf, failure, type DiskWorld } from "./disk-world.ts";

export function checkNames(contract: Contract<DiskWorld>): void {
  contract.group("link", () => {
    contract.check("gives a file a second name that outlives the first", async ({ disk, at, create, read }) => {
      await create(at("a"), "content");
      await disk.link(at("a"), at("b"));
      const [a, b] = [await disk.stat(at("a")), await disk.stat(at("b"))];
      assert.equal(a.identity, b.identity);
      await disk.unlink(at("a"));
      assert.equal(await read(at("b")), "content");
    });

    contract.check("says EEXIST and changes nothing when the name is taken", async ({ disk, at, create, read }) => {
      await create(at("a"), "mine");
      await create(at("b"), "theirs");
      await disk.mkdir(at("d"));
      assert.equal(await failure(disk.link(at("a"), at("b"))), "EEXIST");
      assert.equal(await failure(disk.link(at("a"), at("d"))), "EEXIST");
      assert.equal(await read(at("b")), "theirs");
    });

    contract.check(
      "says ENOENT when the file or the directory of the new name is missing",
      async ({ disk, at, create }) => {
        await create(at("a"), "");
        assert.equal(await failure(disk.link(at("missing"), at("b"))), "ENOENT");
        assert.equal(await failure(disk.link(at("a"), at("missing", "b"))), "ENOENT");
      },
    );

    contract.check("lets one of many callers win a name", async ({ disk, at, create, read }) => {
      const names = ["1", "2", "3", "4", "5", "6"];
      for (const name of names) await create(at(name), name);
      const results = await Promise.allSettled(names.map((name) => disk.link(at(name), at("won"))));
      assert.equal(results.filter((result) => result.status === "fulfilled").length, 1);
      assert.equal(await read(at("won")), names[results.findIndex((result) => result.status === "fulfilled")]);
    });
  });

  contract.group("rename", () => {
    contract.check("moves a file, replacing the one that is there", async ({ disk, root, at, create, read }) => {
      await create(at("a"), "new");
      await create(at("b"), "old");
      await disk.rename(at("a"), at("b"));
      assert.equal(await read(at("b")), "new");
      assert.deepEqual(await disk.list(root), ["b"]);
    });

    contract.check("does nothing when both names are the same file", async ({ disk, root, at, create, read }) => {
      await create(at("a"), "content");
      await disk.link(at("a"), at("b"));
      await disk.rename(at("a"), at("b"));
      await disk.rename(at("b"), at("b"));
      assert.deepEqual((await disk.list(root)).sort(), ["a", "b"]);
      assert.equal(await read(at("a")), "content");
    });

    contract.check(
      "refuses to move a directory into itself, and to put a file and a directory in each other's place",
      async ({ disk, root, at, create }) => {
        await disk.mkdir(at("d"));
        await create(at("a"), "");
        assert.equal(await failure(disk.rename(at("d"), at("d", "inner"))), "EINVAL");
        assert.equal(await failure(disk.rename(at("d"), at("a"))), "ENOTDIR");
        assert.equal(await failure(disk.rename(at("a"), at("d"))), "EISDIR");
        assert.deepEqual((await disk.list(root)).sort(), ["a", "d"]);
      },
    );

    contract.check(
      "moves a directory with what is in it, also over an empty one",
      async ({ disk, root, at, create, read }) => {
        await disk.mkdir(at("d"));
        await disk.mkdir(at("e"));
        await create(at("d", "a"), "inside");
        await disk.rename(at("d"), at("e"));
        assert.equal(await read(at("e", "a")), "inside");
        assert.deepEqual(await disk.list(root), ["e"]);
      },
    );

    contract.check(
      "says ENOTEMPTY or EEXIST for a directory that has something in it",
      async ({ disk, at, create }) => {
        await disk.mkdir(at("d"));
        await disk.mkdir(at("e"));
        await create(at("e", "a"), "");
        assert.ok(["ENOTEMPTY", "EEXIST"].includes(await failure(disk.rename(at("d"), at("e")))));
      },
    );

    contract.check("says ENOENT when the source or the target's directory is missing", async ({ disk, at, create }) => {
      await create(at("a"), "");
      assert.equal(await failure(disk.rename(at("missing"), at("b"))), "ENOENT");
      assert.equal(await failure(disk.rename(at("a"), at("missing", "b"))), "ENOENT");
    });
  });

  contract.group("unlink", () => {
    contract.check(
      "removes a name, and says ENOENT when it is gone and ENOTDIR below a file",
      async ({ disk, root, at, create }) => {
        await create(at("a"), "");
        await create(at("b"), "");
        await disk.unlink(at("a"));
        assert.deepEqual(await disk.list(root), ["b"]);
        assert.equal(await failure(disk.unlink(at("a"))), "ENOENT");
        assert.equal(await failure(disk.unlink(at("b", "c"))), "ENOTDIR");
      },
    );
  });

  contract.group("directories", () => {
    contract.check(
      "are made one at a time: EEXIST when the name is taken, ENOENT when the parent is missing",
      async ({ disk, at, create }) => {
        await disk.mkdir(at("d"));
        await create(at("a"), "");
        assert.equal(await failure(disk.mkdir(at("d"))), "EEXIST");
        assert.equal(await failure(disk.mkdir(at("a"))), "EEXIST");
        assert.equal(await failure(disk.mkdir(at("missing", "d"))), "ENOENT");
        assert.equal(await failure(disk.mkdir(at("a", "d"))), "ENOTDIR");
      },
    );

    contract.check(
      "are removed only when empty: ENOTEMPTY otherwise, ENOENT when missing, ENOTDIR for a file",
      async ({ disk, root, at, create }) => {
        await disk.mkdir(at("d"));
        await create(at("d", "a"), "");
        assert.equal(await failure(disk.rmdir(at("d"))), "ENOTEMPTY");
        assert.equal(await failure(disk.rmdir(at("missing"))), "ENOENT");
        assert.equal(await failure(disk.rmdir(at("d", "a"))), "ENOTDIR");
        await disk.unlink(at("d", "a"));
        await disk.rmdir(at("d"));
        assert.deepEqual(await disk.list(root), []);
      },
    );

    contract.check(
      "list exactly the names in them: ENOENT when missing, ENOTDIR for a file",
      async ({ disk, root, at, create }) => {
        await disk.mkdir(at("d"));
        await create(at("a"), "");
        await create(at("d", "inner"), "");
        assert.deepEqual((await disk.list(root)).sort(), ["a", "d"]);
        assert.deepEqual(await disk.list(at("d")), ["inner"]);
        assert.equal(await failure(disk.list(at("missing"))), "ENOENT");
        assert.equal(await failure(disk.list(at("a"))), "ENOTDIR");
      },
    );

    contract.check(
      "list as many names as are asked for, each once, and fewer only when there are no more",
      async ({ disk, root, at, create }) => {
        const names = Array.from({ length: 40 }, (_, i) => `name-${i}`);
        for (const name of names) await create(at(name), "");
        const some = await disk.listSome(root, 7);
        assert.equal(new Set(some).size, 7);
        assert.ok(some.every((name) => names.includes(name)));
        for (const count of [40, 1000]) assert.deepEqual((await disk.listSome(root, count)).sort(), [...names].sort());
        assert.deepEqual(await disk.listSome(root, 0), []);
        assert.equal(await failure(disk.listSome(at("missing"), 7)), "ENOENT");
        assert.equal(await failure(disk.listSome(at("name-0"), 7)), "ENOTDIR");
      },
    );

    contract.check("can be synced: ENOENT when missing", async ({ disk, root, at }) => {
      await disk.mkdir(at("d"));
      await disk.syncDirectory(at("d"));
      await disk.syncDirectory(root);
      if (process.platform !== "win32") assert.equal(await failure(disk.syncDirectory(at("missing"))), "ENOENT");
    });
  });

  contract.group("stat", () => {
    contract.check("tells kind, size and identity, by name and by handle alike", async ({ disk, root, at, create }) => {
      await create(at("a"), "12345");
      await create(at("b"), "12345");
      const file = await disk.open(at("a"), "read");
      const [a, b, handle] = [await disk.stat(at("a")), await disk.stat(at("b")), await file.stat()];
      await file.close();
      assertHas(a, { kind: "file", size: 5 });
      assert.deepEqual(handle, a);
      assert.notEqual(b.identity, a.identity);
      assert.notEqual((await disk.stat(root)).identity, a.identity);
      assert.equal((await disk.stat(root)).kind, "directory");
      assert.equal(await failure(disk.stat(at("missing"))), "ENOENT");
    });

    contract.check("stamps a later write with a time that is not earlier", async ({ disk, at, create }) => {
      await create(at("a"), "");
      const before = await disk.stat(at("a"));
      const file = await disk.open(at("a"), "write");
      await file.write(0, bytesOf("x"));
      await file.close();
      assert.ok((await disk.stat(at("a"))).mtimeMs >= before.mtimeMs);
    });
  });

  contract.group("findStat", () => {
    contract.check(
      "tells what stat tells, and undefined of a name that is missing or lies below a file",
      async ({ disk, root, at, create }) => {
        await create(at("a"), "12345");
        for (const path of [at("a"), root]) assert.deepEqual(await disk.findStat(path), await disk.stat(path));
        for (const path of [at("missing"), at("missing", "b"), at("a", "b")])
          assert.equal(await disk.findStat(path), undefined);
      },
    );
  });

  contract.group("look", () => {
    contract.check("tells what stat tells of a file and of a directory", async ({ disk, root, at, create }) => {
      await create(at("a"), "12345");
      await disk.mkdir(at("d"));
      for (const path of [at("a"), at("d"), root]) assert.deepEqual(await disk.look(path), await disk.stat(path));
    });

    contract.check("says ENOENT for what is missing, and ENOTDIR below a file", async ({ disk, at, create }) => {
      await create(at("a"), "");
      assert.equal(await failure(disk.look(at("missing"))), "ENOENT");
      assert.equal(await failure(disk.look(at("missing", "b"))), "ENOENT");
      assert.equal(await failure(disk.look(at("a", "b"))), "ENOTDIR");
    });
  });

  contract.group("hasLink", () => {
    contract.check("says no of plain names, whether they are there or not", async ({ disk, root, at }) => {
      await disk.mkdir(at("d"));
      for (const path of ["d", "d/missing", "missing/below"]) assert.equal(await disk.hasLink(root, path), false);
    });
  });

  contract.group("realPath", () => {
    contract.check(
      "gives back an existing path without links, and says ENOENT when it is missing and ENOTDIR below a file",
      async ({ disk, root, at, create }) => {
        await create(at("a"), "");
        await disk.mkdir(at("d"));
        const real = await disk.realPath(root);
        assert.equal(await disk.realPath(at("a")), posix.join(real, "a"));
        assert.equal(await disk.realPath(at("d")), posix.join(real, "d"));
        assert.equal(await failure(disk.realPath(at("missing"))), "ENOENT");
        assert.equal(await failure(disk.realPath(at("a", "b"))), "ENOTDIR");
      },
    );
  });

  contract.group("readLink", () => {
    contract.check(
      "says EINVAL for what is no link and ENOENT for what is not there",
      async ({ disk, root, at, create }) => {
        await create(at("a"), "");
        assert.equal(await failure(disk.readLink(at("a"))), "EINVAL");
        assert.equal(await failure(disk.readLink(root)), "EINVAL");
        assert.equal(await failure(disk.readLink(at("missing"))), "ENOENT");
      },
    );
  });

  contract.check("names the path and the POSIX errno in every error", async ({ disk, at }) => {
    const error: unknown = await disk.readFile(at("missing"), 1).catch((reason: unknown) => reason);
    assertHas(error, { name: "HoldfastError", code: "IO_ERROR", errno: "ENOENT", path: at("missing") });
    assert.ok(String(error).includes(at("missing")));
  });
}
