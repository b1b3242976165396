import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Gate, type GateHold } from "../../src/durable/gate/gate.ts";
import { Ground } from "../../src/durable/liveness/ground.ts";
import { openGate, openGround } from "../../src/durable/index.ts";
import { openGate as openGateOn } from "../../src/durable/gate/gate-record.ts";
import { createMemoryPorts } from "../../src/ports/memory/ports.ts";
import { nodeClock } from "../../src/ports/node/clock.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import type { OsLock, OsLockFile } from "../../src/ports/os-lock.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { makeScratch } from "../sites/scratch.ts";
import { startChild, type Child } from "./child.ts";
import { nfs, World } from "../sites/world.ts";

const patience = { timeout: 30_000, interval: 2 };

interface Site {
  readonly ports: Ports;
  readonly lockPath: string;
  /** Each call is like another process: it has descriptors of its own. */
  readonly open: () => Promise<Gate>;
}

function siteOn(ports: Ports, directory: string): Site {
  const options = { lockPath: `${directory}/.store.lock`, turnstilePath: `${directory}/.store.next` };
  const open = async (): Promise<Gate> => {
    const gate = await Gate.open(ports, options);
    onTestFinished(() => gate.close());
    return gate;
  };
  return { ports, lockPath: options.lockPath, open };
}

const sites: readonly [string, () => Promise<Site>][] = [
  [
    "the real disk",
    async () => {
      const directory = makeScratch();
      return siteOn(await openNodePorts(directory), directory);
    },
  ],
  ["the memory disk", async () => siteOn(createMemoryPorts(await openNodePorts("/")), "/")],
  [
    "a slow disk",
    async () => {
      const memory = createMemoryPorts(await openNodePorts("/"));
      return siteOn({ ...memory, osLock: slow(memory.osLock) }, "/");
    },
  ],
];

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * The same lock, each of whose answers takes its time, as on a share: what comes between is seen.
 * The turnstile is the slower one.
 */
function slow(osLock: OsLock): OsLock {
  return {
    async open(path, options) {
      const file = await osLock.open(path, options);
      const turns = path.endsWith(".store.next") ? 6 : 1;
      const late = async <T>(ask: () => Promise<T>): Promise<T> => {
        for (let passed = 0; passed < turns; passed++) await turn();
        return await ask();
      };
      return {
        tryLock: () => late(() => file.tryLock()),
        lock: (options) => late(() => file.lock(options)),
        isIntact: () => late(() => file.isIntact()),
        get identity() {
          return file.identity;
        },
        unlock: () => late(() => file.unlock()),
        close: () => file.close(),
      };
    },
  };
}

