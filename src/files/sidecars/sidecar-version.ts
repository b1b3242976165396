// Records which version of a directory's sidecars was requested, and which one was written. Only
// the newest counts.
import { RollingChain } from "../../durable/chain/rolling-chain.ts";
import { growingEpochs } from "../../durable/chain/epoch-rollover.ts";
import { retryIfSwept, type Staging } from "../../durable/publish/staging.ts";
import { countOf, objectOf, textOf } from "../../format/decoding.ts";
import { randomName } from "../../format/id.ts";
import type { RecordKind } from "../../format/record.ts";

interface Versions {
  /** The last one that was requested. */
  readonly wanted: number;
  /** The last one that a worker began to make. A later request is a new version. */
  readonly started: number;
  /** The last one that a worker began to write, under the lock. */
  readonly written: number;
  /** Distinguishes these numbers from those of an earlier chain that was deleted or damaged. Absent in older builds. */
  readonly origin?: string;
}

/** A requested version. */
export interface WantedVersion {
  readonly version: number;
  readonly origin?: string;
}

/**
 * Uses a chain: a listing of a share may be stale, and an old version must not follow a new one.
 */
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
        // Unknown after a sleep: the task is retried.
        counts: async () => undefined,
        slotsPerEpoch: growingEpochs(16),
        bootId,
      }),
    );
    return new this(chain, staging);
  }

  /** Returns the version that will show the directory as it is now: a pending one, or a new one. */
  async want(): Promise<WantedVersion> {
    const proposed = randomName(this.#staging.random.bytes(16));
    await this.#change(({ origin = proposed, ...state }) =>
      state.wanted > state.started ? undefined : { ...state, origin, wanted: state.wanted + 1 },
    );
    const { wanted, origin } = await this.#read();
    return { version: wanted, ...(origin === undefined ? {} : { origin }) };
  }

  /** Call it before a worker reads the directory. False for a version that a later one has replaced. */
  async start(version: number): Promise<boolean> {
    await this.#change((state) =>
      isNewest(state, version) && state.started < version ? { ...state, started: version } : undefined,
    );
    return isNewest(await this.#read(), version);
  }

  /** Call it under the lock, before the sidecars are written. False for a version that a later one has replaced. */
  async begin(version: number): Promise<boolean> {
    await this.#change((state) =>
      isNewest(state, version) && state.written < version ? { ...state, written: version } : undefined,
    );
    return isNewest(await this.#read(), version);
  }

  /** True if a later version was requested. */
  async isReplaced(version: number): Promise<boolean> {
    return !isNewest(await this.#read(), version);
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
    const { wanted, started, written, origin } = objectOf(value);
    return {
      wanted: countOf(wanted),
      started: countOf(started),
      written: countOf(written),
      ...(origin === undefined ? {} : { origin: textOf(origin) }),
    };
  },
};
