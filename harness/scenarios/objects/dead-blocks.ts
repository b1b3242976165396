// Scenarios of key blocks that are dropped while other processes remember an old end of the key.
import { findSlot } from "../../../src/objects/key/entry-file.ts";
import { dropBlock, isDropped } from "../../../src/objects/key/dropped-block.ts";
import type { KeyChain } from "../../../src/objects/key/key-chain.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";
import { share } from "../volumes.ts";
import {
  idOf,
  keyScenario,
  openKey,
  keyStorageOf,
  putOne,
  stageAndPut,
  stagePut,
  type Acknowledged,
  type KeyScenarioOptions,
} from "./key-actors.ts";

const slotsPerBlock = 2;

/** The functions under test: the real ones, or known-wrong variants. */
export interface BlockScenarioOptions extends KeyScenarioOptions {
  readonly drop?: typeof dropBlock | undefined;
}

/** Has read the key when it ended with `before`, and puts after the entries `later` have been added. */
function sleeper(options: KeyScenarioOptions, before: readonly string[], later: readonly string[]): Actor {
  return actor({
    prepare: async ({ ports, name }) => {
      const maker = openKey(ports, name, { slotsPerBlock });
      for (const id of before) await stageAndPut(ports, maker, name, id);
      const chain = openKey(ports, name, { ...options, slotsPerBlock });
      await chain.findHead();
      for (const id of later) await stageAndPut(ports, maker, name, id);
      return { chain, candidate: await stagePut(ports, name, name) };
    },
    run: (context, { chain, candidate }) => putOne(context, chain, candidate),
  });
}

/** Drops block 1, which it has read. */
function dropper({ drop = dropBlock }: BlockScenarioOptions): Actor {
  return actor({
    // The sleeper was prepared before, and another block now follows this one.
    prepare: async ({ ports, name }) => {
      const { names, incarnation } = await headOf(openKey(ports, name, { slotsPerBlock }));
      const slots = await Promise.all([3, 4].map((each) => findSlot(ports.disk, names.slotPath(incarnation, each))));
      return { at: { names, incarnation, block: 1 }, ids: slots.map((slot) => slot?.entry.id ?? "") };
    },
    run: async ({ ports, name }, { at, ids }) => await drop(keyStorageOf(ports, name, slotsPerBlock), at, ids),
  });
}

async function headOf(chain: KeyChain): Promise<{ readonly names: KeyChain["names"]; readonly incarnation: string }> {
  const { incarnation = "" } = (await chain.findHead()) ?? {};
  return { names: chain.names, incarnation };
}

function pathOf({ names }: KeyChain, incarnation: string, number: number): string {
  return names.slotPath(incarnation, number);
}

/** Every acknowledged put is present under its number. None of them is in the dropped block. */
async function audit(ports: Ports, facts: readonly Fact[]): Promise<void> {
  const chain = openKey(ports, "auditor", { slotsPerBlock });
  const head = await chain.findHead();
  mustHold(head !== undefined, "the key is gone");
  const { incarnation = "", number: newest = 0 } = head ?? {};
  const ids: string[] = [];
  for (let number = 1; number <= newest; number++) {
    const block = chain.names.blockOf(number);
    if (await isDropped(ports.disk, { names: chain.names, incarnation, block })) ids.push("(dropped)");
    else ids.push((await findSlot(ports.disk, pathOf(chain, incarnation, number)))?.entry.id ?? "(a gap)");
  }
  mustHold(!ids.includes("(a gap)"), `there is a gap: ${ids.join(", ")}`);
  for (const { id, number } of valuesOf<Acknowledged>(facts, "acknowledged"))
    mustHold(ids[number - 1] === id, `${id} was acknowledged as ${number}, and the key has ${ids.join(", ")}`);
  await stageAndPut(ports, chain, "auditor", "last");
  mustHold(idOf(await chain.findHead()) === "last", "the key cannot be gone on with");
}

function blockScenario(scenario: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>): Scenario {
  return keyScenario({ ...scenario, audit }, { slotsPerBlock, before: ["one", "two"] });
}

export function deadBlockScenarios(options: BlockScenarioOptions = {}): Scenario[] {
  return [
    blockScenario({
      name: "block: dropped under a put in the middle of it",
      about: "A process remembers an old end of the key, in a block that is dropped.",
      actors: { ada: sleeper(options, ["three"], ["four", "five"]), drp: dropper(options) },
    }),
    blockScenario({
      name: "block: dropped under a put that would begin it",
      about: "A process remembers the end of the block before the dropped one.",
      actors: { ada: sleeper(options, [], ["three", "four", "five"]), drp: dropper(options) },
    }),
    blockScenario({
      name: "block: dropped under a put on a share",
      about: "On a share a process links behind the entry that it remembers, without a check.",
      volume: share,
      profile: "share",
      actors: {
        ada: { ...sleeper(options, ["three"], ["four", "five"]), machine: "m1" },
        drp: { ...dropper(options), machine: "m2" },
      },
    }),
    blockScenario({
      name: "block: the process that drops it is killed",
      about: "Whatever is left of the block, nothing in it counts, and the key can be put to.",
      actors: { ada: sleeper(options, ["three"], ["four", "five"]), drp: dropper(options) },
      killsMax: 1,
      mortal: ["drp"],
    }),
    blockScenario({
      name: "block: dropped, power cuts",
      about: "A removed first slot does not come back when another slot is gone.",
      profile: "weak",
      powerCuts: true,
      actors: { ada: sleeper(options, ["three"], ["four", "five"]), drp: dropper(options) },
    }),
  ];
}
