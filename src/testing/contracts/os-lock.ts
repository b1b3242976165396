// The contract of src/ports/os-lock.ts as checks that every OS lock must pass within one kernel.
import assert from "node:assert/strict";
import { posix } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Disk } from "../../ports/disk.ts";
import type { OsLock, OsLockFile } from "../../ports/os-lock.ts";
import { Contract, type ContractCheck } from "./contract.ts";

/** Options of `osLockContract`. */
export interface OsLockContractOptions {
  /** True for a lock on a share: it may be granted on a file that was replaced, so it only reduces contention. Default false. */
  readonly isShare?: boolean;
  /** True if the lock writes notes. Default: true, and false on a share. */
  readonly hasNotes?: boolean;
}

/** An OS lock to check. */
export interface OsLockSite {
  /** The OS lock. */
  readonly osLock: OsLock;
  /** The disk of the lock files. */
  readonly disk: Disk;
  /** An existing, empty directory. */
  readonly directory: string;
  /** Called after the check, to clean up. */
  readonly end?: () => Promise<void>;
}

interface OsLockWorld extends OsLockSite {
  readonly at: (...names: readonly string[]) => string;
  /** Opens a lock file, which is closed after the check. */
  readonly open: (path: string) => Promise<OsLockFile>;
  /** Registers an action to run after the check. */
  readonly later: (action: () => Promise<void>) => void;
}

