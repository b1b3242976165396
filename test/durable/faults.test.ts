// Every call of every mechanism fails once with every errno, and once for good: each ends in a
// typed error, and nothing that was promised is broken.
import { describe, expect, it } from "vitest";
import { Chain } from "../../src/durable/chain/chain.ts";
import { Ground } from "../../src/durable/liveness/ground.ts";
import { openGate } from "../../src/durable/gate/gate-record.ts";
import { putIfAbsent, replace } from "../../src/durable/publish/publish.ts";
import { isHoldfastError } from "../../src/errors.ts";
import { slotName } from "../../src/format/name.ts";
import { add, openList } from "./listed-ids.ts";
import { noteKind } from "../sites/disks.ts";
import { errnos, local, lostReplies, nfs, World, type Fault } from "../sites/world.ts";

/** What became of an action. */
type Outcome = { readonly value: unknown } | { readonly code: string };

interface Attempt {
  /** With the fault. Only the process "ada" meets it. */
  readonly run: () => Promise<unknown>;
  /** After the disk is healed: the promises hold, and the same works. */
  readonly check: (outcome: Outcome) => Promise<void>;
}

/** Nothing of what failed so has happened. */
const isRefusal = (outcome: Outcome): boolean =>
  "code" in outcome && ["DISK_FULL", "NO_PERMISSION"].includes(outcome.code);

async function outcomeOf(action: Promise<unknown>): Promise<Outcome> {
  try {
    return { value: await action };
  } catch (error) {
    if (isHoldfastError(error)) return { code: error.code };
    throw error;
  }
}

/**
 * Everything is answered at once here: what has not come to its end after so many turns of the
 * event loop never will.
 */
const turnsMax = 2000;

async function mustEnd<T>(action: Promise<T>): Promise<T> {
  let isOver = false;
  const over = action.finally(() => (isOver = true));
  over.catch(() => undefined);
  for (let turn = 0; turn < turnsMax && !isOver; turn++) await new Promise((resolve) => setImmediate(resolve));
  if (!isOver) throw new Error("it hangs");
  return await over;
}

const faultKinds: readonly Pick<Fault, "label" | "lasting">[] = [
  ...errnos.flatMap((label) => [
    { label, lasting: false },
    { label, lasting: true },
  ]),
  ...lostReplies.map((label) => ({ label, lasting: false })),
];

/**
 * Tries the fault at the first call, at the second, and so on until the operation is done before it
 * comes; how often.
 */
async function tryAllCalls(
  kind: Pick<Fault, "label" | "lasting">,
  makeWorld: () => World,
  prepare: (world: World) => Promise<Attempt>,
): Promise<number> {
  for (let at = 1; ; at++) {
    const world = makeWorld();
    const attempt = await prepare(world);
    let outcome: Outcome = { value: undefined };
    try {
      const hasCome = await world.withFault({ ...kind, process: "ada", at }, async () => {
        outcome = await mustEnd(outcomeOf(attempt.run()));
      });
      await mustEnd(attempt.check(outcome));
      if (!hasCome) return at - 1;
    } catch (error) {
      const what = `${kind.label}${kind.lasting ? " from there on" : ""} at call ${at} (${world.spoiled.slice(0, 3).join("; ")})`;
      throw new Error(`${what}, which ended in ${JSON.stringify(outcome)}`, { cause: error });
    }
  }
}

const leaseMs = 3_600_000;
const bytesOf = (text: string): Uint8Array => Buffer.from(text);
const couldNotRemove = (world: World): boolean => world.spoiled.some((what) => what.startsWith("unlink"));

/** A name that was acknowledged is in every state that a power cut may leave. */
function mustBeDurable(world: World, path: string, content: string): void {
  const count = Math.min(world.server.crashImageCount(), 100);
  for (let index = 0; index < count; index++) {
    const node = world.server.crashImage(index).find(path);
    expect(node?.kind === "file" && Buffer.from(node.bytes).toString()).toBe(content);
  }
}

async function preparePut(world: World): Promise<Attempt> {
  const staging = await world.staging("ada");
  world.server.settle();
  return {
    run: () => putIfAbsent(staging, "/name", bytesOf("mine")),
    check: async (outcome) => {
      const content = world.tree("/name")["/name"];
      if ("value" in outcome) expect([outcome.value, content]).toEqual([true, "mine"]);
      if ("value" in outcome) mustBeDurable(world, "/name", "mine");
      if (isRefusal(outcome)) expect(content).toBe(undefined);
      expect([undefined, "mine"]).toContain(content);
      if (!couldNotRemove(world)) expect(world.tree("/temp")).toEqual({ "/temp/": "" });
      expect(await putIfAbsent(staging, "/name", bytesOf("mine"))).toBe(true);
      expect(await putIfAbsent(staging, "/name", bytesOf("other"))).toBe(false);
      expect(world.tree("/name")["/name"]).toBe("mine");
    },
  };
}

