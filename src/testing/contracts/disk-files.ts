// The contract of every disk for the contents of files: creating, reading and opening them.
import assert from "node:assert/strict";
import type { Contract } from "./contract.ts";
import { bytesOf, failure, textOf, type DiskWorld } from "./disk-world.ts";

export function checkFiles(contract: Contract<DiskWorld>): void {
  contract.group("createFile", () => {
    contract.check("makes a file with exactly the given bytes, synced or not", async ({ disk, at, create, read }) => {
      await create(at("a"), "plain");
      await disk.createFile(at("b"), bytesOf("synced"), { sync: true });
      await create(at("empty"), "");
      assert.deepEqual([await read(at("a")), await read(at("b")), await read(at("empty"))], ["plain", "synced", ""]);
    });

    contract.check(
      "says EEXIST and leaves what is there when the name is taken by a file or a directory",
      async ({ disk, at, create, read }) => {
        await create(at("a"), "first");
        await disk.mkdir(at("d"));
        assert.equal(await failure(create(at("a"), "second")), "EEXIST");
        assert.equal(await failure(create(at("d"), "second")), "EEXIST");
        assert.equal(await read(at("a")), "first");
      },
    );

    contract.check("lets one of many callers win a name", async ({ at, create, read }) => {
      const results = await Promise.allSettled(Array.from({ length: 8 }, (_, i) => create(at("a"), `${i}`)));
      assert.equal(results.filter((result) => result.status === "fulfilled").length, 1);
      const winner = results.findIndex((result) => result.status === "fulfilled");
      assert.equal(await read(at("a")), `${winner}`);
    });

    contract.check(
      "says ENOENT when the directory is missing and ENOTDIR when it is a file",
      async ({ at, create }) => {
        await create(at("a"), "");
        assert.equal(await failure(create(at("missing", "b"), "")), "ENOENT");
        assert.equal(await failure(create(at("a", "b"), "")), "ENOTDIR");
      },
    );

    contract.check(
      "keeps the bytes as they were when the caller changes its buffer afterwards",
      async ({ disk, at, read }) => {
        const bytes = bytesOf("before");
        await disk.createFile(at("a"), bytes, { sync: false });
        bytes.fill(0);
        assert.equal(await read(at("a")), "before");
      },
    );
  });

  contract.group("readFile", () => {
    contract.check(
      "gives a file of exactly bytesMax and says EFBIG for one byte more",
      async ({ disk, at, create }) => {
        await create(at("a"), "12345");
        assert.equal(textOf(await disk.readFile(at("a"), 5)), "12345");
        assert.equal(await failure(disk.readFile(at("a"), 4)), "EFBIG");
      },
    );

    contract.check(
      "says ENOENT, ENOTDIR or EISDIR when there is no file to read",
      async ({ disk, root, at, create }) => {
        await create(at("a"), "");
        assert.equal(await failure(disk.readFile(at("missing"), 10)), "ENOENT");
        assert.equal(await failure(disk.readFile(at("a", "b"), 10)), "ENOTDIR");
        assert.equal(await failure(disk.readFile(root, 10)), "EISDIR");
      },
    );

    contract.check(
      "gives bytes that the caller may change without changing the file",
      async ({ disk, at, create, read }) => {
        await create(at("a"), "before");
        (await disk.readFile(at("a"), 10)).fill(0);
        assert.equal(await read(at("a")), "before");
      },
    );
  });

  contract.group("canOpen", () => {
    contract.check(
      "is true for a file that is there and false for a name that is not, or lies below a file",
      async ({ disk, at, create }) => {
        await create(at("a"), "");
        assert.equal(await disk.canOpen(at("a")), true);
        assert.equal(await disk.canOpen(at("missing")), false);
        assert.equal(await disk.canOpen(at("a", "b")), false);
        await disk.unlink(at("a"));
        assert.equal(await disk.canOpen(at("a")), false);
      },
    );
  });

  contract.group("open", () => {
    contract.check(
      "says ENOENT for a missing file to read or write, and EEXIST for a taken name to create",
      async ({ disk, at, create }) => {
        await create(at("a"), "");
        assert.equal(await failure(disk.open(at("missing"), "read")), "ENOENT");
        assert.equal(await failure(disk.open(at("missing"), "write")), "ENOENT");
        assert.equal(await failure(disk.open(at("a"), "create")), "EEXIST");
        assert.equal(await disk.canOpen(at("missing")), false);
      },
    );

    contract.check("reads from any offset, and less at the end of the file", async ({ disk, at, create }) => {
      await create(at("a"), "0123456789");
      const file = await disk.open(at("a"), "read");
      assert.equal(textOf(await file.read(3, 4)), "3456");
      assert.equal(textOf(await file.read(8, 100)), "89");
      assert.equal((await file.read(10, 1)).length, 0);
      assert.equal((await file.read(500, 1)).length, 0);
      await file.close();
    });

    contract.check("reads in bulk what it reads otherwise, and only what is there", async ({ disk, at, create }) => {
      await create(at("a"), "0123456789");
      const file = await disk.open(at("a"), "read", { isBulk: true });
      assert.equal(textOf(await file.read(0, 100)), "0123456789");
      assert.ok(["EBADF", "EPERM"].includes(await failure(file.write(0, bytesOf("x")))));
      await file.close();
      assert.equal(await failure(disk.open(at("missing"), "read", { isBulk: true })), "ENOENT");
    });

    contract.check("writes all bytes at any offset and keeps those around them", async ({ disk, at, read }) => {
      const file = await disk.open(at("a"), "create");
      await file.write(0, bytesOf("0123456789"));
      await file.write(2, bytesOf("xy"));
      await file.write(12, bytesOf("end"));
      await file.sync();
      assert.equal(textOf(await file.read(0, 100)), "01xy456789\0\0end");
      await file.close();
      const again = await disk.open(at("a"), "write");
      await again.write(0, bytesOf("A"));
      await again.close();
      assert.equal(await read(at("a")), "A1xy456789\0\0end");
    });

    contract.check("refuses to write through a handle that was opened to read", async ({ disk, at, create, read }) => {
      await create(at("a"), "kept");
      const file = await disk.open(at("a"), "read");
      assert.ok(["EBADF", "EPERM"].includes(await failure(file.write(0, bytesOf("x")))));
      await file.close();
      assert.equal(await read(at("a")), "kept");
    });

    contract.check(
      "does nothing when there is nothing to write, also behind the end of the file",
      async ({ disk, at }) => {
        const file = await disk.open(at("a"), "create");
        await file.write(10, new Uint8Array());
        assert.equal((await file.stat()).size, 0);
        await file.close();
      },
    );

    contract.check(
      "keeps what was written as it was when the caller changes its buffer afterwards, and gives bytes that may be changed",
      async ({ disk, at, read }) => {
        const file = await disk.open(at("a"), "create");
        const bytes = bytesOf("before");
        await file.write(0, bytes);
        bytes.fill(0);
        (await file.read(0, 10)).fill(0);
        await file.sync();
        assert.equal(textOf(await file.read(0, 10)), "before");
        await file.close();
        assert.equal(await read(at("a")), "before");
      },
    );

    contract.check("keeps a handle valid when its name is removed or moved", async ({ disk, at, create, read }) => {
      await create(at("a"), "gone");
      await create(at("b"), "moved");
      const [gone, moved] = [await disk.open(at("a"), "read"), await disk.open(at("b"), "write")];
      await disk.unlink(at("a"));
      await disk.rename(at("b"), at("c"));
      await moved.write(0, bytesOf("MOVED"));
      assert.equal(textOf(await gone.read(0, 10)), "gone");
      assert.equal(await read(at("c")), "MOVED");
      await Promise.all([gone.close(), moved.close()]);
    });

    contract.check("closes any number of times, and refuses the handle afterwards", async ({ disk, at, read }) => {
      const file = await disk.open(at("a"), "create");
      await Promise.all([file.close(), file.close()]);
      await file.close();
      // The new file may get the descriptor that was just closed.
      const next = await disk.open(at("next"), "create");
      assert.equal(await failure(file.write(0, bytesOf("x"))), "EBADF");
      assert.equal(await failure(file.read(0, 1)), "EBADF");
      await next.close();
      assert.equal(await read(at("next")), "");
    });
  });
}
