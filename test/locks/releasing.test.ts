// The end of a hold: it ends once, also when it is released twice or the disk fails, and no other
// hold ends with it.
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { TablePathLocks } from "../../src/locks/path/service.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import type { Disk } from "../../src/ports/disk.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { changedDisk } from "../sites/disks.ts";
import { until } from "../waiting.ts";
import { LocksWorld } from "../sites/path-locks.ts";

let world: LocksWorld;
let a: TablePathLocks;
let b: TablePathLocks;

beforeEach(async () => {
  world = await LocksWorld.make();
  [a, b] = [await world.open({ tamper: timeless }), await world.open()];
});
afterEach(() => world.end());

function withDisk(change: (disk: Disk) => Partial<Disk>): (ports: Ports) => Ports {
  return (ports) => ({ ...ports, disk: changedDisk(ports.disk, change) });
}

/** No time passes for it, so that it passes holds on also on a slow machine. */
function timeless(ports: Ports): Ports {
  return { ...ports, clock: { ...ports.clock, monotonicMs: () => 0 } };
}

/** Until a caller waits in the queue of its process. */
async function inLine(): Promise<void> {
  await until(() => world.waiting > 0);
}

/** Whatever this process could have done without waiting is done by then. */
async function othersHaveLooked(path = "x"): Promise<void> {
  expect(await b.tryAcquire(path)).toBe(undefined);
}

describe("a hold that is released twice", () => {
  it("does not end the hold of the next caller of its process, which has its request by then", async () => {
    const first = await a.acquire("x");
    const waiting = a.acquire("x", { timeoutMs: 10_000 });
    await inLine();
    await first.release();
    const second = await waiting;
    expect(second.id).toBe(first.id);
    await first.release();
    expect(await b.tryAcquire("x")).toBe(undefined);
    await second.release();
    await (await b.acquire("x")).release();
  });

  it("at the same time is released once", async () => {
    const first = await a.acquire("x");
    const waiting = a.acquire("x", { timeoutMs: 10_000 });
    await inLine();
    await Promise.all([first.release(), first.release()]);
    const second = await waiting;
    expect(await b.tryAcquire("x")).toBe(undefined);
    await second.release();
  });
});

describe("a hold that was transferred", () => {
  it("is not released by the end of its scope, neither before nor after it is received", async () => {
    const token = await a.withLock("x", (hold) => hold.transfer());
    expect(await b.tryAcquire("x")).toBe(undefined);
    const received = await b.receive(token);
    expect(await a.tryAcquire("x")).toBe(undefined);
    const hold = await a.acquire("y");
    const other = await b.receive(await hold.transfer());
    await hold.release();
    expect(await a.tryAcquire("y")).toBe(undefined);
    await received.release();
    await other.release();
  });

  it("is not released by a release that was asked for while it was being transferred", async () => {
    const hold = await a.acquire("x");
    const [token] = await Promise.all([hold.transfer(), hold.release()]);
    const received = await b.receive(token);
    expect(await a.tryAcquire("x")).toBe(undefined);
    await received.release();
  });

  it("is held as before when the transfer failed", async () => {
    const hold = await a.acquire("x");
    await expect(hold.transfer({ expiresMs: Number.NaN })).rejects.toThrow(RangeError);
    await hold.assertHeld();
    await hold.release();
    await (await b.acquire("x")).release();
  });
});

describe("a release that meets a failing disk", () => {
  it("releases the request instead of passing it on when its hold file cannot be looked at", async () => {
    let failing = "";
    const tamper = withDisk((real) => ({
      canOpen: async (path) => {
        if (failing === "" || !path.endsWith(`/holds/${failing}`)) return await real.canOpen(path);
        failing = "";
        throw diskError("EIO", "open", path);
      },
    }));
    const here = await world.open({ tamper: (ports) => timeless(tamper(ports)) });
    const hold = await here.acquire("x");
    const waiting = here.acquire("x", { timeoutMs: 10_000 });
    await inLine();
    failing = hold.id;
    await hold.release();
    expect(failing).toBe("");
    const next = await waiting;
    expect(next.id).not.toBe(hold.id);
    await next.release();
    await (await b.acquire("x")).release();
  });

  it("is repeated until it succeeds, without another call", async () => {
    const broken = { unlink: "", table: false };
    const here = await world.open({
      tamper: withDisk((real) => ({
        unlink: async (path) => {
          if (broken.unlink !== "" && path.endsWith(broken.unlink)) throw diskError("EIO", "unlink", path);
          await real.unlink(path);
        },
        link: async (from, to) => {
          if (broken.table && to.includes("/table/")) throw diskError("EIO", "link", to);
          await real.link(from, to);
        },
      })),
    });
    const hold = await here.acquire("x");
    Object.assign(broken, { unlink: hold.id, table: true });
    await expect(hold.release()).rejects.toMatchObject({ code: "IO_ERROR" });
    // It was given up: a second release does nothing.
    await hold.release();
    Object.assign(broken, { unlink: "", table: false });
    await (await b.acquire("x", { timeoutMs: 10_000 })).release();
  });

  it("is repeated also when a committed redo could not be completed", async () => {
    let isBusy = false;
    const here = await world.open({
      tamper: withDisk((real) => ({
        rename: async (from, to) => {
          if (isBusy && to.endsWith("/f")) throw diskError("EBUSY", "rename", to);
          await real.rename(from, to);
        },
      })),
    });
    isBusy = true;
    const work = here.withLock("f", async (hold) => {
      const draft = await here.draft(hold);
      await draft.in("f", (path) => here.table.ground.ports.disk.createFile(path, Buffer.from("f"), { sync: true }));
      await draft.commit();
    });
    await expect(work).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    expect(await b.tryAcquire("f")).toBe(undefined);
    isBusy = false;
    const next = await b.acquire("f", { timeoutMs: 10_000 });
    expect(Buffer.from(await b.table.ground.ports.disk.readFile(`${world.root}/f`, 10)).toString()).toBe("f");
    await next.release();
  });
});