async function prepareReplace(world: World): Promise<Attempt> {
  const staging = await world.staging("ada");
  await replace(staging, "/name", bytesOf("old"));
  world.server.settle();
  return {
    run: () => replace(staging, "/name", bytesOf("new")),
    check: async (outcome) => {
      const content = world.tree("/name")["/name"];
      if ("value" in outcome) mustBeDurable(world, "/name", "new");
      if (isRefusal(outcome)) expect(content).toBe("old");
      expect("value" in outcome ? ["new"] : ["old", "new"]).toContain(content);
      if (!couldNotRemove(world)) expect(world.tree("/temp")).toEqual({ "/temp/": "" });
      await replace(staging, "/name", bytesOf("newer"));
      expect(world.tree("/name")["/name"]).toBe("newer");
    },
  };
}

async function prepareChain(world: World): Promise<Attempt> {
  const staging = await world.staging("ada");
  await staging.disk.mkdir("/chain");
  const others = new Chain(await world.staging("bea"), "/chain", noteKind);
  await others.append("b1", () => ({ text: "b1" }));
  const chain = new Chain(staging, "/chain", noteKind);
  await chain.last();
  // So that the race for number 2 is lost first.
  await others.append("b2", () => ({ text: "b2" }));
  world.server.settle();
  return {
    run: () => chain.append("mine", () => ({ text: "mine" })),
    check: async (outcome) => {
      if ("value" in outcome) expect(outcome.value).toMatchObject({ number: 3, id: "mine" });
      const found = await others.find(3);
      if ("value" in outcome) expect(found?.id).toBe("mine");
      if ("value" in outcome)
        mustBeDurable(world, `/chain/${slotName(3)}`, world.tree("/chain")[`/chain/${slotName(3)}`]!);
      if (isRefusal(outcome)) expect(found).toBe(undefined);
      const length = found === undefined ? 2 : 3;
      expect(await chain.append("again", () => ({ text: "again" }))).toMatchObject({ number: length + 1 });
      expect(await others.append("b3", () => ({ text: "b3" }))).toMatchObject({ number: length + 2 });
      expect(Object.keys(world.tree("/chain"))).toHaveLength(length + 2);
      if (!couldNotRemove(world)) expect(world.tree("/temp")).toEqual({ "/temp/": "" });
    },
  };
}

async function prepareRollingChain(world: World): Promise<Attempt> {
  const staging = await world.staging("ada");
  const others = await openList(await world.staging("bea"), "/list", { slotsPerEpoch: 2 });
  // The first epoch is full.
  for (const id of ["b1", "b2"]) await add(others, id);
  const chain = await openList(staging, "/list", { slotsPerEpoch: 2 });
  const outcomes = new Map<string, Outcome>();
  return {
    // A roll, two slots, and another roll.
    run: async () => {
      for (const id of ["a1", "a2", "a3"]) outcomes.set(id, await outcomeOf(add(chain, id)));
    },
    check: async () => {
      const { ids } = (await others.read()).state;
      expect(new Set(ids).size).toBe(ids.length);
      for (const [id, outcome] of outcomes) {
        // The number of an append is its place in the list.
        if ("value" in outcome) expect(ids.indexOf(id) + 1).toBe(outcome.value);
        if (isRefusal(outcome)) expect(ids).not.toContain(id);
      }
      expect(await add(chain, "again")).toBe(ids.length + 1);
      expect(await add(others, "b3")).toBe(ids.length + 2);
      expect((await chain.read()).state.ids).toEqual([...ids, "again", "b3"]);
    },
  };
}

async function prepareCollect(world: World): Promise<Attempt> {
  const staging = await world.staging("ada");
  const chain = await openList(staging, "/list", { slotsPerEpoch: 2 });
  const ids = Array.from({ length: 9 }, (_, index) => `a${index + 1}`);
  for (const id of ids) await add(chain, id);
  return {
    run: () => chain.collect(),
    check: async (outcome) => {
      const others = await openList(await world.staging("bea"), "/list", { slotsPerEpoch: 2 });
      expect(await others.read()).toEqual({ number: 9, state: { ids } });
      await chain.collect();
      const epochs = new Set(Object.keys(world.tree("/list")).map((path) => path.split("/")[2]!.slice(0, 10)));
      expect([...epochs].sort()).toEqual([slotName(4), slotName(5), "epochs"]);
      expect(await add(chain, "again")).toBe(10);
      void outcome;
    },
  };
}

/** Nothing is left of a process that could not join or leave, once an hour has passed. */
async function mustBeSwept(world: World, sweeper: Ground): Promise<void> {
  await world.advance(leaseMs / 2);
  // Once to judge by bytes, and as often as a lease takes.
  for (let look = 0; look < 8; look++) {
    await world.advance(leaseMs / 4);
    await sweeper.sweep();
  }
  const { id } = (await sweeper.session()).holder;
  const left = [...Object.keys(world.tree("/ground/holders")), ...Object.keys(world.tree("/ground/temp"))].filter(
    (path) => !path.includes(id) && path !== "/ground/holders/",
  );
  expect(left).toEqual([]);
}

const joinAs = (world: World, process: string): Promise<Ground> =>
  Ground.open(world.ports(process), "/ground", { leaseMs });