/** Returns the checks that every `OsLock` must pass. `makeSite` is called for each check. */
export function osLockContract(
  makeSite: () => Promise<OsLockSite>,
  { isShare = false, hasNotes = !isShare }: OsLockContractOptions = {},
): ContractCheck[] {
  const contract = new Contract<OsLockWorld>(async (run) => {
    const site = await makeSite();
    const cleanups: (() => Promise<void>)[] = site.end === undefined ? [] : [site.end];
    const later = (action: () => Promise<void>): void => void cleanups.push(action);
    const open = async (path: string): Promise<OsLockFile> => {
      const file = await site.osLock.open(path);
      later(() => file.close());
      return file;
    };
    try {
      await run({ ...site, at: (...names) => posix.join(site.directory, ...names), open, later });
    } finally {
      for (const action of cleanups.reverse()) await action();
    }
  });

  contract.check(
    "makes its file, keeps what is in it, and leaves it readable while locked",
    async ({ disk, directory, at, open }) => {
      const made = await open(at("made"));
      assert.deepEqual(await disk.list(directory), ["made"]);
      await disk.createFile(at("kept"), new TextEncoder().encode("content"), { sync: false });
      const kept = await open(at("kept"));
      await kept.lock();
      assert.equal(new TextDecoder().decode(await disk.readFile(at("kept"), 100)), "content");
      await made.close();
      assert.equal(await disk.canOpen(at("made")), true);
    },
  );

  contract.check("excludes another descriptor of the same process until it is unlocked", async ({ at, open }) => {
    const [a, b] = [await open(at("lock")), await open(at("lock"))];
    assert.equal(await a.tryLock(), true);
    assert.equal(await b.tryLock(), false);
    await a.unlock();
    assert.equal(await b.tryLock(), true);
    assert.equal(await a.tryLock(), false);
  });

  contract.check("does not exclude a process that locks another file", async ({ at, open }) => {
    const [a, b] = [await open(at("lock")), await open(at("other"))];
    assert.deepEqual([await a.tryLock(), await b.tryLock()], [true, true]);
  });

  contract.check("is a lock of the file, not of its name", async ({ disk, at, open }) => {
    const old = await open(at("lock"));
    await old.lock();
    await disk.rename(at("lock"), at("moved"));
    const [moved, made] = [await open(at("moved")), await open(at("lock"))];
    assert.equal(await moved.tryLock(), false);
    assert.equal(await made.tryLock(), true);
  });

  contract.check(
    "excludes a later process after its file was deleted, through whatever was opened before",
    async ({ disk, at, open }) => {
      const [early, other] = [await open(at("lock")), await open(at("lock"))];
      await early.lock();
      await early.unlock();
      for (let deletion = 0; deletion < 3; deletion++) {
        await disk.unlink(at("lock"));
        assert.equal(await early.tryLock(), true);
        const late = await open(at("lock"));
        assert.deepEqual([await late.tryLock(), await other.tryLock()], [false, false]);
        await early.unlock();
        assert.deepEqual([await late.tryLock(), await early.tryLock()], [true, false]);
        await late.close();
        await early.unlock();
      }
    },
  );

  contract.check(
    "is made again when its file was moved away, and locked where the name leads",
    async ({ disk, at, open }) => {
      const early = await open(at("lock"));
      await early.lock();
      await early.unlock();
      await disk.rename(at("lock"), at("moved"));
      assert.equal(await early.tryLock(), true);
      const [moved, late] = [await open(at("moved")), await open(at("lock"))];
      assert.deepEqual([await moved.tryLock(), await late.tryLock()], [true, false]);
    },
  );

  if (!isShare)
    contract.check(
      "is not granted to a waiter whose file was deleted before its turn came",
      async ({ disk, at, open }) => {
        const [holder, waiter] = [await open(at("lock")), await open(at("lock"))];
        await holder.lock();
        const waiting = waiter.lock();
        // Let time pass, so that the waiter has begun to wait.
        await sleep(20);
        await disk.unlink(at("lock"));
        const late = await open(at("lock"));
        assert.equal(await late.tryLock(), true);
        await holder.unlock();
        // Let time pass, long enough for a grant that must not come.
        const first = await Promise.race([waiting.then(() => "waiter"), sleep(50).then(() => "nobody")]);
        assert.equal(first, "nobody");
        await late.unlock();
        await waiting;
        assert.equal(await late.tryLock(), false);
      },
    );

  contract.check("tells its holder when the file was deleted or replaced under it", async ({ disk, at, open }) => {
    const holder = await open(at("lock"));
    assert.equal(await holder.isIntact(), false);
    assert.equal(holder.identity, "");
    await holder.lock();
    assert.equal(await holder.isIntact(), true);
    const { identity } = holder;
    assert.notEqual(identity, "");
    await disk.unlink(at("lock"));
    assert.equal(await holder.isIntact(), isShare);
    const late = await open(at("lock"));
    await late.lock();
    assert.equal(await holder.isIntact(), isShare);
    assert.equal(await late.isIntact(), true);
    assert.notEqual(late.identity, identity);
    await holder.unlock();
    assert.equal(await holder.isIntact(), false);
  });

  if (hasNotes)
    contract.check(
      "never gives a new file the identity of one that was deleted",
      async ({ osLock, disk, at, later }) => {
        const note = new TextEncoder().encode("mine");
        const [one, other] = [await osLock.open(at("lock"), { note }), await osLock.open(at("lock"), { note })];
        later(async () => void (await Promise.all([one.close(), other.close()])));
        const identities: string[] = [];
        for (let deletion = 0; deletion < 10; deletion++) {
          await one.lock();
          identities.push(one.identity);
          await one.unlock();
          await other.lock();
          assert.equal(other.identity, identities.at(-1));
          await other.unlock();
          await disk.unlink(at("lock"));
        }
        assert.equal(new Set(identities).size, 10);
      },
    );

  contract.check(
    "names its holder in its file, and nothing when it is free",
    async ({ osLock, disk, at, open, later }) => {
      const note = new TextEncoder().encode("it is mine\n");
      const read = async (): Promise<string> =>
        new TextDecoder().decode((await disk.readFile(at("lock"), 100)).subarray(0, note.length)).trim();
      const [noted, plain] = [await osLock.open(at("lock"), { note }), await open(at("lock"))];
      later(() => noted.close());
      for (let round = 0; round < 2; round++) {
        assert.equal(await noted.tryLock(), true);
        assert.equal(await read(), hasNotes ? "it is mine" : "");
        await noted.unlock();
        assert.equal(await read(), "");
      }
      await plain.lock();
      assert.equal(await read(), "");
      const waiting = noted.lock();
      await plain.unlock();
      await waiting;
      assert.equal(await read(), hasNotes ? "it is mine" : "");
      await noted.close();
      assert.equal(await read(), "");
    },
  );

  contract.check("is given up by close", async ({ at, open }) => {
    const [a, b] = [await open(at("lock")), await open(at("lock"))];
    await a.lock();
    await a.close();
    await a.close();
    assert.equal(await b.tryLock(), true);
  });

  contract.check("is not free for its holder", async ({ at, open }) => {
    const a = await open(at("lock"));
    await a.lock();
    assert.equal(await a.tryLock(), false);
    await assert.rejects(a.lock(), TypeError);
    await a.unlock();
    await a.unlock();
    assert.equal(await a.tryLock(), true);
  });

  contract.check("cannot be waited for twice through one descriptor", async ({ at, open }) => {
    const [holder, waiter] = [await open(at("lock")), await open(at("lock"))];
    await holder.lock();
    const waiting = waiter.lock();
    await assert.rejects(waiter.lock(), TypeError);
    assert.equal(await waiter.tryLock(), false);
    await holder.unlock();
    await waiting;
  });

  contract.check("is granted to a waiter when the holder unlocks, again and again", async ({ at, open }) => {
    const files = [await open(at("lock")), await open(at("lock")), await open(at("lock"))];
    let inside = 0;
    let rounds = 0;
    await Promise.all(
      files.map(async (file) => {
        for (let i = 0; i < 4; i++) {
          await file.lock();
          assert.equal(++inside, 1);
          await new Promise((resolve) => setImmediate(resolve));
          inside--;
          rounds++;
          await file.unlock();
        }
      }),
    );
    assert.equal(rounds, 12);
  });

  contract.check(
    "rejects at once with the reason of a signal that is aborted already, also when it is free",
    async ({ at, open }) => {
      const file = await open(at("lock"));
      const reason = new Error("enough");
      await assert.rejects(file.lock({ signal: AbortSignal.abort(reason) }), (error) => error === reason);
      assert.equal(await file.tryLock(), true);
    },
  );

  contract.check("can be waited for again after a cancelled wait, any number of times", async ({ at, open }) => {
    const [holder, waiter] = [await open(at("lock")), await open(at("lock"))];
    await holder.lock();
    for (let i = 0; i < 5; i++) {
      // The reason has a file system code, but must not be mistaken for a disk failure.
      const reason = Object.assign(new Error(`enough ${i}`), { code: "EPERM" });
      const controller = new AbortController();
      const waiting = waiter.lock({ signal: controller.signal });
      // Each wait gets further before it is aborted.
      setTimeout(() => controller.abort(reason), i * 5);
      await assert.rejects(waiting, (error) => error === reason);
      assert.equal(await waiter.tryLock(), false);
    }
    const waiting = waiter.lock();
    await holder.unlock();
    await waiting;
    assert.equal(await holder.tryLock(), false);
    await waiter.unlock();
    assert.equal(await holder.tryLock(), true);
  });

  contract.check(
    "is free for a third at once after a waiter was cancelled, and the waiter is out of the line",
    async ({ at, open }) => {
      const [holder, waiter, third] = [await open(at("lock")), await open(at("lock")), await open(at("lock"))];
      await holder.lock();
      const controller = new AbortController();
      const waiting = waiter.lock({ signal: controller.signal });
      // The pause lets the call begin to wait. If it has not begun, it must be rejected too.
      setTimeout(() => controller.abort(), 30);
      await assert.rejects(waiting, { name: "AbortError" });
      await holder.unlock();
      assert.equal(await third.tryLock(), true);
      assert.equal(await waiter.tryLock(), false);
      await third.unlock();
    },
  );

  contract.check("rejects a waiter and every later call with CLOSED when it is closed", async ({ at, open }) => {
    const [holder, waiter] = [await open(at("lock")), await open(at("lock"))];
    await holder.lock();
    const waiting = waiter.lock();
    // Let time pass, so that it waits by then. If it does not, it must be refused too.
    const closing = sleep(10).then(() => waiter.close());
    await assert.rejects(waiting, { code: "CLOSED" });
    await closing;
    await assert.rejects(waiter.lock(), { code: "CLOSED" });
    await assert.rejects(waiter.tryLock(), { code: "CLOSED" });
    await waiter.unlock();
    await holder.unlock();
    assert.equal(await holder.tryLock(), true);
  });

  contract.check(
    "leaves it to its user how the file is made, and locks the one that is there",
    async ({ osLock, disk, at, open }) => {
      const path = at("guard");
      const failure = { code: "IO_ERROR", errno: "ENOENT", path };
      await assert.rejects(osLock.open(path, { make: async () => undefined }), failure);
      const full = Object.assign(new Error("no room"), { why: "full" });
      await assert.rejects(osLock.open(path, { make: () => Promise.reject(full) }), (error) => error === full);
      assert.equal(await disk.canOpen(path), false);
      let makeCount = 0;
      const make = (): Promise<void> => {
        makeCount++;
        return disk.createFile(path, Buffer.from("made"), { sync: false });
      };
      const [holder, other] = [await osLock.open(path, { make }), await osLock.open(path, { make })];
      await holder.lock();
      assert.deepEqual([await other.tryLock(), await (await open(path)).tryLock()], [false, false]);
      assert.equal(Buffer.from(await disk.readFile(path, 100)).toString(), "made");
      await holder.close();
      assert.equal(await other.tryLock(), true);
      await other.unlock();
      assert.equal(makeCount, 1);
      // The file was deleted since it was opened: it must be created again in the same way.
      await disk.unlink(path);
      assert.equal(await other.tryLock(), true);
      assert.equal(await (await open(path)).tryLock(), false);
      await other.close();
      assert.equal(makeCount, 2);
    },
  );

  contract.check("reports a path that cannot be opened by its POSIX name", async ({ osLock, at }) => {
    const path = at("missing", "lock");
    await assert.rejects(osLock.open(path), { code: "IO_ERROR", errno: "ENOENT", path });
  });

  return contract.checks;
}