/** Holds back the next link into the table until it is told to go on. */
function atTheTable(): { readonly tamper: (ports: Ports) => Ports; stop(): Stopped } {
  let next: { readonly arrive: () => void; readonly go: Promise<void> } | undefined;
  const tamper = withDisk((real) => ({
    link: async (from, to) => {
      if (next !== undefined && to.includes("/table/")) {
        const { arrive, go } = next;
        next = undefined;
        arrive();
        await go;
      }
      await real.link(from, to);
    },
  }));
  const stop = (): Stopped => {
    let go = (): void => undefined;
    const arrived = new Promise<void>((resolve) => {
      next = { arrive: resolve, go: new Promise((goOn) => (go = goOn)) };
    });
    return { arrived, go: () => go() };
  };
  return { tamper, stop };
}
interface Stopped {
  readonly arrived: Promise<void>;
  readonly go: () => void;
}

describe("what is under way when its hold is released", () => {
  it("a commit is done before the next caller of the process gets the hold", async () => {
    const table = atTheTable();
    const here = await world.open({ tamper: (ports) => timeless(table.tamper(ports)) });
    const { disk } = here.table.ground.ports;
    const put = (text: string) => async (path: string) =>
      await disk.createFile(path, Buffer.from(text), { sync: true });
    const hold = await here.acquire("f");
    const draft = await here.draft(hold);
    await draft.in("f", put("first"));
    const next = here.acquire("f", { timeoutMs: 10_000 });
    await inLine();
    const link = table.stop();
    const commit = draft.commit();
    await link.arrived;
    const release = hold.release();
    let isIn = false;
    void next.then(() => (isIn = true));
    await othersHaveLooked("f");
    expect(isIn).toBe(false);
    link.go();
    await Promise.all([commit, release]);
    const second = await next;
    expect(Buffer.from(await disk.readFile(`${world.root}/f`, 10)).toString()).toBe("first");
    expect((await here.table.read()).state.redos.filter(({ request }) => request !== second.id)).toEqual([]);
    await second.release();
  });

  it("a downgrade does not change the hold of the next caller", async () => {
    const table = atTheTable();
    const here = await world.open({ tamper: (ports) => timeless(table.tamper(ports)) });
    const hold = await here.acquire("x");
    const next = here.acquire("x", { timeoutMs: 10_000 });
    await inLine();
    const link = table.stop();
    const downgrade = hold.downgrade({ shared: true });
    await link.arrived;
    const release = hold.release();
    await othersHaveLooked();
    link.go();
    await Promise.all([downgrade, release]);
    const second = await next;
    expect(await b.tryAcquire("x", { shared: true })).toBe(undefined);
    await second.release();
  });

  it("a waiting upgrade ends, and its announcement does not go to the next caller", async () => {
    const hold = await a.acquire("x", { shared: true });
    const reader = await b.acquire("x", { shared: true });
    const upgrade = hold.upgrade({ shared: false }, { timeoutMs: 60_000 });
    while (!(await b.table.read()).state.requests.some(({ wants }) => wants !== undefined)) await sleep(5);
    await hold.release();
    await expect(upgrade).rejects.toMatchObject({ code: "LOCK_LOST" });
    await reader.upgrade({ shared: false });
    await reader.release();
  });

  it("no new work begins under it", async () => {
    const table = atTheTable();
    const here = await world.open({ tamper: table.tamper });
    const hold = await here.acquire("x");
    const draft = await here.draft(hold);
    const link = table.stop();
    const downgrade = hold.downgrade({ shared: true });
    await link.arrived;
    const release = hold.release();
    await othersHaveLooked();
    await expect(draft.commit()).rejects.toMatchObject({ code: "LOCK_LOST" });
    await expect(hold.downgrade({ shared: true })).rejects.toMatchObject({ code: "LOCK_LOST" });
    const transfer = hold.transfer().catch((error: unknown) => error);
    link.go();
    expect(await transfer).toMatchObject({ code: "LOCK_LOST" });
    await Promise.all([downgrade, release]);
    await (await b.acquire("x")).release();
  });
});
