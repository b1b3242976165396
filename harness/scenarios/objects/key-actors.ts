// The processes of key scenarios: how they put and collect, and which rules the key must obey afterwards.
import { SharedSync } from "../../../src/durable/publish/shared-sync.ts";
import { removeTree } from "../../../src/durable/publish/directory.ts";
import { stage } from "../../../src/durable/publish/staging.ts";
import { isHoldfastError } from "../../../src/errors.ts";
import { takePrepared } from "../../../src/objects/collect/collect.ts";
import { findSlot } from "../../../src/objects/key/entry-file.ts";
import { KeyChain, nothing } from "../../../src/objects/key/key-chain.ts";
import type { KeyHead } from "../../../src/objects/key/key-head.ts";
import type { KeyStorage, StagedEntry } from "../../../src/objects/key/key-storage.ts";
import { KeySlots } from "../../../src/objects/key/key-slots.ts";
import { encodeEntry, type KeyEntry } from "../../../src/objects/model/entry.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type ActorContext,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";

const shard = "/keys/000";
export const key: string = `${shard}/k`;

export interface KeyScenarioOptions {
  readonly slotsPerBlock?: number | undefined;
  readonly sweep?: Sweep | undefined;
  /** The slots class under test: the real one, or a known-wrong variant. */
  readonly SlotsClass?: typeof KeySlots | undefined;
}

export interface Acknowledged {
  readonly id: string;
  readonly number: number;
}

/**
 * A key storage that stages nothing: a process stages its entries beforehand, so that the explorer need not order
 * those steps.
 */
export function keyStorageOf({ disk, random }: Ports, name: string, slotsPerBlock: number | undefined): KeyStorage {
  const shared = new SharedSync(disk);
  return {
    staging: { disk, random, directory: async () => `/temp/${name}` },
    stage: async (entry) => entry as StagedEntry,
    unstage: async () => undefined,
    prepared: async () => `/staging/${name}`,
    sync: async (...directories) => {
      // Syncs the directories one after the other: the protocol does not depend on their order.
      for (const path of directories) await shared.sync(path);
    },
    slotsPerBlock,
  };
}

export function openKey(
  ports: Ports,
  name: string,
  { slotsPerBlock, SlotsClass = KeySlots }: KeyScenarioOptions,
): KeyChain {
  const storage = keyStorageOf(ports, name, slotsPerBlock);
  return new KeyChain(storage, key, undefined, new SlotsClass(storage, key));
}

function entryOf(id: string, kind: "put" | "closed"): KeyEntry {
  const facts = { id, key: "k", config: 1, atMs: 0 };
  if (kind === "closed") return { kind, ...facts };
  return { kind, ...facts, isNull: false, size: 4, etag: "", headers: {}, metadata: {}, tags: {} };
}

async function stageEntry(ports: Ports, name: string, entry: KeyEntry): Promise<StagedEntry> {
  const proof = encodeEntry(entry);
  const { staging } = keyStorageOf(ports, name, undefined);
  const temp = await stage(staging, Buffer.concat([proof, Buffer.from("body")]), { sync: true });
  return { temp, proof, entry };
}

/** Stages a put with this id. */
export async function stagePut(ports: Ports, name: string, id: string): Promise<StagedEntry> {
  return await stageEntry(ports, name, entryOf(id, "put"));
}

/** Puts one version, which was staged before. */
export async function putOne(
  { note }: ActorContext,
  chain: KeyChain,
  candidate: StagedEntry,
  { isAbsent = false }: { readonly isAbsent?: boolean } = {},
): Promise<void> {
  const { id } = candidate.entry;
  try {
    const added = await chain.append(
      async (newest) => (isAbsent && newest !== undefined ? nothing : { add: candidate }),
      { isJudged: isAbsent },
    );
    if (added === undefined) note("refused", id);
    else note("acknowledged", { id, number: added.number } satisfies Acknowledged);
  } catch (error) {
    // These are honest answers if a reply was lost, or if the key was removed at the same moment.
    if (!isHoldfastError(error, "OUTCOME_UNKNOWN", "IO_ERROR")) throw error;
    note("unknown", id);
  }
}

