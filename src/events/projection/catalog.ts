// The catalog of a projection: which generation of its documents is read, and which one is being built to replace it. A rolling chain, so that it never goes back.
import { RollingChain } from "../../durable/chain/rolling-chain.ts";
import { retryIfSwept, type Staging } from "../../durable/publish/staging.ts";
import { countOf, objectOf } from "../../format/decoding.ts";
import { randomName } from "../../format/id.ts";
import type { RecordKind } from "../../format/record.ts";

export interface GenerationFacts {
  /** Also the name of its directory. Never used again. */
  readonly number: number;
  /** Of the definition that it is made by. */
  readonly version: number;
}

export interface CatalogState {
  readonly current?: GenerationFacts;
  readonly building?: GenerationFacts;
  /** The highest number that was given out. */
  readonly last: number;
}

export class Catalog {
  readonly #chain: RollingChain<CatalogState>;
  readonly #staging: Staging;

  private constructor(chain: RollingChain<CatalogState>, staging: Staging) {
    this.#chain = chain;
    this.#staging = staging;
  }

  static async open(staging: Staging, directory: string, bootId: string): Promise<Catalog> {
    const chain = await retryIfSwept(() =>
      RollingChain.open<CatalogState>(staging, directory, {
        kind: catalogKind,
        initial: { last: 0 },
        // It is not known any more; whoever asks looks again, and goes on from what is there.
        counts: () => false,
        slotsPerEpoch: 64,
        bootId,
      }),
    );
    await chain.collect();
    return new Catalog(chain, staging);
  }

  async read(): Promise<CatalogState> {
    return (await this.#chain.read()).state;
  }

  /** The first generation, number 1, is read from the start: there is no other. It must have begun. */
  async nameFirst(version: number): Promise<CatalogState> {
    return await this.#change(({ last }) => (last === 0 ? { current: { number: 1, version }, last: 1 } : undefined));
  }

  /**
   * A generation of this version that is to replace `outdated`: one that somebody has begun, or a new one. None when another one than `outdated` is read by now. Never one of a
   * lower version than the one that is read, so that no switch goes back.
   */
  async nameBuilding(version: number, outdated: number | undefined): Promise<CatalogState> {
    return await this.#change((state) => {
      if (state.current?.number !== outdated || (state.current?.version ?? 0) > version) return undefined;
      if (state.building !== undefined && state.building.version >= version) return undefined;
      const number = state.last + 1;
      return { ...state, building: { number, version }, last: number };
    });
  }

  /** From now on everybody reads it, unless a newer one has been begun since. */
  async switchTo(number: number): Promise<CatalogState> {
    return await this.#change(({ current, building, last }) => {
      if (building?.number !== number) return undefined;
      return (current?.number ?? 0) < number ? { current: building, last } : undefined;
    });
  }

  /** It is good for nothing; the next one gets a new number. */
  async abandon(number: number): Promise<void> {
    await this.#change(({ building, ...rest }) => (building?.number === number ? rest : undefined));
  }

  async #change(change: (state: CatalogState) => CatalogState | undefined): Promise<CatalogState> {
    const id = randomName(this.#staging.random.bytes(16));
    const entry = await retryIfSwept(() => this.#chain.append(id, change));
    return entry?.state ?? (await this.read());
  }
}

const catalogKind: RecordKind<CatalogState> = {
  kind: "catalog",
  decode: (value) => {
    const { current, building, last } = objectOf(value);
    return {
      ...(current === undefined ? {} : { current: factsOf(current) }),
      ...(building === undefined ? {} : { building: factsOf(building) }),
      last: countOf(last),
    };
  },
};

function factsOf(value: unknown): GenerationFacts {
  const { number, version } = objectOf(value);
  return { number: countOf(number), version: countOf(version) };
}
