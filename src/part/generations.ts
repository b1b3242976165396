// Generations of derived files: which one is read, and which one is being built to replace it.
//
// Each generation has a directory, named by a number that is never used again. A catalog names the
// current one. It is a rolling chain, so a switch never goes back.
import { RollingChain } from "../durable/chain/rolling-chain.ts";
import { retryIfSwept } from "../durable/publish/staging.ts";
import { removeTree } from "../durable/publish/directory.ts";
import type { Staging } from "../durable/publish/staging.ts";
import { countOf, objectOf } from "../format/decoding.ts";
import { randomName } from "../format/id.ts";
import { findSlotNumber, slotName } from "../format/name.ts";
import type { RecordKind } from "../format/record.ts";

export interface GenerationEntry {
  readonly number: number;
  /** Of the definition that the files are made by. */
  readonly version: number;
}

export interface GenerationsState {
  readonly current?: GenerationEntry;
  readonly building?: GenerationEntry;
  /** The highest number that was given out. */
  readonly last: number;
}

export class Generations {
  readonly #chain: RollingChain<GenerationsState>;
  readonly #staging: Staging;
  readonly #directory: string;

  private constructor(chain: RollingChain<GenerationsState>, staging: Staging, directory: string) {
    this.#chain = chain;
    this.#staging = staging;
    this.#directory = directory;
  }

  /** Makes the catalog in `directory` if there is none. */
  static async open(staging: Staging, directory: string, bootId: string): Promise<Generations> {
    const chain = await retryIfSwept(() =>
      RollingChain.open<GenerationsState>(staging, `${directory}/catalog`, {
        kind: catalogKind,
        initial: { last: 0 },
        // Unknown after a sleep: the caller reads the state, and goes on from that.
        counts: () => false,
        slotsPerEpoch: 64,
        bootId,
      }),
    );
    await chain.collect();
    return new Generations(chain, staging, directory);
  }

  async read(): Promise<GenerationsState> {
    return (await this.#chain.read()).state;
  }

  /**
   * Names generation 1, which is read from the start because there is no other. Its files must be
   * there.
   */
  async nameFirst(version: number): Promise<GenerationsState> {
    return await this.#change(({ last }) => (last === 0 ? { current: { number: 1, version }, last: 1 } : undefined));
  }

  /**
   * Names a generation of this version as the one that is to replace `outdated`: one that a process
   * has begun, or a new one. None when the current one is not `outdated` any more, or has a higher
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

  /** Makes it the current one, unless a newer one has been begun since. */
  async switchTo(number: number): Promise<GenerationsState> {
    return await this.#change(({ current, building, last }) => {
      if (building?.number !== number) return undefined;
      return (current?.number ?? 0) < number ? { current: building, last } : undefined;
    });
  }

  /** Gives up a generation that cannot be finished; the next one gets a new number. */
  async abandon(number: number): Promise<void> {
    await this.#change(({ building, ...rest }) => (building?.number === number ? rest : undefined));
  }

  directoryOf(number: number): string {
    return `${this.#directory}/${slotName(number)}`;
  }

  /**
   * Removes the directories with lower numbers; `number` must have been current. A process that
   * still reads there finds its files gone, and reads the catalog again.
   */
  async removeOlderThan(number: number): Promise<void> {
    const { disk } = this.#staging;
    for (const name of await disk.list(this.#directory))
      if ((findSlotNumber(name) ?? Infinity) < number) await removeTree(disk, `${this.#directory}/${name}`);
  }

  async #change(change: (state: GenerationsState) => GenerationsState | undefined): Promise<GenerationsState> {
    const id = randomName(this.#staging.random.bytes(16));
    const entry = await retryIfSwept(() => this.#chain.append(id, change));
    return entry?.state ?? (await this.read());
  }
}

const catalogKind: RecordKind<GenerationsState> = {
  kind: "catalog",
  decode: (value) => {
    const { current, building, last } = objectOf(value);
    return {
      ...(current === undefined ? {} : { current: entryOf(current) }),
      ...(building === undefined ? {} : { building: entryOf(building) }),
      last: countOf(last),
    };
  },
};

function entryOf(value: unknown): GenerationEntry {
  const { number, version } = objectOf(value);
  return { number: countOf(number), version: countOf(version) };
}
