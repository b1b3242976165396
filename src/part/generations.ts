// Generations of derived files: which one is read, and which one is being built to replace it.
//
// Each generation has a directory, named by a number that is never reused. A catalog names the
// current one. It is a rolling chain, so a switch never goes back. With `keepsOlder` it also names
// the last generation of each of the two preceding versions, which programs of these versions still
// read and work on. Two, because of rollbacks: programs that went back from version 2 to 1 may then
// meet version 3.
import { RollingChain } from "../durable/chain/rolling-chain.ts";
import type { ChainOpener, StateChain } from "../durable/chain/state-chain.ts";
import type { RollingChainOptions } from "../durable/chain/rolling-chain-options.ts";
import { removeTree } from "../durable/publish/directory.ts";
import { retryIfSwept, type Staging } from "../durable/publish/staging.ts";
import { countOf, listOf, objectOf } from "../format/decoding.ts";
import { randomName } from "../format/id.ts";
import { findSlotNumber, slotName } from "../format/name.ts";
import type { RecordKind } from "../format/record.ts";
import type { Disk } from "../ports/disk.ts";
import type { Random } from "../ports/random.ts";

export interface GenerationEntry {
  readonly number: number;
  /** Version of the definition that produces the files. */
  readonly version: number;
}

export interface GenerationsState {
  readonly current?: GenerationEntry;
  readonly building?: GenerationEntry;
  /** The last generation of each preceding version, newest first. Only with `keepsOlder`. */
  readonly older?: readonly GenerationEntry[];
  /** The highest number used so far. */
  readonly last: number;
}

export interface GenerationsOptions {
  /**
   * A switch to a higher version keeps the generation that it replaces, until two more such
   * switches or `dropOlder`. Default false.
   */
  readonly keepsOlder?: boolean | undefined;
}

/** The store in which each generation has its content. */
export interface GenerationStore {
  pathOf(number: number): string;
  /** Returns the numbers of the generations that have content. */
  list(): Promise<number[]>;
  remove(number: number): Promise<void>;
}

/** How many older versions keep their generation. */
const olderMax = 2;

/** Returns the kept generation of exactly this version. */
export function findOfVersion({ current, older = [] }: GenerationsState, version: number): GenerationEntry | undefined {
  return [current, ...older].find((entry) => entry?.version === version);
}

export class Generations {
  readonly #chain: StateChain<GenerationsState>;
  readonly #random: Random;
  readonly #store: GenerationStore;
  readonly #keepsOlder: boolean;

  protected constructor(
    chain: StateChain<GenerationsState>,
    random: Random,
    store: GenerationStore,
    { keepsOlder = false }: GenerationsOptions,
  ) {
    this.#chain = chain;
    this.#random = random;
    this.#store = store;
    this.#keepsOlder = keepsOlder;
  }

  /** Opens generations whose catalog is the chain `name` of `chains`. */
  static async on(
    chains: ChainOpener,
    name: string,
    store: GenerationStore,
    options: GenerationsOptions = {},
  ): Promise<Generations> {
    const { host, random } = chains.ports;
    const chain = await chains.openChain(name, catalogOptions(host.bootId));
    return new this(chain, random, store, options);
  }

  /** Creates the catalog in `directory` if there is none. */
  static async open(
    staging: Staging,
    directory: string,
    bootId: string,
    options: GenerationsOptions = {},
  ): Promise<Generations> {
    const chain = await openCatalog(staging, directory, bootId);
    await chain.collect();
    return new this(chain, staging.random, directoryStore(staging.disk, directory), options);
  }