export async function stageAndPut(ports: Ports, chain: KeyChain, name: string, id: string): Promise<void> {
  const candidate = await stagePut(ports, name, id);
  await putOne({ name, ports, note: () => undefined }, chain, candidate);
}

export interface WriterOptions {
  /** True if the writer has read the key before the scenario begins. */
  readonly isStale?: boolean;
  /** True if the writer puts only if the key does not exist. */
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

/** Closes the key when its newest entry is `last`, and removes it. */
export function collector(options: KeyScenarioOptions, last: string): Actor {
  return actor({
    prepare: async ({ ports, name }) => {
      const candidate = await stageEntry(ports, name, entryOf(name, "closed"));
      return { chain: openKey(ports, name, options), candidate };
    },
    run: async ({ note }, { chain, candidate }) => {
      try {
        const isClosed = await chain.close(async (head) => (idOf(head) === last ? { add: candidate } : nothing));
        if (isClosed) note("collected");
      } catch (error) {
        if (!isHoldfastError(error, "OUTCOME_UNKNOWN", "IO_ERROR")) throw error;
      }
    },
  });
}

/** Takes away the files that a dead process has prepared: the real way, or a known-wrong one. */
export type Sweep = (ports: Ports, directory: string) => Promise<void>;

export const realSweep: Sweep = async ({ disk, random }, directory) => {
  const names = await disk.list(directory);
  await takePrepared(disk, directory, names, () => `/trash/${Buffer.from(random.bytes(16)).toString("hex")}`);
  for (const name of await disk.list("/trash")) await removeTree(disk, `/trash/${name}`);
};

/** Sweeps the files that `owner` has prepared as if it were dead, although it may only be asleep. */
export function sweeper(owner: string, sweep: Sweep = realSweep): Actor {
  return actor({ run: async ({ ports }) => await sweep(ports, `/staging/${owner}`) });
}

/** Reads the newest entry, and notes its id. */
export function reader(options: KeyScenarioOptions): Actor {
  return actor({
    prepare: async ({ ports, name }) => {
      const chain = openKey(ports, name, options);
      await chain.findHead();
      return chain;
    },
    run: async ({ note }, chain) => note("read", idOf(await chain.findHead()) ?? "nothing"),
  });
}

/** Returns the id of the newest entry, if it can be read. */
export function idOf(head: KeyHead | undefined): string | undefined {
  return head?.entry.kind === "damaged" ? undefined : head?.entry.id;
}

/** Returns every entry of the key, in order. A number without an entry fails the audit. */
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

/** Every acknowledged put is present once, under its number, unless its key was collected. No put is present twice. */
async function audit(ports: Ports, facts: readonly Fact[], options: KeyScenarioOptions): Promise<void> {
  const chain = openKey(ports, "auditor", { slotsPerBlock: options.slotsPerBlock });
  const head = await chain.findHead();
  const ids = await entriesOf(ports, chain, head);
  mustHold(new Set(ids).size === ids.length, `an entry is there twice: ${ids.join(", ")}`);
  for (const { id, number } of valuesOf<Acknowledged>(facts, "acknowledged"))
    mustHold(ids[number - 1] === id, `${id} was acknowledged as ${number}, and the key has ${ids.join(", ")}`);
  // The key can still be put to.
  await stageAndPut(ports, chain, "auditor", "last");
  mustHold(idOf(await chain.findHead()) === "last", "the key cannot be gone on with");
}

export interface KeyWorld extends KeyScenarioOptions {
  /** Ids of the puts that exist when the scenario begins. */
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
    // Only its maker knows a prepared file until it is moved.
    isUnseen: (operation, path) => path.startsWith("/staging/") && operation !== "rename",
    // Slots are removed only with their key. A block arrives by a rename.
    ...("col" in scenario.actors || world.slotsPerBlock !== undefined
      ? {}
      : { isPermanent: (path: string) => path.startsWith(`${key}/`) }),
    audit: (ports, facts) => audit(ports, facts, world),
    ...scenario,
  };
}
