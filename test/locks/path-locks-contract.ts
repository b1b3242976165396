// The contract of path locks: the promises of the interface, one by one, for any way to open them.
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { isHoldfastError, type HoldfastErrorOf } from "../../src/errors.ts";
import type { LockRequest } from "../../src/locks/path/path-locks.ts";
import type { NameLocks } from "../../src/part/leases.ts";
import { until } from "../waiting.ts";
import { keep } from "./keep.ts";

/** The promise is a hundredth. The process of the tests has other work, too. */
const partOfCoreMax = 0.1;

export interface PathLocksWorld {
  /** Another process. */
  open(options?: { readonly leaseMs?: number; readonly timeoutMs?: number }): Promise<NameLocks>;
  /** How many callers wait with a timeout. */
  readonly waiting: number;
  end(): Promise<void>;
}

export function describePathLocks(name: string, make: () => Promise<PathLocksWorld>): void {
  describe(`path locks on ${name}`, () => {
    let world: PathLocksWorld;
    let a: NameLocks;
    let b: NameLocks;

    beforeEach(async () => {
      world = await make();
      [a, b] = [await world.open(), await world.open()];
    });
    afterEach(() => world.end());

    /** A request is in the table behind another. */
    async function somebodyWaits(): Promise<void> {
      while ((await a.list()).flatMap(({ waiting }) => waiting).length === 0) await sleep(5);
    }

    describe("the conflict table", () => {
      const exact = (path: string, shared = false): LockRequest => ({ path, mode: "exact", shared });
      const tree = (path: string, shared = false): LockRequest => ({ path, mode: "tree", shared });
      const cases: readonly (readonly [LockRequest, LockRequest, boolean])[] = [
        [exact("a"), exact("a"), true],
        [exact("a"), tree("a"), true],
        [tree("a"), tree("a"), true],
        [exact("a"), exact("a/b"), false],
        [exact("a"), tree("a/b"), false],
        [exact("a/b"), tree("a"), true],
        [tree("a"), tree("a/b/c"), true],
        [tree(""), exact("x/y"), true],
        [exact(""), exact("x"), false],
        [exact("a"), exact("ab"), false],
        [tree("a"), exact("ab"), false],
        [exact("a", true), exact("a", true), false],
        [exact("a", true), exact("a"), true],
        [tree("a", true), exact("a/b", true), false],
        [tree("a", true), exact("a/b"), true],
        [tree("a"), tree("a/b", true), true],
      ];
      for (const [one, other, excluded] of cases) {
        const show = ({ path, mode, shared }: LockRequest): string =>
          `${shared ? "shared " : ""}${mode} ${path || "root"}`;
        it(`${show(one)} and ${show(other)} ${excluded ? "exclude each other" : "go together"}, in both orders`, async () => {
          for (const [first, second] of [
            [one, other],
            [other, one],
          ] as const) {
            const hold = await a.acquireAll([first]);
            const answer = await failureOf(b.acquireAll([second]).then((held) => held.release()));
            expect(isHoldfastError(answer, "LOCK_TIMEOUT")).toBe(excluded);
            await hold.release();
          }
        });
      }
    });

    describe("a hold", () => {
      it("excludes other processes until it is released, and fences grow from one to the next", async () => {
        const first = await a.acquire("x");
        expect(await b.tryAcquire("x")).toBe(undefined);
        await first.release();
        const second = await b.acquire("x");
        expect(second.fence).toBeGreaterThan(first.fence);
        await second.release();
        await second.release();
      });

      it("is taken or refused at once by a caller that does not wait, and the refusal names the holder, since when and where", async () => {
        await keep(a.acquire("dir", { mode: "tree", tag: "nightly import" }));
        const error = (await failureOf(b.acquire("dir/file"))) as HoldfastErrorOf<"LOCK_TIMEOUT">;
        expect(error).toMatchObject({ code: "LOCK_TIMEOUT", path: "dir/file", waitedMs: 0 });
        expect(error.blockedBy).toMatchObject([
          {
            path: "dir",
            mode: "tree",
            shared: false,
            tag: "nightly import",
            holder: { pid: process.pid, state: "alive" },
          },
        ]);
        expect(Math.abs(error.blockedBy[0]!.since.getTime() - Date.now())).toBeLessThan(60_000);
        expect(error.message).toContain(`process ${process.pid}`);
        expect(error.message).toContain("nightly import");
      });

      it("takes all paths of a batch or none", async () => {
        const other = await b.acquire("y");
        expect(isHoldfastError(await failureOf(a.acquireAll(["x", "y", "z"])), "LOCK_TIMEOUT")).toBe(true);
        for (const path of ["x", "z"]) await (await b.acquire(path)).release();
        await other.release();
        const all = await a.acquireAll(["x", { path: "y", mode: "tree" }, "z"]);
        for (const path of ["x", "y/below", "z"]) expect(await b.tryAcquire(path)).toBe(undefined);
        expect(all.requests.map(({ path, mode }) => `${mode} ${path}`)).toEqual(["exact x", "tree y", "exact z"]);
      });

      it("of a move has both ends with all that is below, and two moves crosswise end both", async () => {
        const hold = await a.acquireMove("from", "to");
        for (const path of ["from", "from/x", "to", "to/y"]) expect(await b.tryAcquire(path)).toBe(undefined);
        const crosswise = b.acquireMove("to", "from", { timeoutMs: 10_000 });
        await hold.release();
        await (await crosswise).release();
      });

      it("is one for all spellings of a name", async () => {
        const hold = await a.acquire("real/f\u00e9");
        for (const path of ["./real//x/../fe\u0301", "real/f\u00e9"]) expect(await b.tryAcquire(path)).toBe(undefined);
        await hold.release();
      });

      it("is refused for a path that leads out of the root, or is none", async () => {
        for (const path of ["../x", "a\0b", "/somewhere/else", "x".repeat(5000)])
          expect(await failureOf(a.acquire(path))).toMatchObject({ code: "INVALID_PATH" });
        await expect(a.acquireAll([])).rejects.toThrow(TypeError);
        await expect(a.acquire("x", { timeoutMs: Number.NaN })).rejects.toThrow(RangeError);
        await expect(a.acquire("x", { idleMs: 0 })).rejects.toThrow(RangeError);
        await expect(a.acquire("x", { tag: "t".repeat(2000) })).rejects.toMatchObject({ code: "TOO_LARGE" });
      });

      it("is released when the work is done, and an error of the work arrives unchanged", async () => {
        expect(await a.withLock("x", async (hold) => hold.fence)).toBeGreaterThan(0);
        const mine = new Error("mine");
        expect(await failureOf(a.withLock(["x", "y"], () => Promise.reject(mine)))).toBe(mine);
        await (await b.acquireAll(["x", "y"])).release();
        await a.withLock({ path: "x", mode: "tree" }, async () => expect(await b.tryAcquire("x/y")).toBe(undefined));
      });

      it("that is lost while the work goes on makes the call reject with LOCK_LOST, though the work succeeded", async () => {
        const losing = async (lose: () => Promise<unknown>, path: string): Promise<void> =>
          await a.withLock(path, async ({ signal }) => {
            const lost = new Promise((resolve) => signal.addEventListener("abort", resolve));
            void lose();
            await lost;
          });
        await expect(losing(() => b.break("x"), "x")).rejects.toMatchObject({ code: "LOCK_LOST" });
        const closed = losing(() => a.close(), "y");
        await expect(closed).rejects.toMatchObject({ code: "LOCK_LOST" });
      });

      it("that the program does not refer to any more is released with a warning", async () => {
        setFlagsFromString("--expose-gc");
        const collectGarbage = runInNewContext("gc") as () => void;
        // A lock that an earlier test has left may be found in the same collection.
        const warnings: string[] = [];
        const note = ({ message }: Error): void => void warnings.push(message);
        process.on("warning", note);
        onTestFinished(() => void process.off("warning", note));
        await (async () => void (await a.acquire("forgotten")))();
        await vi.waitFor(() => {
          collectGarbage();
          expect(warnings).toContainEqual(expect.stringContaining("forgotten"));
        });
        const next = await b.acquire("forgotten", { timeoutMs: 5000 });
        await next.release();
      });
    });

    describe("waiting", () => {
      it("is in the order of the requests, across processes", async () => {
        const others = await Promise.all([world.open(), world.open(), world.open()]);
        const hold = await a.acquire("x");
        const order: number[] = [];
        const waits: Promise<void>[] = [];
        for (const [index, locks] of others.entries()) {
          waits.push(
            locks.acquire("x", { timeoutMs: 20_000 }).then(async (held) => {
              order.push(index);
              await held.release();
            }),
          );
          // In the table before the next one comes.
          while ((await a.list()).flatMap(({ waiting }) => waiting).length <= index) await sleep(5);
        }
        await hold.release();
        await Promise.all(waits);
        expect(order).toEqual([0, 1, 2]);
      });

      it("is in the order of the calls, within a process", async () => {
        const hold = await a.acquire("x");
        const order: number[] = [];
        const waits = [0, 1, 2, 3].map(async (index) => {
          const held = await a.acquire("x", { timeoutMs: 20_000 });
          order.push(index);
          await held.release();
        });
        await hold.release();
        await Promise.all(waits);
        expect(order).toEqual([0, 1, 2, 3]);
      });

      it("ends after its timeout, and leaves no waiting request in the table", async () => {
        const hold = await a.acquire("x");
        for (const locks of [a, b]) {
          const begin = performance.now();
          expect(await failureOf(locks.acquire("x", { timeoutMs: 200 }))).toMatchObject({
            code: "LOCK_TIMEOUT",
            blockedBy: [{ path: "x" }],
          });
          expect(performance.now() - begin).toBeGreaterThanOrEqual(195);
          expect(performance.now() - begin).toBeLessThan(5000);
        }
        expect((await a.list())[0]?.waiting).toEqual([]);
        await hold.release();
        await (await b.acquire("x")).release();
      });

      it("ends with its signal, before it begins and while it lasts", async () => {
        const reason = new Error("enough");
        await expect(a.acquire("free", { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
        const hold = await a.acquire("x");
        for (const locks of [a, b]) {
          const controller = new AbortController();
          const waiting = locks.acquire("x", { timeoutMs: 3_600_000, signal: controller.signal });
          await until(() => world.waiting > 0);
          controller.abort(reason);
          await expect(waiting).rejects.toBe(reason);
        }
        await hold.release();
        await (await b.acquire("x")).release();
      });

      it("ends with its signal also at the moment of the grant, which is released then", async () => {
        const reason = new Error("enough");
        for (let turns = 0; turns < 10; turns++) {
          const controller = new AbortController();
          const entering = failureOf(a.acquire("x", { timeoutMs: 1000, signal: controller.signal }));
          for (let turn = 0; turn < turns; turn++) await Promise.resolve();
          controller.abort(reason);
          const answer = await entering;
          expect(answer).toBe(reason);
          await (await b.acquire("x")).release();
        }
      });

      it("ends when the locks are closed", async () => {
        const hold = await a.acquire("x");
        const waiting = failureOf(b.acquire("x", { timeoutMs: Infinity }));
        await somebodyWaits();
        await b.close();
        expect(await waiting).toMatchObject({ code: "CLOSED" });
        await expect(b.acquire("y")).rejects.toMatchObject({ code: "CLOSED" });
        await hold.release();
      });

      it("costs the waiter next to nothing", async () => {
        const hold = await a.acquire("x");
        const waiting = b.acquire("x", { timeoutMs: Infinity });
        await somebodyWaits();
        // Other tests of this process can only add to what the waiter costs: the cheapest of five seconds counts.
        let least = Infinity;
        for (let second = 0; second < 5 && least >= partOfCoreMax; second++) {
          const before = process.cpuUsage();
          // Time passes: what is measured is what it costs.
          await sleep(1000);
          const { user, system } = process.cpuUsage(before);
          least = Math.min(least, (user + system) / 1_000_000);
        }
        expect(least).toBeLessThan(partOfCoreMax);
        await hold.release();
        await (await waiting).release();
      });
    });

    describe("re-entry", () => {
      it("within a hold is not blocked by it, has its fence, and ends with it", async () => {
        const outer = await a.acquire("dir", { mode: "tree" });
        const inner = await a.acquire("dir/file", { within: outer });
        expect(inner.fence).toBe(outer.fence);
        await expect(b.acquire("dir/file")).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
        await inner.release();
        await outer.assertHeld();
        const again = await a.acquire("dir/file", { within: outer });
        await outer.release();
        await expect(again.assertHeld()).rejects.toMatchObject({ code: "LOCK_LOST" });
        await (await b.acquire("dir/file")).release();
      });

      it("keeps two tasks within one hold apart, also while others wait for that hold", async () => {
        const outer = await a.acquire("dir", { mode: "tree" });
        const other = b.acquire("dir", { mode: "tree", timeoutMs: 20_000 });
        const one = await a.acquire("dir/f", { within: outer });
        await expect(a.acquire("dir/f", { within: outer })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
        const next = a.acquire("dir/f", { within: outer, timeoutMs: 5000 });
        await one.release();
        await (await next).release();
        await outer.release();
        await (await other).release();
      });

      it("beyond what a hold covers is an ordinary request, which ends no later than that hold", async () => {
        const outer = await a.acquire("x");
        const inner = await a.acquire("y", { within: outer });
        expect(inner.fence).toBeGreaterThan(outer.fence);
        expect(await b.tryAcquire("y")).toBe(undefined);
        await outer.release();
        await (await b.acquire("y")).release();
      });

      it("that could never end is refused with DEADLOCK for the caller that closes the cycle", async () => {
        const [x, y] = [await a.acquire("x"), await b.acquire("y")];
        const waiting = a.acquire("y", { within: x, timeoutMs: 20_000 });
        await somebodyWaits();
        const error = await failureOf(b.acquire("x", { within: y, timeoutMs: 20_000 }));
        expect(error).toMatchObject({ code: "DEADLOCK" });
        expect((error as HoldfastErrorOf<"DEADLOCK">).cycle.length).toBeGreaterThan(0);
        await y.release();
        await (await waiting).release();
      });

      it("is refused within a hold that is over, or that other locks gave out", async () => {
        const over = await a.acquire("x");
        await over.release();
        await expect(a.acquire("x/y", { within: over })).rejects.toMatchObject({ code: "LOCK_LOST" });
        const foreign = await b.acquire("z");
        await expect(a.acquire("z", { within: foreign })).rejects.toThrow(TypeError);
      });
    });

    describe("changing a hold", () => {
      it("exact to tree gives all that is below and a higher fence, and back lets others in", async () => {
        const hold = await a.acquire("dir");
        const { fence } = hold;
        await hold.upgrade("tree");
        expect(hold.fence).toBeGreaterThan(fence);
        expect(hold.requests).toMatchObject([{ path: "dir", mode: "tree" }]);
        expect(await b.tryAcquire("dir/x")).toBe(undefined);
        await hold.downgrade("exact");
        await (await b.acquire("dir/x")).release();
        await expect(hold.downgrade("tree")).rejects.toThrow(RangeError);
      });

      it("never makes a hold narrower that was to be upgraded", async () => {
        const tree = await a.acquire("dir", { mode: "tree" });
        await expect(tree.upgrade("exact")).rejects.toThrow(RangeError);
        expect(await b.tryAcquire("dir/x")).toBe(undefined);
        const exclusive = await a.acquire("file");
        await expect(exclusive.upgrade({ shared: true })).rejects.toThrow(RangeError);
        expect(await b.tryAcquire("file", { shared: true })).toBe(undefined);
        await exclusive.upgrade("exact");
      });

      it("waits for the requests in the way, and gives up after its timeout", async () => {
        const hold = await a.acquire("dir");
        const below = await b.acquire("dir/x");
        await expect(hold.upgrade("tree")).rejects.toMatchObject({
          code: "LOCK_TIMEOUT",
          blockedBy: [{ path: "dir/x" }],
        });
        await expect(hold.upgrade("tree", { timeoutMs: 150 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
        const waiting = hold.upgrade("tree", { timeoutMs: 20_000 });
        while (!(await b.table.read()).state.requests.some(({ wants }) => wants !== undefined)) await sleep(5);
        await below.release();
        await waiting;
        expect(await b.tryAcquire("dir/x")).toBe(undefined);
      });

      it("of two readers that both want to write tells one of them DEADLOCK, and the other one writes", async () => {
        const [one, two] = [await a.acquire("x", { shared: true }), await b.acquire("x", { shared: true })];
        const answers = await Promise.all(
          [one, two].map(async (hold) => {
            const error = await failureOf(hold.upgrade({ shared: false }, { timeoutMs: 20_000 }));
            if (error !== undefined) await hold.release();
            return error === undefined ? "upgraded" : (error as HoldfastErrorOf<"DEADLOCK">).code;
          }),
        );
        expect(answers.sort()).toEqual(["DEADLOCK", "upgraded"]);
      });

      it("is refused with DEADLOCK while a request waits for this very hold", async () => {
        const hold = await a.acquire("x", { shared: true });
        const waiting = b.acquire("x", { timeoutMs: 20_000 });
        await somebodyWaits();
        await expect(hold.upgrade({ shared: false }, { timeoutMs: 20_000 })).rejects.toMatchObject({
          code: "DEADLOCK",
        });
        await hold.release();
        await (await waiting).release();
      });
    });

    describe("a lost hold", () => {
      it("aborts its signal, fails its checks, and its release is no error", async () => {
        const hold = await a.acquire("x");
        const { signal } = hold;
        const evicted = await b.break("x");
        expect(evicted).toMatchObject([{ path: "x", holdId: hold.id, fence: hold.fence }]);
        await expect(hold.assertHeld()).rejects.toMatchObject({ code: "LOCK_LOST", fence: hold.fence });
        expect(signal.aborted).toBe(true);
        expect(signal.reason).toMatchObject({ code: "LOCK_LOST" });
        await hold.release();
        await (await b.acquire("x")).release();
      });

      it("learns of its loss without asking", async () => {
        const hold = await a.acquire("x");
        const lost = new Promise((resolve) => hold.signal.addEventListener("abort", resolve));
        await b.break("x");
        await lost;
        await expect(hold.refresh()).rejects.toMatchObject({ code: "LOCK_LOST" });
      });

      it("of one path leaves the other holds of its process alone", async () => {
        const [x, y] = [await a.acquire("x"), await a.acquire("y")];
        await b.break("x");
        await y.assertHeld();
        await expect(x.assertHeld()).rejects.toMatchObject({ code: "LOCK_LOST" });
      });

      it("is what a hold becomes under which nothing is done for idleMs", async () => {
        const [idle, busy] = [await a.acquire("x", { idleMs: 300 }), await a.acquire("y", { idleMs: 1000 })];
        const lost = new Promise((resolve) => idle.signal.addEventListener("abort", resolve));
        for (let round = 0; round < 8; round++) {
          // Time passes: more than idleMs in all, much less than that each time.
          await sleep(150);
          await busy.refresh();
        }
        await lost;
        expect(busy.signal.aborted).toBe(false);
        await (await b.acquire("x")).release();
        expect(await b.tryAcquire("y")).toBe(undefined);
      });
    });

    describe("a transfer", () => {
      it("gives a hold to the process with the token, and no other comes in between", async () => {
        const hold = await a.acquire("dir", { mode: "tree", tag: "import" });
        const token = await hold.transfer();
        expect(hold.signal.aborted).toBe(false);
        await expect(hold.assertHeld()).rejects.toMatchObject({ code: "LOCK_LOST" });
        expect(await b.tryAcquire("dir/x")).toBe(undefined);
        const [other] = token.split(/\.[^.]*$/);
        await expect(b.receive(`${other}.0000000000000000000000000`)).rejects.toMatchObject({
          code: "NO_SUCH_TRANSFER",
        });
        const received = await b.receive(token);
        expect(received.fence).toBe(hold.fence);
        expect(received.requests).toMatchObject([{ path: "dir", mode: "tree" }]);
        await expect(a.receive(token)).rejects.toMatchObject({ code: "NO_SUCH_TRANSFER" });
        await expect(a.acquire("dir")).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
        await received.release();
        await (await a.acquire("dir")).release();
      });

      it("outlives the process that offered it, and lapses when no process takes it", async () => {
        const early = await (await a.acquire("early")).transfer({ expiresMs: 60_000 });
        const late = await (await a.acquire("late")).transfer({ expiresMs: 200 });
        await a.close();
        expect(await b.tryAcquire("early")).toBe(undefined);
        await (await b.receive(early)).release();
        // Time passes: until it has lapsed.
        await sleep(250);
        await expect(b.receive(late)).rejects.toMatchObject({ code: "NO_SUCH_TRANSFER" });
        await (await b.acquire("late")).release();
      });

      it("that lapsed blocks no process, whether or not its receiver ever comes", async () => {
        await (await a.acquire("x")).transfer({ expiresMs: 100 });
        // Time passes: until it has lapsed.
        await sleep(150);
        await (await b.acquire("x")).release();
        await expect((await b.acquire("y")).transfer({ expiresMs: -1 })).rejects.toThrow(RangeError);
        for (const token of ["", "x", "a.b.c"])
          await expect(b.receive(token)).rejects.toMatchObject({ code: "NO_SUCH_TRANSFER" });
      });
    });

    describe("the list", () => {
      it("shows the holder of each path, and the processes that wait for it", async () => {
        const hold = await a.acquireAll(["dir/x", { path: "other", shared: true }], { tag: "t" });
        const waiting = b.acquire("dir", { mode: "tree", timeoutMs: 20_000 });
        let shown = await a.list();
        while (shown.flatMap((lock) => lock.waiting).length === 0) shown = await a.list();
        expect(shown).toMatchObject([
          { path: "dir/x", mode: "exact", tag: "t", holdId: hold.id, waiting: [{ path: "dir", mode: "tree" }] },
          { path: "other", shared: true, waiting: [] },
        ]);
        expect((await b.list({ under: "dir" })).map(({ path }) => path)).toEqual(["dir/x"]);
        await hold.release();
        await (await waiting).release();
        expect(await a.list()).toEqual([]);
        expect(await a.break("dir")).toEqual([]);
      });
    });
  });
}

export async function failureOf(action: Promise<unknown>): Promise<unknown> {
  return await action.then(
    () => undefined,
    (error: unknown) => error,
  );
}
