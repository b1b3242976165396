// Which version of a directory's sidecars was asked for, and which one has been written: of many only the newest counts.
import { RollingChain } from "../../durable/chain/rolling-chain.ts";
import { growingEpochs } from "../../durable/chain/epoch-rollover.ts";
import { retryIfSwept, type Staging } from "../../durable/publish/staging.ts";
import { countOf, objectOf } from "../../format/decoding.ts";
import { randomName } from "../../format/id.ts";
import type { RecordKind } from "../../format/record.ts";

interface Versions {
  /** The last one that was asked for. */
  readonly wanted: number;
  /** The last one that a worker has begun to make. What is asked for after that is a new one. */
  readonly started: number;
  /** The last one that a worker has begun to write, under the lock. */
  readonly written: number;
}

/** A chain: a listing of a share may be old, and an old version must not follow a new one. */
export class SidecarVersion {
  readonly #chain: RollingChain<Versions>;
  readonly #staging: Staging;

  protected constructor(chain: RollingChain<Versions>, staging: Staging) {
    this.#chain = chain;
    this.#staging = staging;
  }

  static async open(staging: Staging, directory: string, bootId: string): Promise<SidecarVersion> {
    const chain = await retryIfSwept(() =>
      RollingChain.open<Versions>(staging, directory, {
        kind: versionsKind,
        initial: { wanted: 0, started: 0, written: 0 },
        // Unknown after a sleep: the task comes again.
        counts: async () => undefined,
        slotsPerEpoch: growingEpochs(16),
        bootId,
      }),
    );
    return new this(chain, staging);
  }

  /** The version that will show the directory as it is now: one that waits to be made, or a new one. */
  async want(): Promise<number> {
    await this.#change((state) => (state.wanted > state.started ? undefined : { ...state, wanted: state.wanted + 1 }));
    return (await this.#read()).wanted;
  }

  /** Before a worker looks at the directory. False for a version that a later one has replaced. */
  async start(version: number): Promise<boolean> {
    await this.#change((state) =>
      isNewest(state, version) && state.started < version ? { ...state, started: version } : undefined,
    );
    return isNewest(await this.#read(), version);
  }

  /** Under the lock, before the sidecars are written. False for a version that a later one has replaced. */
  async begin(version: number): Promise<boolean> {
    await this.#change((state) =>
      isNewest(state, version) && state.written < version ? { ...state, written: version } : undefined,
    );
    return isNewest(await this.#read(), version);
  }

  async #read(): Promise<Versions> {
    return (await this.#chain.read()).state;
  }

  async #change(change: (state: Versions) => Versions | undefined): Promise<void> {
    const id = randomName(this.#staging.random.bytes(16));
    await retryIfSwept(() => this.#chain.append(id, change));
  }
}

function isNewest({ wanted, written }: Versions, version: number): boolean {
  return wanted <= version && written <= version;
}

const versionsKind: RecordKind<Versions> = {
  kind: "sidecar-versions",
  decode: (value) => {
    const { wanted, started, written } = objectOf(value);
    return { wanted: countOf(wanted), started: countOf(started), written: countOf(written) };
  },
};
