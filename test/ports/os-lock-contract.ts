// What every OS lock promises within one kernel, whatever it is made of: the contract of src/ports/os-lock.ts as tests.
import { setTimeout as sleep } from "node:timers/promises";
import { posix } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { Disk } from "../../src/ports/disk.ts";
import type { OsLock, OsLockFile } from "../../src/ports/os-lock.ts";

const patience = { timeout: 30_000, interval: 5 };

export interface OsLockWorld {
  readonly osLock: OsLock;
  /** Where the lock files lie. */
  readonly disk: Disk;
  /** Exists and is empty. */
  readonly directory: string;
}

/** `makeWorld` is called for each test. */
export function describeOsLockContract(name: string, makeWorld: () => Promise<OsLockWorld>): void {
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

    it("does not exclude those who lock another file", async () => {
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

    it("is given up by close", async () => {
      const [a, b] = [await open(at("lock")), await open(at("lock"))];
      await a.lock();
      await a.close();
      await a.close();
      expect(await b.tryLock()).toBe(true);
    });

    it("is not free for the one who has it", async () => {
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

    it("is free for a third after a cancelled waiter's turn has come", async () => {
      const [holder, waiter, third] = [await open(at("lock")), await open(at("lock")), await open(at("lock"))];
      await holder.lock();
      const controller = new AbortController();
      const waiting = waiter.lock({ signal: controller.signal });
      setTimeout(() => controller.abort(), 30);
      await expect(waiting).rejects.toMatchObject({ name: "AbortError" });
      await holder.unlock();
      await third.lock();
      expect(await waiter.tryLock()).toBe(false);
      await third.unlock();
    });

    it("rejects a waiter and every later call with CLOSED when it is closed", async () => {
      const [holder, waiter] = [await open(at("lock")), await open(at("lock"))];
      await holder.lock();
      const waiting = waiter.lock();
      const closing = sleep(10).then(() => waiter.close());
      await expect(waiting).rejects.toMatchObject({ code: "CLOSED" });
      await closing;
      await expect(waiter.lock()).rejects.toMatchObject({ code: "CLOSED" });
      await expect(waiter.tryLock()).rejects.toMatchObject({ code: "CLOSED" });
      await waiter.unlock();
      await holder.unlock();
      await vi.waitFor(async () => expect(await holder.tryLock()).toBe(true), patience);
    });

    it("does not make the file when told not to, and locks the same one as others if it is there", async () => {
      const path = at("guard");
      const failure = { code: "IO_ERROR", errno: "ENOENT", path };
      await expect(world.osLock.open(path, { create: false })).rejects.toMatchObject(failure);
      const [holder, other] = [await open(path), await world.osLock.open(path, { create: false })];
      await holder.lock();
      expect(await other.tryLock()).toBe(false);
      await other.close();
    });

    it("reports a path that cannot be opened by its POSIX name", async () => {
      const path = at("missing", "lock");
      await expect(world.osLock.open(path)).rejects.toMatchObject({ code: "IO_ERROR", errno: "ENOENT", path });
    });
  });
}
