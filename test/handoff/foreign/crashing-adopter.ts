// An adopter that dies, or whose disk fails, at one of its calls, and what must hold afterwards: each file makes one
// ticket, and nothing is left.
import { expect } from "vitest";
import { openBox } from "../../../src/handoff/box/open-box.ts";
import type { AdoptRule } from "../../../src/handoff/model/foreign-rule.ts";
import { BoxHandoff } from "../../../src/handoff/handoff.ts";
import { World, type Fault } from "../../sites/world.ts";
import { drain, filesIn } from "../publish/opened-box.ts";

const stepsMax = 3000;
const leaseMs = 2_000;

async function mustEnd<T>(world: World, action: Promise<T>): Promise<T> {
  let isOver = false;
  const over = action.finally(() => (isOver = true));
  over.catch(() => undefined);
  for (let step = 0; step < stepsMax && !isOver; step++) await world.advance(20);
  if (!isOver) throw new Error("it hangs");
  return await over;
}

export const works: readonly [what: string, rule: AdoptRule, files: Readonly<Record<string, string>>][] = [
  ["a done file", { by: "done-file", done: "{base}.ok" }, { "a.csv": "1", "a.pdf": "2", "a.ok": "" }],
  ["a rename", { by: "rename", ignore: [] }, { "a.csv": "1" }],
];

async function makeWorld(files: Readonly<Record<string, string>>): Promise<World> {
  const world = new World();
  const { disk } = world.ports("producer");
  await disk.mkdir("/in");
  for (const [name, text] of Object.entries(files))
    await disk.createFile(`/in/${name}`, Buffer.from(text), { sync: true });
  return world;
}

async function open(world: World, process: string): Promise<BoxHandoff> {
  return new BoxHandoff(await openBox(world.ports(process), "/box", { leaseMs }), { leaseMs });
}

const payloadOf = (files: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(files).filter(([name]) => name !== "a.ok"));

/** Adopts until nothing is left, as the next process does. */
async function adoptRest(world: World, process: string, rule: AdoptRule): Promise<Record<string, string>[]> {
  const step = <T>(action: Promise<T>): Promise<T> => mustEnd(world, action);
  const box = await step(open(world, process));
  // The process that died is seen to be silent for its lease.
  for (let round = 0; round < 6; round++) {
    await step(box.adopt("/in", rule));
    await world.advance(leaseMs / 2);
  }
  const taken = await step(drain(box));
  await step(box.close());
  return taken.map(({ files }) => ({ ...files }));
}

type Work = (typeof works)[number];

/** A process that dies at any of its calls leaves what the next process makes one ticket of. */
export async function killAtEveryCall([, rule, files]: Work): Promise<void> {
  let at = 1;
  for (; at < 300; at++) {
    const world = await makeWorld(files);
    const ada = await mustEnd(world, open(world, "ada"));
    let isDone = false;
    await world.killAtCall("ada", at, async () => {
      await ada.adopt("/in", rule);
      isDone = true;
    });
    expect(await adoptRest(world, "bea", rule), `killed at call ${at}`).toEqual([payloadOf(files)]);
    const { disk } = world.ports("watcher");
    for (const place of ["/in", "/box/adopting", "/box/staging"])
      expect(await filesIn(disk, place), `${place}, killed at call ${at}`).toEqual([]);
    if (isDone) break;
  }
  expect(at).toBeGreaterThan(20);
}

/** Two processes that take over the claim of a dead one make one ticket of it. */
export async function takeOverByTwo([, rule, files]: Work): Promise<void> {
  for (let at = 5; at < 60; at += 3) {
    const world = await makeWorld(files);
    const step = <T>(action: Promise<T>): Promise<T> => mustEnd(world, action);
    const ada = await step(open(world, "ada"));
    await world.killAtCall("ada", at, () => ada.adopt("/in", rule));
    const both = await step(Promise.all([open(world, "bea"), open(world, "cyd")]));
    for (let round = 0; round < 6; round++) {
      await step(Promise.all(both.map((box) => box.adopt("/in", rule))));
      await world.advance(leaseMs / 2);
    }
    expect((await step(drain(both[0]))).map((taken) => taken.files)).toEqual([payloadOf(files)]);
  }
}

export const faults: readonly Pick<Fault, "label" | "lasting">[] = [
  { label: "ENOSPC", lasting: false },
  { label: "EIO", lasting: false },
  { label: "ENOSPC", lasting: true },
  { label: "done, but the reply is lost", lasting: false },
  { label: "done, and the repeated request fails", lasting: false },
];

/** A call that fails loses no file, and makes no second ticket. */
export async function failAtEveryCall([, rule, files]: Work, fault: (typeof faults)[number]): Promise<void> {
  for (let at = 1, hasCome = true; hasCome; at++) {
    const world = await makeWorld(files);
    const step = <T>(action: Promise<T>): Promise<T> => mustEnd(world, action);
    const ada = await step(open(world, "ada"));
    hasCome = await world.withFault({ process: "ada", at, ...fault }, async () => {
      await step(ada.adopt("/in", rule).catch(() => 0));
    });
    // The same process goes on.
    for (let round = 0; round < 3; round++) await step(ada.adopt("/in", rule));
    const taken = (await step(drain(ada))).map((each) => each.files);
    expect(taken, `${world.spoiled[0]} at call ${at}`).toEqual([payloadOf(files)]);
    const { disk } = world.ports("watcher");
    for (const place of ["/in", "/box/adopting"])
      expect(await filesIn(disk, place), `${place}, ${world.spoiled[0]} at call ${at}`).toEqual([]);
    await step(ada.close());
  }
}