describe.each(sites)("a gate on %s", (_, make) => {
  it("lets the callers of one process through one at a time, in the order in which they came", async () => {
    const gate = await (await make()).open();
    const order: number[] = [];
    let inside = 0;
    await Promise.all(
      Array.from({ length: 10 }, async (__, index) => {
        await using _hold = await gate.acquire();
        expect(++inside).toBe(1);
        order.push(index);
        await turn();
        inside--;
      }),
    );
    expect(order).toEqual(Array.from({ length: 10 }, (__, index) => index));
  });

  it("keeps that order also while another process has it", async () => {
    const site = await make();
    const [gate, other] = [await site.open(), await site.open()];
    const hold = await other.acquire();
    const order: number[] = [];
    const waits = Array.from({ length: 5 }, async (__, index) => {
      await using _hold = await gate.acquire();
      order.push(index);
    });
    await turn();
    await hold.release();
    await Promise.all(waits);
    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  it("lets one of two processes through at a time", async () => {
    const site = await make();
    const gates = [await site.open(), await site.open()];
    let inside = 0;
    await Promise.all(
      gates.map(async (gate) => {
        for (let round = 0; round < 20; round++) {
          const hold = await gate.acquire();
          expect(++inside).toBe(1);
          await turn();
          inside--;
          await hold.release();
        }
      }),
    );
  });

  it("gives a hold that tells since when, and that can be released again and again", async () => {
    const gate = await (await make()).open();
    const hold = await gate.acquire();
    expect(Math.abs(Date.now() - hold.acquiredAt.getTime())).toBeLessThan(60_000);
    expect(hold.signal.aborted).toBe(false);
    await hold.release();
    const next = await gate.acquire({ timeoutMs: 0 });
    await hold.release();
    await hold[Symbol.asyncDispose]();
    // The second release did not open it for others.
    expect(await gate.tryAcquire()).toBe(undefined);
    await next.release();
  });

  it("says undefined at once to a caller that only tries, while another caller or process has it", async () => {
    const site = await make();
    const [gate, other] = [await site.open(), await site.open()];
    const hold = await gate.tryAcquire();
    expect(hold).toBeDefined();
    expect(await gate.tryAcquire()).toBe(undefined);
    expect(await other.tryAcquire()).toBe(undefined);
    await hold!.release();
    const next = await other.tryAcquire();
    expect(await gate.tryAcquire()).toBe(undefined);
    await next!.release();
  });

  it("tells a caller that waits too long the path, the time and the option", async () => {
    const site = await make();
    const [gate, other] = [await site.open(), await site.open()];
    const hold = await gate.acquire();
    for (const waiter of [gate, other])
      for (const timeoutMs of [0, 20]) {
        const error: unknown = await waiter.acquire({ timeoutMs }).catch((reason: unknown) => reason);
        expect(error).toMatchObject({
          code: "LOCK_TIMEOUT",
          action: "retry",
          path: site.lockPath,
          waitedMs: timeoutMs,
        });
        const { message } = error as Error;
        for (const told of [site.lockPath, `${timeoutMs} ms`, "timeoutMs"]) expect(message).toContain(told);
      }
    await hold.release();
    // They are out of the line.
    const next = await other.acquire({ timeoutMs: 10_000 });
    await next.release();
    await (await gate.acquire({ timeoutMs: 10_000 })).release();
  });

  it("takes a negative wait for none, and refuses one that is no number", async () => {
    const gate = await (await make()).open();
    const hold = await gate.acquire({ timeoutMs: -5 });
    await expect(gate.acquire({ timeoutMs: -5 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    await expect(gate.acquire({ timeoutMs: NaN })).rejects.toThrow(RangeError);
    await hold.release();
  });

  it("rejects with the reason of a signal that was aborted before, also when it is free", async () => {
    const gate = await (await make()).open();
    const reason = new Error("enough");
    for (const timeoutMs of [0, 100, Infinity])
      await expect(gate.acquire({ timeoutMs, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    await (await gate.acquire({ timeoutMs: 0 })).release();
  });

  it("rejects with the reason of a signal that is aborted during the wait, and is as before", async () => {
    const site = await make();
    const [gate, other] = [await site.open(), await site.open()];
    const hold = await gate.acquire();
    for (const waiter of [gate, other]) {
      const controller = new AbortController();
      const reason = new Error("enough");
      const waiting = waiter.acquire({ signal: controller.signal });
      await turn();
      controller.abort(reason);
      await expect(waiting).rejects.toBe(reason);
    }
    // A caller that came later and stayed is not held up by those that left.
    const staying = other.acquire();
    await hold.release();
    await (await staying).release();
    await (await gate.acquire({ timeoutMs: 10_000 })).release();
  });

  it("keeps the line when one in the middle of it leaves", async () => {
    const gate = await (await make()).open();
    const hold = await gate.acquire();
    const order: string[] = [];
    const controller = new AbortController();
    const wait = async (name: string, signal?: AbortSignal): Promise<void> => {
      await using _hold = await gate.acquire({ signal });
      order.push(name);
    };
    const waits = [wait("first"), wait("second", controller.signal).catch(() => undefined), wait("third")];
    controller.abort();
    await hold.release();
    await Promise.all(waits);
    expect(order).toEqual(["first", "third"]);
  });

  it("tells its holder that a caller waits, here or elsewhere, and that none does any more", async () => {
    const site = await make();
    const [gate, other] = [await site.open(), await site.open()];
    const hold = await gate.acquire();
    expect(await hold.isContended()).toBe(false);
    for (const waiter of [gate, other]) {
      const controller = new AbortController();
      const waiting = waiter.acquire({ signal: controller.signal }).catch(() => undefined);
      await vi.waitFor(async () => expect(await hold.isContended()).toBe(true), patience);
      controller.abort();
      await waiting;
      await vi.waitFor(async () => expect(await hold.isContended()).toBe(false), patience);
    }
    await hold.release();
    expect(await hold.isContended()).toBe(false);
  });

  it("hands over to the process that its holder has seen waiting, however soon the holder comes again", async () => {
    const site = await make();
    const [gate, other] = [await site.open(), await site.open()];
    for (let round = 0; round < 20; round++) {
      const order: string[] = [];
      const enter = async (name: string, by: Gate): Promise<void> => {
        await using _hold = await by.acquire();
        order.push(name);
      };
      const hold = await gate.acquire();
      const waiting = enter("the process that was seen", other);
      while (!(await hold.isContended())) await turn();
      await hold.release();
      await Promise.all([enter("the holder that came again", gate), waiting]);
      expect(order).toEqual(["the process that was seen", "the holder that came again"]);
    }
  });

  it("is free while its holder pauses, and the holder cannot resume once another process has it", async () => {
    const site = await make();
    const [gate, other] = [await site.open(), await site.open()];
    const hold = await gate.acquire();
    await hold.pause();
    await expect(hold.assertHeld()).rejects.toMatchObject({ code: "LOCK_LOST" });
    // Another caller of the same process waits: only other processes may come in between.
    expect(await gate.tryAcquire()).toBe(undefined);
    const theirs = await other.tryAcquire();
    expect(theirs).toBeDefined();
    expect(await hold.resume()).toBe(false);
    await theirs!.release();
    await (await gate.acquire({ timeoutMs: 0 })).release();
  });

  it("is held again by a holder that resumes, and is handed over when that one releases it", async () => {
    const site = await make();
    const [gate, other] = [await site.open(), await site.open()];
    const hold = await gate.acquire();
    await hold.pause();
    expect(await hold.resume()).toBe(true);
    await hold.assertHeld();
    expect(await other.tryAcquire()).toBe(undefined);
    await hold.pause();
    await hold.release();
    expect(await hold.resume()).toBe(false);
    await (await other.acquire({ timeoutMs: 0 })).release();
  });

  it("does not take two questions of its own for another process", async () => {
    const gate = await (await make()).open();
    const hold = await gate.acquire();
    expect(await Promise.all([hold.isContended(), hold.isContended(), hold.isContended()])).toEqual([
      false,
      false,
      false,
    ]);
    await hold.release();
  });

  it("passes on to the next caller also while the question whether a process waits is on its way", async () => {
    const gate = await (await make()).open();
    for (let round = 0; round < 20; round++) {
      const hold = await gate.acquire();
      const asked = hold.isContended();
      const [, next] = await Promise.all([hold.release(), gate.acquire({ timeoutMs: 10_000 })]);
      await asked;
      expect(await hold.isContended()).toBe(false);
      await next.release();
    }
  });

  it("rejects waiting callers with CLOSED when it is closed", async () => {
    const site = await make();
    const [gate, other] = [await site.open(), await site.open()];
    const hold = await other.acquire();
    const waits = [gate.acquire(), gate.acquire()].map((wait) => wait.catch((error: unknown) => error));
    await turn();
    await gate.close();
    for (const error of await Promise.all(waits)) expect(error).toMatchObject({ code: "CLOSED" });
    await expect(gate.acquire()).rejects.toMatchObject({ code: "CLOSED" });
    await hold.release();
    await (await other.acquire({ timeoutMs: 10_000 })).release();
  });

  it("waits, when it is closed, for its holder: no other process comes in beside it", async () => {
    const site = await make();
    const [gate, other] = [await site.open(), await site.open()];
    const hold = await gate.acquire();
    const closed = vi.fn();
    const closing = gate[Symbol.asyncDispose]().then(closed);
    for (let round = 0; round < 5; round++) {
      await turn();
      expect(await other.tryAcquire()).toBe(undefined);
    }
    expect(closed).not.toHaveBeenCalled();
    await hold.release();
    await closing;
    await (await other.acquire({ timeoutMs: 10_000 })).release();
  });
});

describe("a gate whose OS lock fails", () => {
  /** An OS lock of which some operations fail. */
  async function failing(changes: Partial<OsLockFile>): Promise<{ ports: Ports; heal: () => void }> {
    const memory = createMemoryPorts(await openNodePorts("/"));
    let isBroken = true;
    const osLock: OsLock = {
      async open(path) {
        const file = await memory.osLock.open(path);
        return new Proxy(file, {
          get(target, key): unknown {
            const source = isBroken && key in changes ? changes : target;
            const value: unknown = Reflect.get(source, key);
            return typeof value === "function" ? value.bind(source) : value;
          },
        });
      },
    };
    return { ports: { ...memory, osLock }, heal: () => (isBroken = false) };
  }
  async function broken(): Promise<never> {
    throw new Error("no locks available");
  }
  const cases: readonly [string, (gate: Gate) => Promise<unknown>, Partial<OsLockFile>][] = [
    ["a caller that only tries", (gate) => gate.tryAcquire(), { tryLock: broken }],
    ["a caller that finds it free", (gate) => gate.acquire(), { tryLock: broken }],
    ["a caller that has to wait", (gate) => gate.acquire(), { tryLock: async () => false, lock: broken }],
  ];

  it.each(cases)("passes the failure on to %s, and lets the next caller try", async (_, action, changes) => {
    const { ports, heal } = await failing(changes);
    const gate = await siteOn(ports, "/").open();
    await expect(action(gate)).rejects.toThrow("no locks available");
    await expect(action(gate)).rejects.toThrow("no locks available");
    heal();
    await (await gate.acquire({ timeoutMs: 10_000 })).release();
  });

  it("hands over also when unlocking fails", async () => {
    const { ports, heal } = await failing({ unlock: broken });
    const gate = await siteOn(ports, "/").open();
    const hold = (await gate.tryAcquire()) as GateHold;
    await expect(hold.release()).rejects.toThrow("no locks available");
    heal();
    // The OS lock may still be taken; the line of this process is not stuck.
    expect(await Promise.race([gate.tryAcquire(), turn().then(() => "stuck")])).not.toBe("stuck");
  });

  it("leaves no descriptor open when the second lock file cannot be opened", async () => {
    const memory = createMemoryPorts(await openNodePorts("/"));
    const closed: string[] = [];
    const osLock: OsLock = {
      async open(path) {
        if (path.endsWith(".store.next")) return await broken();
        const file = await memory.osLock.open(path);
        return Object.assign(Object.create(file) as OsLockFile, {
          close: async () => {
            closed.push(path);
            await file.close();
          },
        });
      },
    };
    await expect(siteOn({ ...memory, osLock }, "/").open()).rejects.toThrow("no locks available");
    expect(closed).toEqual(["//.store.lock"]);
  });
});

it("a process that had its turn asks for the next one later than those that wait already", async () => {
  const ports = createMemoryPorts(await openNodePorts(makeScratch()));
  await ports.disk.mkdir("/store");
  let nowMs = 0;
  const firstPauses: (number | undefined)[] = [];
  const osLock: OsLock = {
    open: async (path, options) => {
      const file = await ports.osLock.open(path, options);
      const lock = file.lock.bind(file);
      file.lock = async (waiting) => {
        if (path.endsWith(".next")) firstPauses.push(waiting?.pauseMs?.(0));
        await lock(waiting);
      };
      return file;
    },
  };
  const { open } = siteOn({ ...ports, osLock, clock: { ...ports.clock, monotonicMs: () => nowMs } }, "/store");
  const [ada, bob] = [await open(), await open()];
  /** Ada waits for as long as Bob holds it, and then holds it for 20 ms. */
  const takeTurns = async (waitMs: number): Promise<void> => {
    const held = await bob.acquire();
    const waiting = ada.acquire();
    // Ada is in the turnstile, or outside.
    for (let passed = 0; passed < 20; passed++) await turn();
    nowMs += waitMs;
    await held.release();
    const hold = await waiting;
    nowMs += 20;
    await hold.release();
  };
  await takeTurns(20);
  await takeTurns(20);
  // The others work as much as Ada: she lets them go first.
  expect(firstPauses).toEqual([20]);
  await takeTurns(1);
  // Bob was in and out: she asks at once.
  await takeTurns(1);
  expect(firstPauses).toEqual([20, 20]);
});

describe("a gate between processes", () => {
  async function openBoth(program: string): Promise<{ gate: Gate; directory: string; child: Child }> {
    const directory = makeScratch();
    const ground = await openGround(join(directory, "ground"));
    onTestFinished(() => ground.close());
    const gate = await openGate(ground, directory);
    onTestFinished(() => gate.close());
    const child = startChild(
      `
      const ground = await durable.openGround(args[0] + "/ground");
      const gate = await durable.openGate(ground, args[0]);
      ${program}
      await gate.close();
      await ground.close();
      process.stdin.destroy();`,
      directory,
    );
    return { gate, directory, child };
  }

  it("opens by itself when its holder is killed", async () => {
    const { gate, child } = await openBoth(`
      await gate.acquire();
      say("held");
      await told.next();`);
    expect(await child.hear()).toBe("held");
    expect(await gate.tryAcquire()).toBe(undefined);
    const waiting = gate.acquire({ timeoutMs: 30_000 });
    await child.end("SIGKILL");
    await (await waiting).release();
  });

  it("is not stuck when the process in the turnstile is killed", async () => {
    const { gate, child } = await openBoth(`
      say("waits");
      await gate.acquire();`);
    const hold = await gate.acquire();
    await child.hear();
    await vi.waitFor(async () => expect(await hold.isContended()).toBe(true), patience);
    await child.end("SIGKILL");
    await vi.waitFor(async () => expect(await hold.isContended()).toBe(false), patience);
    await hold.release();
    await (await gate.acquire({ timeoutMs: 10_000 })).release();
  });

  it("shows its holder a waiter of another process, which is next", async () => {
    const { gate, child } = await openBoth(`
      const hold = await gate.acquire();
      say("held");
      await told.next();
      await hold.release();`);
    const hold = await gate.acquire();
    await vi.waitFor(async () => expect(await hold.isContended()).toBe(true), patience);
    await hold.release();
    // It waits in the turnstile, so that we cannot overtake it.
    const waiting = gate.acquire({ timeoutMs: 30_000 });
    expect(await child.hear()).toBe("held");
    child.tell("release");
    await (await waiting).release();
  });

  it("is handed to the waiter: a process that takes it again and again cannot overtake", async () => {
    const rounds = 100;
    // The same loop on both sides: a line for each time it is held, with whether the other was seen
    // waiting.
    const loop = `
      for (let round = 0; round < ${rounds}; round++) {
        const hold = await gate.acquire();
        // Time passes: long enough for the other to come to the turnstile.
        await new Promise((resolve) => setTimeout(resolve, 1));
        append(await hold.isContended());
        await hold.release();
      }`;
    const { gate, directory, child } = await openBoth(`
      import { appendFileSync } from "node:fs";
      const append = (isContended) => appendFileSync(args[0] + "/log", "child " + isContended + "\\n");
      say("ready");
      await told.next();
      ${loop}
      say("done");`);
    await child.hear();
    child.tell("go");
    for (let round = 0; round < rounds; round++) {
      const hold = await gate.acquire();
      // Time passes: long enough for the other to come to the turnstile.
      await nodeClock.sleep(1);
      appendFileSync(join(directory, "log"), `parent ${await hold.isContended()}\n`);
      await hold.release();
    }
    expect(await child.hear()).toBe("done");
    const held = readFileSync(join(directory, "log"), "utf8").trim().split("\n");
    expect(held).toHaveLength(2 * rounds);
    const overtaken = held.filter((line, index) => {
      const [who, isContended] = line.split(" ");
      const [next] = held[index + 1]?.split(" ") ?? [];
      return isContended === "true" && next === who;
    });
    expect(overtaken).toEqual([]);
    // They did meet.
    expect(held.filter((line) => line.endsWith("true")).length).toBeGreaterThan(rounds / 10);
  });
});

describe("which gate guards a directory", () => {
  const gateOf = (text: string): unknown => (JSON.parse(text) as { body: { gate: unknown } }).body.gate;

  it("is recorded once, by the first process, for all", async () => {
    const directory = makeScratch();
    const grounds = await Promise.all(Array.from({ length: 4 }, () => openGround(join(directory, "ground"))));
    onTestFinished(async () => void (await Promise.all(grounds.map((ground) => ground.close()))));
    const gates = await Promise.all(grounds.map((ground) => openGate(ground, directory)));
    onTestFinished(async () => void (await Promise.all(gates.map((gate) => gate.close()))));
    const record = readFileSync(join(directory, "gate.json"), "utf8");
    expect(gateOf(record)).toBe("os");
    const hold = await gates[0]!.acquire();
    for (const gate of gates.slice(1)) expect(await gate.tryAcquire()).toBe(undefined);
    await hold.release();
    expect(readFileSync(join(directory, "gate.json"), "utf8")).toBe(record);
  });

  it.each(["network", "unknown"] as const)(
    "is the table on a volume that is %s, and an OS lock is refused there",
    async (kind) => {
      const world = new World({ volume: { ...nfs, kind } });
      const ports = world.ports("ada");
      const ground = await Ground.open(ports, "/ground");
      await expect(openGateOn(ports, ground.staging, "/ground")).rejects.toMatchObject({
        code: "UNSUPPORTED_DISK",
        path: "/ground",
        missing: ["a gate between machines"],
      });
      expect(gateOf(world.tree("/ground")["/ground/gate.json"]!)).toBe("table");
      expect(Object.keys(world.tree("/ground"))).not.toContain("/ground/.store.lock");
      await ground.close();
    },
  );

  it("that is recorded as an OS lock is refused from a volume that is not known to be local", async () => {
    const directory = makeScratch();
    await using ground = await openGround(join(directory, "ground"));
    await (await openGate(ground, directory)).close();
    const { ports, staging } = ground;
    const far = new Proxy(ports.disk, {
      get: (target, key): unknown => {
        if (key === "volume") return nfs;
        const value: unknown = Reflect.get(target, key);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const error: unknown = await openGateOn({ ...ports, disk: far }, staging, directory).catch(
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ code: "UNSUPPORTED_DISK", path: directory, missing: ["a local disk"] });
    expect((error as Error).message).toContain("nfs4");
  });

  it("that is recorded as the table is refused by a program that cannot use it, and nothing is written", async () => {
    const world = new World({ volume: nfs });
    const ground = await Ground.open(world.ports("ada"), "/ground");
    await openGateOn(ground.ports, ground.staging, "/ground").catch(() => undefined);
    const record = world.tree("/ground")["/ground/gate.json"]!;
    await ground.close();

    const directory = makeScratch();
    writeFileSync(join(directory, "gate.json"), record);
    await using here = await openGround(join(directory, "ground"));
    await expect(openGate(here, directory)).rejects.toMatchObject({
      code: "UNSUPPORTED_DISK",
      path: directory,
      missing: ["a gate between machines"],
    });
    expect(existsSync(join(directory, ".store.lock"))).toBe(false);
  });

  it("is the table where there are no OS locks, so that all refuse alike", async () => {
    const world = new World({ quirks: { osLocks: "none" } });
    const ports = world.ports("ada");
    const ground = await Ground.open(ports, "/ground");
    await expect(openGateOn(ports, ground.staging, "/ground")).rejects.toMatchObject({ code: "UNSUPPORTED_DISK" });
    expect(gateOf(world.tree("/ground")["/ground/gate.json"]!)).toBe("table");
    await ground.close();
  });

  it("is not decided for a directory that is not there", async () => {
    const directory = makeScratch();
    await using ground = await openGround(join(directory, "ground"));
    await expect(openGate(ground, join(directory, "missing"))).rejects.toMatchObject({
      code: "IO_ERROR",
      errno: "ENOENT",
      path: expect.stringContaining("missing") as string,
    });
    expect(existsSync(join(directory, "missing"))).toBe(false);
  });
});
