// The processes of key scenarios: what they put and collect, and what must hold of the key
// afterwards.
import { SharedSync } from "../../../durable/publish/shared-sync.ts";
import { removeTree } from "../../../durable/publish/directory.ts";
import { stage } from "../../../durable/publish/staging.ts";
import { isHoldfastError } from "../../../errors.ts";
import { takePrepared } from "../../../objects/collect/collect.ts";
import { findSlot } from "../../../objects/key/entry-file.ts";
import { KeyChain, type Candidate } from "../../../objects/key/key-chain.ts";
import type { KeyHead } from "../../../objects/key/key-head.ts";
import type { KeyPlace } from "../../../objects/key/key-place.ts";
import { encodeEntry, type KeyEntry } from "../../../objects/model/entry.ts";
import type { Ports } from "../../../ports/ports.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type ActorContext,
  type Fact,
  type Scenario,
} from "../../explorer/scenario.ts";

const shard = "/keys/000";
export const key: string = `${shard}/k`;

export interface KeyScenarioOptions {
  readonly slotsPerBlock?: number | undefined;
  readonly sweep?: Sweep | undefined;
  /** What the scenario runs on: the real one, or a known-wrong variant. */
  readonly ChainClass?: typeof KeyChain | undefined;
}

export interface Acknowledged {
  readonly id: string;
  readonly number: number;
}

export function placeOf({ disk, random }: Ports, name: string, slotsPerBlock: number | undefined): KeyPlace {
  const shared = new SharedSync(disk);
  return {
    staging: { disk, random, directory: async () => `/temp/${name}` },
    prepared: async () => `/staging/${name}`,
    sync: async (...directories) => {
      // One after the other: their order is nothing that the protocol stands on.
      for (const path of directories) await shared.sync(path);
    },
    slotsPerBlock,
  };
}

export function openKey(
  ports: Ports,
  name: string,
  { slotsPerBlock, ChainClass = KeyChain }: KeyScenarioOptions,
): KeyChain {
  return new ChainClass(placeOf(ports, name, slotsPerBlock), key);
}

function entryOf(id: string, kind: "put" | "closed"): KeyEntry {
  const facts = { id, key: "k", config: 1, atMs: 0 };
  if (kind === "closed") return { kind, ...facts };
  return { kind, ...facts, isNull: false, size: 4, etag: "", headers: {}, metadata: {}, tags: {} };
}

async function stageEntry(ports: Ports, name: string, entry: KeyEntry): Promise<Candidate> {
  const proof = encodeEntry(entry);
  const { staging } = placeOf(ports, name, undefined);
  const temp = await stage(staging, Buffer.concat([proof, Buffer.from("body")]), { sync: true });
  return { temp, proof, entry };
}

/** A put with this id, staged. */
export async function stagePut(ports: Ports, name: string, id: string): Promise<Candidate> {
  return await stageEntry(ports, name, entryOf(id, "put"));
}

/** Puts one version, which was staged once. */
export async function putOne(
  { note }: ActorContext,
  chain: KeyChain,
  candidate: Candidate,
  { isAbsent = false }: { readonly isAbsent?: boolean } = {},
): Promise<void> {
  const { id } = candidate.entry;
  try {
    const added = await chain.append(async (head) => (isAbsent && head !== undefined ? undefined : candidate), {
      isJudged: isAbsent,
    });
    if (added === undefined) note("refused", id);
    else note("acknowledged", { id, number: added.number } satisfies Acknowledged);
  } catch (error) {
    // Honest answers when a reply got lost, or the key was removed at the same moment.
    if (!isHoldfastError(error, "OUTCOME_UNKNOWN", "IO_ERROR")) throw error;
    note("unknown", id);
  }
}

export async function stageAndPut(ports: Ports, chain: KeyChain, name: string, id: string): Promise<void> {
  const candidate = await stagePut(ports, name, id);
  await putOne({ name, ports, note: () => undefined }, chain, candidate);
}

export interface WriterOptions {
  /** It has read the key before the scenario begins. */
  readonly isStale?: boolean;
  /** It puts only if there is no such key. */
  readonly isAbsent?: boolean;
}

export function writer(options: KeyScenarioOptions, { isStale = false, isAbsent = false }: WriterOptions = {}): Actor {
  return actor({
    prepare: async ({ ports, name }) => {
      const chain = openKey(ports, name, options);
      if (isStale) await chain.findHead();
      return { chain, candidate: await stageEntry(ports, name, entryOf(name, "put")) };
    },
    run: (context, { chain, candidate }) => putOne(context, chain, candidate, { isAbsent }),
  });
}

