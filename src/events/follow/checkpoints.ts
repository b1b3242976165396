// Checkpoints: how far a piece of work on a log has come, and under which fence. A rolling chain, so that it neither grows nor goes back.
//
// Whoever gets the lease first takes the chain over by an append that carries his fence. From then on every append with an older fence is refused, so what he
// resumes from cannot change under him: the late checkpoint of one who slept past his lease never counts.
import { RollingChain } from "../../durable/chain/rolling-chain.ts";
import { growingEpochs } from "../../durable/chain/epoch-rollover.ts";
import { retryIfSwept, type Staging } from "../../durable/publish/staging.ts";
import { holdfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import { checkpointKind, counts, unbegun, type Checkpoint } from "./checkpoint.ts";
import { LeasedWork } from "./tenure.ts";

/** A log may have many consumers, most of them with few events. */
const slotsPerEpoch = growingEpochs(64);

export interface CheckpointsOptions {
  /** The id of the ground that the fences are of. */
  readonly ground: string;
  readonly bootId: string;
  /** As of LogAccess. */
  readonly findChecksum: (position: number) => Promise<string | undefined>;
  /** What is done leaves files that somebody late can add to. Default false. */
  readonly remembersCutOff?: boolean;
  readonly slotsPerEpoch?: number;
  /** Told after each that this process has made. */
  readonly onSaved?: () => void;
}

export class Checkpoints {
  readonly #chain: RollingChain<Checkpoint>;
  readonly #staging: Staging;
  readonly #options: CheckpointsOptions;

  protected constructor(chain: RollingChain<Checkpoint>, staging: Staging, options: CheckpointsOptions) {
    this.#chain = chain;
    this.#staging = staging;
    this.#options = options;
  }

  /** Makes the chain if there is none. */
  static async open(staging: Staging, directory: string, options: CheckpointsOptions): Promise<Checkpoints> {
    const chain = await retryIfSwept(() =>
      RollingChain.open<Checkpoint>(staging, directory, {
        kind: checkpointKind,
        initial: unbegun,
        counts,
        slotsPerEpoch: options.slotsPerEpoch ?? slotsPerEpoch,
        bootId: options.bootId,
      }),
    );
    return new this(chain, staging, options);
  }

  /** The newest one, and a number that grows with each. */
  async read(): Promise<{ readonly number: number; readonly state: Checkpoint }> {
    return await this.#chain.read();
  }

  /** Decides where it starts, if nobody has; needs no lease. RangeError for a position that is not there yet. */
  async begin(position: number): Promise<void> {
    if ((await this.read()).state.isBegun) return;
    const checksum = await this.#options.findChecksum(position);
    if (checksum === undefined) throw new RangeError(`It cannot begin at ${position}: the log does not reach so far.`);
    const id = `0.begin.${randomName(this.#staging.random.bytes(16))}`;
    await this.#append(id, (newest) => (newest.isBegun ? undefined : { ...newest, position, checksum, isBegun: true }));
  }

  /**
   * Takes over with this fence; undefined when somebody with a newer one has, or when it is closed. LOG_REWOUND when the log is not the one that was worked on: then
   * the position means something else.
   */
  async take(fence: number): Promise<LeasedWork | undefined> {
    const { ground } = this.#options;
    const taken = await this.#append(`${fence}.take.0`, (newest) => {
      if (newest.isClosed || (newest.ground === ground && this.isSuperseded(newest, fence))) return undefined;
      const isOwn = newest.ground === ground && newest.fence === fence;
      return { ...newest, ground, fence, isOver: false, cutOff: isOwn ? newest.cutOff : this.#cutOffWith(newest) };
    });
    if (taken === undefined) return undefined;
    await this.verify(taken);
    return new LeasedWork(this, taken);
  }

  /** Everything up to `position` is done. Undefined when it does not count: somebody else has taken over. */
  async save(fence: number, position: number): Promise<Checkpoint | undefined> {
    const checksum = await this.#options.findChecksum(position);
    if (checksum === undefined) throw rewound(position);
    return await this.#append(`${fence}.save.${position}`, (newest) => {
      if (newest.isClosed || newest.ground !== this.#options.ground || this.isSuperseded(newest, fence))
        return undefined;
      return { ...newest, fence, position, checksum };
    });
  }

  /** Said by its owner: nothing of it will come after this. */
  async end(fence: number): Promise<void> {
    await this.#append(`${fence}.end.0`, (newest) => {
      const isOwn = newest.ground === this.#options.ground && newest.fence === fence;
      return isOwn && !newest.isOver ? { ...newest, isOver: true } : undefined;
    });
  }

  /** Ends all work on it, whoever has the lease; the last checkpoint stands. */
  async close(): Promise<Checkpoint> {
    const id = `0.close.${randomName(this.#staging.random.bytes(16))}`;
    const closed = await this.#append(id, (newest) => (newest.isClosed ? undefined : { ...newest, isClosed: true }));
    return closed ?? (await this.read()).state;
  }

  /** Deletes what is long replaced. */
  async collect(): Promise<void> {
    await this.#chain.collect();
  }

  /** Resolves when nothing is being deleted in the background any more. */
  async settled(): Promise<void> {
    await this.#chain.settled();
  }

  /** Whether nobody has taken over from the one with this fence. */
  async isHeldBy(fence: number): Promise<boolean> {
    const { state } = await this.read();
    return state.ground === this.#options.ground && state.fence === fence && !state.isClosed;
  }

  protected isSuperseded(newest: Checkpoint, fence: number): boolean {
    return newest.fence > fence;
  }

  protected async verify({ position, checksum }: Checkpoint): Promise<void> {
    if ((await this.#options.findChecksum(position)) !== checksum) throw rewound(position);
  }

  #cutOffWith({ fence, position, isOver, cutOff }: Checkpoint): Checkpoint["cutOff"] {
    return isOver || !this.#options.remembersCutOff ? cutOff : [...cutOff, [fence, position]];
  }

  async #append(id: string, change: (newest: Checkpoint) => Checkpoint | undefined): Promise<Checkpoint | undefined> {
    const entry = await retryIfSwept(() => this.#chain.append(id, change));
    if (entry !== undefined) this.#options.onSaved?.();
    return entry?.state;
  }
}

export function rewound(position: number): Error {
  const message = `The log has no longer the event at ${position} up to which this was done: it was restored from a backup, or replaced. What was made from it may hold what never happened; rebuild it, or begin under a new name.`;
  return holdfastError("LOG_REWOUND", message, { position });
}