  async read(): Promise<GenerationsState> {
    return (await this.#chain.read()).state;
  }

  /** Names generation 1, which is current from the start because no other exists. Its files must exist. */
  async nameFirst(version: number): Promise<GenerationsState> {
    return await this.#change(({ last }) => (last === 0 ? { current: { number: 1, version }, last: 1 } : undefined));
  }

  /**
   * Names a generation of this version as the replacement of `outdated`: one that a process has
   * begun, or a new one. Does nothing if the current one is no longer `outdated`, or has a higher
   * version: no switch goes back.
   */
  async nameBuilding(version: number, outdated: number | undefined): Promise<GenerationsState> {
    return await this.#change((state) => {
      if (state.current?.number !== outdated || (state.current?.version ?? 0) > version) return undefined;
      if (state.building !== undefined && state.building.version >= version) return undefined;
      const number = state.last + 1;
      return { ...state, building: { number, version }, last: number };
    });
  }

  /** Makes the generation current, unless a newer one was begun since. */
  async switchTo(number: number): Promise<GenerationsState> {
    return await this.#change(({ current, building, older = [], last }) => {
      if (building?.number !== number || (current?.number ?? 0) >= number) return undefined;
      const isUpgrade = current !== undefined && current.version < building.version;
      const kept = isUpgrade ? [current, ...older].slice(0, olderMax) : older;
      return { current: building, ...(this.#keepsOlder && kept.length > 0 && { older: kept }), last };
    });
  }

  /** Removes the generations of versions below this one, except the current one. */
  async dropOlder(version: number): Promise<void> {
    // Change the catalog first: every generation that it names must have its files.
    await this.#change(({ older = [], ...rest }) => {
      const kept = older.filter((entry) => entry.version >= version);
      if (kept.length === older.length) return undefined;
      return { ...rest, ...(kept.length > 0 && { older: kept }) };
    });
    await this.removeOld();
  }

  /** Abandons a generation that cannot be finished; the next one gets a new number. */
  async abandon(number: number): Promise<void> {
    await this.#change(({ building, ...rest }) => (building?.number === number ? rest : undefined));
  }

  directoryOf(number: number): string {
    return this.#store.pathOf(number);
  }

  /**
   * Removes the directories below the current number, except those of `older`. A process that still
   * reads there finds its files gone, and reads the catalog again.
   */
  async removeOld(): Promise<void> {
    // Safe, because numbers only grow: any generation that a later state names is named here or has a higher number.
    const state = await this.read();
    for (const number of await this.#store.list()) if (this.isOld(number, state)) await this.#store.remove(number);
  }

  protected isOld(number: number, { current, older = [] }: GenerationsState): boolean {
    return number < (current?.number ?? 0) && !older.some((entry) => entry.number === number);
  }

  async #change(change: (state: GenerationsState) => GenerationsState | undefined): Promise<GenerationsState> {
    const id = randomName(this.#random.bytes(16));
    const entry = await retryIfSwept(() => this.#chain.append(id, change));
    return entry?.state ?? (await this.read());
  }
}

function directoryStore(disk: Disk, directory: string): GenerationStore {
  const pathOf = (number: number): string => `${directory}/${slotName(number)}`;
  return {
    pathOf,
    list: async () => (await disk.list(directory)).map(findSlotNumber).filter((number) => number !== undefined),
    remove: async (number) => await removeTree(disk, pathOf(number)),
  };
}

async function openCatalog(
  staging: Staging,
  directory: string,
  bootId: string,
): Promise<RollingChain<GenerationsState>> {
  return await retryIfSwept(() => RollingChain.open(staging, `${directory}/catalog`, catalogOptions(bootId)));
}

function catalogOptions(bootId: string): RollingChainOptions<GenerationsState> {
  return {
    kind: catalogKind,
    initial: { last: 0 },
    // Unknown after a sleep: the caller then reads the state and continues from it.
    counts: () => false,
    slotsPerEpoch: 64,
    bootId,
  };
}

/** Reads the catalog in `directory` without opening the generations. Throws CORRUPT. */
export async function readGenerations(staging: Staging, directory: string, bootId: string): Promise<GenerationsState> {
  return (await (await openCatalog(staging, directory, bootId)).read()).state;
}

const catalogKind: RecordKind<GenerationsState> = {
  kind: "catalog",
  decode: (value) => {
    const { current, building, older, last } = objectOf(value);
    return {
      ...(current === undefined ? {} : { current: entryOf(current) }),
      ...(building === undefined ? {} : { building: entryOf(building) }),
      ...(older === undefined ? {} : { older: listOf(older, entryOf) }),
      last: countOf(last),
    };
  },
};

function entryOf(value: unknown): GenerationEntry {
  const { number, version } = objectOf(value);
  return { number: countOf(number), version: countOf(version) };
}