/** Closes the key when its newest entry is that of `last`, and removes it. */
export function collector(options: KeyScenarioOptions, last: string): Actor {
  return actor({
    prepare: async ({ ports, name }) => {
      const candidate = await stageEntry(ports, name, entryOf(name, "closed"));
      return { chain: openKey(ports, name, options), candidate };
    },
    run: async ({ note }, { chain, candidate }) => {
      try {
        const isClosed = await chain.close(async (head) => (head.entry.id === last ? candidate : undefined));
        if (isClosed) note("collected");
      } catch (error) {
        if (!isHoldfastError(error, "OUTCOME_UNKNOWN", "IO_ERROR")) throw error;
      }
    },
  });
}

/** How a sweeper takes what a dead process has prepared: the real way, or a known-wrong one. */
export type Sweep = (ports: Ports, directory: string) => Promise<void>;

export const realSweep: Sweep = async ({ disk, random }, directory) => {
  const names = await disk.list(directory);
  await takePrepared(disk, directory, names, () => `/trash/${Buffer.from(random.bytes(16)).toString("hex")}`);
  for (const name of await disk.list("/trash")) await removeTree(disk, `/trash/${name}`);
};

/** Takes what `owner` has prepared, as if it were dead: it may only be asleep. */
export function sweeper(owner: string, sweep: Sweep = realSweep): Actor {
  return actor({ run: async ({ ports }) => await sweep(ports, `/staging/${owner}`) });
}

/** Reads the newest entry, and tells which. */
export function reader(options: KeyScenarioOptions): Actor {
  return actor({
    prepare: async ({ ports, name }) => {
      const chain = openKey(ports, name, options);
      await chain.findHead();
      return chain;
    },
    run: async ({ note }, chain) => note("read", (await chain.findHead())?.entry.id ?? "nothing"),
  });
}

/** Every entry of the key, in order; a number without an entry breaks the audit. */
async function entriesOf({ disk }: Ports, chain: KeyChain, head: KeyHead | undefined): Promise<string[]> {
  const ids: string[] = [];
  for (let number = 1; number <= (head?.number ?? 0); number++) {
    const path = chain.names.slotPath(head?.incarnation ?? "", number);
    const slot = await findSlot(disk, path);
    mustHold(slot !== undefined, `slot ${number} of ${head?.number} is missing: a gap`);
    ids.push(slot?.entry.id ?? "");
  }
  return ids;
}

/** Every put that was acknowledged is there once, under its number, unless its key was collected; none is there twice. */
async function audit(ports: Ports, facts: readonly Fact[], options: KeyScenarioOptions): Promise<void> {
  const chain = openKey(ports, "auditor", { slotsPerBlock: options.slotsPerBlock });
  const head = await chain.findHead();
  const ids = await entriesOf(ports, chain, head);
  mustHold(new Set(ids).size === ids.length, `an entry is there twice: ${ids.join(", ")}`);
  for (const { id, number } of valuesOf<Acknowledged>(facts, "acknowledged"))
    mustHold(ids[number - 1] === id, `${id} was acknowledged as ${number}, and the key has ${ids.join(", ")}`);
  // What is left can be gone on with.
  await stageAndPut(ports, chain, "auditor", "last");
  mustHold((await chain.findHead())?.entry.id === "last", "the key cannot be gone on with");
}

export interface KeyWorld extends KeyScenarioOptions {
  /** Ids of puts that are there when the scenario begins. */
  readonly before?: readonly string[];
}

export function keyScenario(
  scenario: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>,
  world: KeyWorld,
): Scenario {
  return {
    setup: async (ports) => {
      const own = [...Object.keys(scenario.actors), "auditor", "maker"];
      for (const path of ["/temp", "/staging", "/trash", "/keys", shard]) await ports.disk.mkdir(path);
      for (const name of own) for (const above of ["/temp", "/staging"]) await ports.disk.mkdir(`${above}/${name}`);
      const chain = openKey(ports, "maker", world);
      for (const id of world.before ?? []) await stageAndPut(ports, chain, "maker", id);
    },
    // What a process prepares is known to it alone until it is moved.
    isUnseen: (operation, path) => path.startsWith("/staging/") && operation !== "rename",
    // Slots go only when the key does; a block comes by a rename.
    ...("col" in scenario.actors || world.slotsPerBlock !== undefined
      ? {}
      : { isPermanent: (path: string) => path.startsWith(`${key}/`) }),
    audit: (ports, facts) => audit(ports, facts, world),
    ...scenario,
  };
}