function prepareOpen(isFirst: boolean) {
  return async (world: World): Promise<Attempt> => {
    const bea = isFirst ? undefined : await joinAs(world, "bea");
    let opened: Ground | undefined;
    return {
      run: async () => (opened = await joinAs(world, "ada")),
      check: async () => {
        // The ground that is there has one id for every later process.
        const again = await joinAs(world, "ada");
        const other = bea ?? (await joinAs(world, "bea"));
        expect(new Set([again.id, other.id, opened?.id ?? again.id]).size).toBe(1);
        expect(await putIfAbsent(again.staging, "/ground/name", bytesOf("x"))).toBe(true);
        await opened?.close();
        await again.close();
        await mustBeSwept(world, other);
      },
    };
  };
}

async function prepareClose(world: World): Promise<Attempt> {
  const [ada, bea] = [await joinAs(world, "ada"), await joinAs(world, "bea")];
  const { temp, signal } = await ada.session();
  await world.ports("ada").disk.createFile(`${temp}/x`, bytesOf("x"), { sync: false });
  return {
    run: () => ada.close(),
    check: async () => {
      expect(signal.aborted).toBe(true);
      expect([...world.server.handles].filter(({ process }) => process === "ada")).toEqual([]);
      await ada.close();
      await expect(ada.session()).rejects.toMatchObject({ code: "CLOSED" });
      await mustBeSwept(world, bea);
    },
  };
}

async function prepareNewSession(world: World): Promise<Attempt> {
  const bea = await joinAs(world, "bea");
  world.ports("ada", "machine", 0);
  const ada = await joinAs(world, "ada");
  const first = await ada.session();
  await world.advance(leaseMs);
  return {
    run: () => putIfAbsent(ada.staging, "/ground/name", bytesOf("mine")),
    check: async (outcome) => {
      if ("value" in outcome) expect(world.tree("/ground")["/ground/name"]).toBe("mine");
      expect(await putIfAbsent(ada.staging, "/ground/name", bytesOf("mine"))).toBe(true);
      expect((await ada.session()).holder.id).not.toBe(first.holder.id);
      await ada.close();
      await mustBeSwept(world, bea);
    },
  };
}

async function prepareSweep(world: World): Promise<Attempt> {
  const [dead, living] = [await joinAs(world, "dead"), await joinAs(world, "living")];
  for (const [process, ground] of [
    ["dead", dead],
    ["living", living],
  ] as const)
    for (const name of ["x", "y"])
      await world
        .ports(process)
        .disk.createFile(`${(await ground.session()).temp}/${name}`, bytesOf(name), { sync: false });
  const deadId = (await dead.session()).holder.id;
  const livingId = (await living.session()).holder.id;
  world.kill("dead");
  const ada = await joinAs(world, "ada");
  const ofLiving = (): string[] => Object.keys(world.tree("/ground")).filter((path) => path.includes(livingId));
  const before = ofLiving();
  return {
    run: () => ada.sweep(),
    check: async () => {
      expect(ofLiving()).toEqual(before);
      // The first may be the one that declares the death, and the next one forgets it.
      for (let sweep = 0; sweep < 2; sweep++) await ada.sweep();
      expect(ofLiving()).toEqual(before);
      expect(Object.keys(world.tree("/ground")).filter((path) => path.includes(deadId))).toEqual([]);
    },
  };
}

async function prepareGate(world: World): Promise<Attempt> {
  const ada = await joinAs(world, "ada");
  return {
    run: async () => {
      const gate = await openGate(ada.ports, ada.staging, "/ground");
      await (await gate.acquire()).release();
      await gate.close();
    },
    check: async () => {
      const bea = await joinAs(world, "bea");
      const gates = [
        await openGate(ada.ports, ada.staging, "/ground"),
        await openGate(bea.ports, bea.staging, "/ground"),
      ];
      for (const gate of gates) {
        const hold = await gate.acquire({ timeoutMs: 0 });
        for (const other of gates) expect(await other.tryAcquire()).toBe(undefined);
        await hold.release();
      }
    },
  };
}

const operations: readonly [string, (world: World) => Promise<Attempt>][] = [
  ["put if absent", preparePut],
  ["replace", prepareReplace],
  ["an append to a chain", prepareChain],
  ["appends to a rolling chain, over two rolls", prepareRollingChain],
  ["a collection", prepareCollect],
  ["the first opening of a ground", prepareOpen(true)],
  ["the opening of a ground", prepareOpen(false)],
  ["the closing of a ground", prepareClose],
  ["the beginning of a new session", prepareNewSession],
  ["a sweep", prepareSweep],
  ["the opening of a gate", prepareGate],
];

describe.each(operations)("%s", (name, prepare) => {
  // A gate of the kernel is for local disks.
  const volumes = name === "the opening of a gate" ? [local] : [local, nfs];

  describe.each(volumes)("on $type", (volume) => {
    it.each(faultKinds)("keeps its promises at every call that ends in $label (lasting: $lasting)", async (kind) => {
      const calls = await tryAllCalls(kind, () => new World({ volume }), prepare);
      expect(calls).toBeGreaterThan(1);
    });
  });
});
