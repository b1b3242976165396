// What every OS lock promises within one kernel, whatever it is made of: the contract of
// src/ports/os-lock.ts as tests.
import { setTimeout as sleep } from "node:timers/promises";
import { posix } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { Disk } from "../../src/ports/disk.ts";
import type { OsLock, OsLockFile } from "../../src/ports/os-lock.ts";

export interface OsLockContractOptions {
  /** The lock is a courtesy: what was granted is not compared with its name. */
  readonly isShare?: boolean;
  /** Notes are written. Default: not on a share. */
  readonly hasNotes?: boolean;
}

export interface OsLockWorld {
  readonly osLock: OsLock;
  /** Where the lock files lie. */
  readonly disk: Disk;
  /** Exists and is empty. */
  readonly directory: string;
}

/** `makeWorld` is called for each test. */
export function describeOsLockContract(
  name: string,
  makeWorld: () => Promise<OsLockWorld>,
  { isShare = false, hasNotes = !isShare }: OsLockContractOptions = {},
): void {
  describe(`the OS lock contract on ${name}`, () => {
    let world: OsLockWorld;
    const at = (...names: string[]): string => posix.join(world.directory, ...names);
    const open = async (path: string): Promise<OsLockFile> => {
      const file = await world.osLock.open(path);
      onTestFinished(() => file.close());
      return file;
    };

    beforeEach(async () => {
      world = await makeWorld();
    });

    it("makes its file, keeps what is in it, and leaves it readable while locked", async () => {
      const { disk } = world;
      const made = await open(at("made"));
      expect(await disk.list(world.directory)).toEqual(["made"]);
      await disk.createFile(at("kept"), new TextEncoder().encode("content"), { sync: false });
      const kept = await open(at("kept"));
      await kept.lock();
      expect(new TextDecoder().decode(await disk.readFile(at("kept"), 100))).toBe("content");
      await made.close();
      expect(await disk.canOpen(at("made"))).toBe(true);
    });

    it("excludes another descriptor of the same process until it is unlocked", async () => {
      const [a, b] = [await open(at("lock")), await open(at("lock"))];
      expect(await a.tryLock()).toBe(true);
      expect(await b.tryLock()).toBe(false);
      await a.unlock();
      expect(await b.tryLock()).toBe(true);
      expect(await a.tryLock()).toBe(false);
    });

    it("does not exclude a process that locks another file", async () => {
      const [a, b] = [await open(at("lock")), await open(at("other"))];
      expect([await a.tryLock(), await b.tryLock()]).toEqual([true, true]);
    });

    it("is a lock of the file, not of its name", async () => {
      const { disk } = world;
      const old = await open(at("lock"));
      await old.lock();
      await disk.rename(at("lock"), at("moved"));
      const [moved, made] = [await open(at("moved")), await open(at("lock"))];
      expect(await moved.tryLock()).toBe(false);
      expect(await made.tryLock()).toBe(true);
    });

    it("excludes a later process after its file was deleted, through whatever was opened before", async () => {
      const { disk } = world;
      const [early, other] = [await open(at("lock")), await open(at("lock"))];
      await early.lock();
      await early.unlock();
      for (let deletion = 0; deletion < 3; deletion++) {
        await disk.unlink(at("lock"));
        expect(await early.tryLock()).toBe(true);
        const late = await open(at("lock"));
        expect([await late.tryLock(), await other.tryLock()]).toEqual([false, false]);
        await early.unlock();
        expect([await late.tryLock(), await early.tryLock()]).toEqual([true, false]);
        await late.close();
        await early.unlock();
      }
    });

    it("is made again when its file was moved away, and locked where the name leads", async () => {
      const { disk } = world;
      const early = await open(at("lock"));
      await early.lock();
      await early.unlock();
      await disk.rename(at("lock"), at("moved"));
      expect(await early.tryLock()).toBe(true);
      const [moved, late] = [await open(at("moved")), await open(at("lock"))];
      expect([await moved.tryLock(), await late.tryLock()]).toEqual([true, false]);
    });

    it.skipIf(isShare)("is not granted to a waiter whose file was deleted before its turn came", async () => {
      const { disk } = world;
      const [holder, waiter] = [await open(at("lock")), await open(at("lock"))];
      await holder.lock();
      const waiting = waiter.lock();
      // Time passes: so that the waiter has begun to wait.
      await sleep(20);
      await disk.unlink(at("lock"));
      const late = await open(at("lock"));
      expect(await late.tryLock()).toBe(true);
      await holder.unlock();
      // Time passes: long enough for a grant that must not come.
      const first = await Promise.race([waiting.then(() => "waiter"), sleep(50).then(() => "nobody")]);
      expect(first).toBe("nobody");
      await late.unlock();
      await waiting;
      expect(await late.tryLock()).toBe(false);
    });

    it("tells its holder when the file was deleted or replaced under it", async () => {
      const { disk } = world;
      const holder = await open(at("lock"));
      expect(await holder.isIntact()).toBe(false);
      expect(holder.identity).toBe("");
      await holder.lock();
      expect(await holder.isIntact()).toBe(true);
      const { identity } = holder;
      expect(identity).not.toBe("");
      await disk.unlink(at("lock"));
      expect(await holder.isIntact()).toBe(isShare);
      const late = await open(at("lock"));
      await late.lock();
      expect(await holder.isIntact()).toBe(isShare);
      expect(await late.isIntact()).toBe(true);
      expect(late.identity).not.toBe(identity);
      await holder.unlock();
      expect(await holder.isIntact()).toBe(false);
    });

    it.runIf(hasNotes)("never gives a new file the identity of one that was deleted", async () => {
      const note = new TextEncoder().encode("mine");
      const [one, other] = [
        await world.osLock.open(at("lock"), { note }),
        await world.osLock.open(at("lock"), { note }),
      ];
      onTestFinished(async () => void (await Promise.all([one.close(), other.close()])));
      const identities: string[] = [];
      for (let deletion = 0; deletion < 10; deletion++) {
        await one.lock();
        identities.push(one.identity);
        await one.unlock();
        await other.lock();
        expect(other.identity).toBe(identities.at(-1));
        await other.unlock();
        await world.disk.unlink(at("lock"));
      }
      expect(new Set(identities).size).toBe(10);
    });

    it("names its holder in its file, and nothing when it is free", async () => {
      const note = new TextEncoder().encode("it is mine\n");
      const read = async (): Promise<string> =>
        new TextDecoder().decode((await world.disk.readFile(at("lock"), 100)).subarray(0, note.length)).trim();
      const [noted, plain] = [await world.osLock.open(at("lock"), { note }), await open(at("lock"))];
      onTestFinished(() => noted.close());
      for (let round = 0; round < 2; round++) {
        expect(await noted.tryLock()).toBe(true);
        expect(await read()).toBe(hasNotes ? "it is mine" : "");
        await noted.unlock();
        expect(await read()).toBe("");
      }
      await plain.lock();
      expect(await read()).toBe("");
      const waiting = noted.lock();
      await plain.unlock();
      await waiting;
      expect(await read()).toBe(hasNotes ? "it is mine" : "");
      await noted.close();
      expect(await read()).toBe("");
    });

    it("is given up by close", async () => {
      const [a, b] = [await open(at("lock")), await open(at("lock"))];
      await a.lock();
      await a.close();
      await a.close();
      expect(await b.tryLock()).toBe(true);
    });

    it("is not free for its holder", async () => {
      const a = await open(at("lock"));
      await a.lock();
      expect(await a.tryLock()).toBe(false);
      await expect(a.lock()).rejects.toThrow(TypeError);
      await a.unlock();
      await a.unlock();
      expect(await a.tryLock()).toBe(true);
    });

    it("cannot be waited for twice through one descriptor", async () => {
      const [holder, waiter] = [await open(at("lock")), await open(at("lock"))];
      await holder.lock();
      const waiting = waiter.lock();
      await expect(waiter.lock()).rejects.toThrow(TypeError);
      expect(await waiter.tryLock()).toBe(false);
      await holder.unlock();
      await waiting;
    });

    it("is granted to a waiter when the holder unlocks, again and again", async () => {
      const files = [await open(at("lock")), await open(at("lock")), await open(at("lock"))];
      let inside = 0;
      let rounds = 0;
      await Promise.all(
        files.map(async (file) => {
          for (let i = 0; i < 4; i++) {
            await file.lock();
            expect(++inside).toBe(1);
            await new Promise((resolve) => setImmediate(resolve));
            inside--;
            rounds++;
            await file.unlock();
          }
        }),
      );
      expect(rounds).toBe(12);
    });

    it("rejects at once with the reason of a signal that is aborted already, also when it is free", async () => {
      const file = await open(at("lock"));
      const reason = new Error("enough");
      await expect(file.lock({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
      expect(await file.tryLock()).toBe(true);
    });

    it("can be waited for again after a cancelled wait, any number of times", async () => {
      const [holder, waiter] = [await open(at("lock")), await open(at("lock"))];
      await holder.lock();
      for (let i = 0; i < 5; i++) {
        // With a code of the file system, for which it must not be taken.
        const reason = Object.assign(new Error(`enough ${i}`), { code: "EPERM" });
        const controller = new AbortController();
        const waiting = waiter.lock({ signal: controller.signal });
        // Time passes: it has come further each time.
        setTimeout(() => controller.abort(reason), i * 5);
        await expect(waiting).rejects.toBe(reason);
        expect(await waiter.tryLock()).toBe(false);
      }
      const waiting = waiter.lock();
      await holder.unlock();
      await waiting;
      expect(await holder.tryLock()).toBe(false);
      await waiter.unlock();
      expect(await holder.tryLock()).toBe(true);
    });

    it("is free for a third at once after a waiter was cancelled, and the waiter is out of the line", async () => {
      const [holder, waiter, third] = [await open(at("lock")), await open(at("lock")), await open(at("lock"))];
      await holder.lock();
      const controller = new AbortController();
      const waiting = waiter.lock({ signal: controller.signal });
      // Time passes: so that it waits by then. If it does not, it is refused all the same.
      setTimeout(() => controller.abort(), 30);
      await expect(waiting).rejects.toMatchObject({ name: "AbortError" });
      await holder.unlock();
      expect(await third.tryLock()).toBe(true);
      expect(await waiter.tryLock()).toBe(false);
      await third.unlock();
    });

    it("rejects a waiter and every later call with CLOSED when it is closed", async () => {
      const [holder, waiter] = [await open(at("lock")), await open(at("lock"))];
      await holder.lock();
      const waiting = waiter.lock();
      // Time passes: so that it waits by then. If it does not, it is refused all the same.
      const closing = sleep(10).then(() => waiter.close());
      await expect(waiting).rejects.toMatchObject({ code: "CLOSED" });
      await closing;
      await expect(waiter.lock()).rejects.toMatchObject({ code: "CLOSED" });
      await expect(waiter.tryLock()).rejects.toMatchObject({ code: "CLOSED" });
      await waiter.unlock();
      await holder.unlock();
      expect(await holder.tryLock()).toBe(true);
    });

    it("leaves it to its user how the file is made, and locks the one that is there", async () => {
      const path = at("guard");
      const failure = { code: "IO_ERROR", errno: "ENOENT", path };
      await expect(world.osLock.open(path, { make: async () => undefined })).rejects.toMatchObject(failure);
      const full = Object.assign(new Error("no room"), { why: "full" });
      await expect(world.osLock.open(path, { make: () => Promise.reject(full) })).rejects.toBe(full);
      expect(await world.disk.canOpen(path)).toBe(false);
      const make = vi.fn(() => world.disk.createFile(path, Buffer.from("made"), { sync: false }));
      const [holder, other] = [await world.osLock.open(path, { make }), await world.osLock.open(path, { make })];
      await holder.lock();
      expect([await other.tryLock(), await (await open(path)).tryLock()]).toEqual([false, false]);
      expect(Buffer.from(await world.disk.readFile(path, 100)).toString()).toBe("made");
      await holder.close();
      expect(await other.tryLock()).toBe(true);
      await other.unlock();
      expect(make).toHaveBeenCalledTimes(1);
      // Deleted since it was opened: it is made again in the same way.
      await world.disk.unlink(path);
      expect(await other.tryLock()).toBe(true);
      expect(await (await open(path)).tryLock()).toBe(false);
      await other.close();
      expect(make).toHaveBeenCalledTimes(2);
    });

    it("reports a path that cannot be opened by its POSIX name", async () => {
      const path = at("missing", "lock");
      await expect(world.osLock.open(path)).rejects.toMatchObject({ code: "IO_ERROR", errno: "ENOENT", path });
    });
  });
}
