// A semaphore that was won without a holder: the wait was cancelled at that moment, or the reply
// was lost. A live process must not keep it.
import { describe, expect, it } from "vitest";
import { diskError } from "../../src/ports/disk-error.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { withDisk } from "../sites/path-locks.ts";
import { lockPath, SemaphoreWorld } from "./semaphore-world.ts";

interface Trouble {
  /** What happens when the name was won. */
  onWon?: (() => void) | undefined;
  /** Calls on the lock that fail now. */
  fails: ReadonlySet<string>;
}

async function prepare(planted?: string) {
  const world = await SemaphoreWorld.make();
  if (planted !== undefined) await world.plant(planted);
  const trouble: Trouble = { fails: new Set() };
  const orFail = async <T>(call: string, path: string, action: () => Promise<T>): Promise<T> => {
    if (trouble.fails.has(call) && path === lockPath) throw diskError("EIO", call, path);
    return await action();
  };
  const win = (call: string) => async (path: string, action: () => Promise<void>) => {
    await orFail(call, path, action);
    if (path === lockPath) trouble.onWon?.();
    await orFail(call, path, async () => undefined);
  };
  const { disk } = withDisk((real) => ({
    link: (from, to) => win("link")(to, () => real.link(from, to)),
    rename: (from, to) => win("rename")(to, () => real.rename(from, to)),
    readFile: (path, bytesMax) => orFail("read", path, () => real.readFile(path, bytesMax)),
    unlink: (path) => orFail("unlink", path, () => real.unlink(path)),
  }))(world.ports("ada")) as { disk: Disk };
  return { world, trouble, ada: world.semaphore("ada", {}, { disk }), bob: world.semaphore("bob") };
}

describe("a semaphore that was won", () => {
  it("after its wait was cancelled is released, also if the first release fails", async () => {
    const { world, trouble, ada, bob } = await prepare();
    const waiting = new AbortController();
    const reason = new Error("not wanted any more");
    trouble.onWon = () => {
      waiting.abort(reason);
      trouble.fails = new Set(["unlink"]);
    };
    await expect(ada.acquire({ signal: waiting.signal, timeoutMs: 5000 })).rejects.toBe(reason);
    expect(await bob.tryAcquire()).toBe(undefined);
    trouble.onWon = undefined;
    trouble.fails = new Set();
    await world.advance(1000);
    await (await ada.acquire({ timeoutMs: 0 })).release();
    expect(await bob.tryAcquire()).toBeDefined();
  });

  const stale = "pid=4711\ntimestamp=0\n";
  it.each([
    ["a free one", undefined],
    ["a stale one", stale],
  ])("without an answer (%s) is released as soon as the disk answers again", async (_, planted) => {
    const { world, trouble, ada, bob } = await prepare(planted);
    trouble.onWon = () => (trouble.fails = new Set(["link", "rename", "read", "unlink"]));
    await expect(ada.tryAcquire()).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect(world.text()).toContain("token=");
    // The lock may be this process's own, so no other caller in the process may try yet.
    expect(await ada.tryAcquire()).toBe(undefined);
    trouble.onWon = undefined;
    trouble.fails = new Set();
    await world.advance(1000);
    expect(world.text()).toBe(undefined);
    await (await ada.acquire({ timeoutMs: 0 })).release();
    expect(await bob.tryAcquire()).toBeDefined();
  });
});
