// The checkpoints of a piece of work: a rolling chain, so that they neither pile up nor go back.
//
// A worker first takes the chain over by an append that carries the fence of its lease. From then
// on every append with an older fence is refused. So the position that the worker resumes from
// cannot change, and the late checkpoint of a process that slept past its lease never counts.
import { RollingChain } from "../../durable/chain/rolling-chain.ts";
import { growingEpochs } from "../../durable/chain/epoch-rollover.ts";
import { retryIfSwept, type Staging } from "../../durable/publish/staging.ts";
import { randomName } from "../../format/id.ts";
import { checkpointKind, counts, unbegun, type Checkpoint } from "./checkpoint.ts";

/** Small at first: a part may have many pieces of work, most of them with few checkpoints. */
const slotsPerEpoch = growingEpochs(64);

/** What the work goes through: numbered positions, each with a mark. */
export interface MarkedSequence {
  /**
   * A text that differs if the sequence was restored from a backup and then went on otherwise.
   * Undefined beyond the end; zeros ("00000000") for position 0.
   */
  findMark(position: number): Promise<string | undefined>;
  /** The error for a position whose mark is no longer the recorded one. */
  rewound(position: number): Error;
  /** A network mount may show a checkpoint of another machine before the position that it names. */
  readonly mayLag: boolean;
}

export interface CheckpointsOptions {
  /** The id of the ground that the fences are of. */
  readonly ground: string;
  readonly bootId: string;
  readonly sequence: MarkedSequence;
  /** The work leaves files that a late worker can add to. Default false. */
  readonly remembersCutOff?: boolean;
  readonly slotsPerEpoch?: number;
  /** Called after each checkpoint that this process has made. */
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

  /** The newest checkpoint, and a number that grows with each. */
  async read(): Promise<{ readonly number: number; readonly state: Checkpoint }> {
    return await this.#chain.read();
  }

  /**
   * Decides where the work starts, unless that is decided. Needs no lease. RangeError beyond the
   * end.
   */
  async begin(position: number): Promise<void> {
    if ((await this.read()).state.isBegun) return;
    const checksum = await this.#options.sequence.findMark(position);
    if (checksum === undefined)
      throw new RangeError(`The work cannot begin at position ${position}: there is nothing at that position yet.`);
    const id = `0.begin.${randomName(this.#staging.random.bytes(16))}`;
    await this.#append(id, (newest) => (newest.isBegun ? undefined : { ...newest, position, checksum, isBegun: true }));
  }

  /**
   * Takes over with this fence. Undefined when a newer fence has, or when the chain is closed.
   * Throws `rewound` when the sequence is not the one that was worked on: then the position means
   * something else.
   */
  async take(fence: number): Promise<LeasedWork | undefined> {
    const { ground, sequence } = this.#options;
    const taken = await this.#append(`${fence}.take.0`, (newest) => {
      if (newest.isClosed || (newest.ground === ground && this.isSuperseded(newest, fence))) return undefined;
      const isOwn = newest.ground === ground && newest.fence === fence;
      return { ...newest, ground, fence, isOver: false, cutOff: isOwn ? newest.cutOff : this.#cutOffWith(newest) };
    });
    if (taken === undefined) return undefined;
    if ((await sequence.findMark(taken.position)) !== taken.checksum) throw sequence.rewound(taken.position);
    return new LeasedWork(this, taken);
  }

  /**
   * Everything up to `position` is done. Undefined when it does not count: another process has
   * taken over.
   */
  async save(fence: number, position: number): Promise<Checkpoint | undefined> {
    const { ground, sequence } = this.#options;
    const checksum = await sequence.findMark(position);
    if (checksum === undefined) throw sequence.rewound(position);
    return await this.#append(`${fence}.save.${position}`, (newest) => {
      if (newest.isClosed || newest.ground !== ground || this.isSuperseded(newest, fence)) return undefined;
      return { ...newest, fence, position, checksum };
    });
  }

  /** Said by the worker with this fence: nothing more of its work will come. */
  async end(fence: number): Promise<void> {
    await this.#append(`${fence}.end.0`, (newest) => {
      const isOwn = newest.ground === this.#options.ground && newest.fence === fence;
      return isOwn && !newest.isOver ? { ...newest, isOver: true } : undefined;
    });
  }

  /** Ends all work, also that of the holder of the lease. The last checkpoint stands. */
  async close(): Promise<Checkpoint> {
    const id = `0.close.${randomName(this.#staging.random.bytes(16))}`;
    const closed = await this.#append(id, (newest) => (newest.isClosed ? undefined : { ...newest, isClosed: true }));
    return closed ?? (await this.read()).state;
  }

  /** Deletes old epochs of the chain. */
  async collect(): Promise<void> {
    await this.#chain.collect();
  }

  /** Resolves when no deletion is going on in the background. */
  async settled(): Promise<void> {
    await this.#chain.settled();
  }

  /** Whether the worker with this fence is still the last one, and the chain is open. */
  async isHeldBy(fence: number): Promise<boolean> {
    const { state } = await this.read();
    return state.ground === this.#options.ground && state.fence === fence && !state.isClosed;
  }

  protected isSuperseded(newest: Checkpoint, fence: number): boolean {
    return newest.fence > fence;
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

/** The work of one holder of the lease: what it resumes from, and how it moves on. */
export class LeasedWork {
  readonly fence: number;
  readonly #checkpoints: Checkpoints;
  #saved: Checkpoint;

  constructor(checkpoints: Checkpoints, taken: Checkpoint) {
    this.fence = taken.fence;
    this.#checkpoints = checkpoints;
    this.#saved = taken;
  }

  /** The newest checkpoint of this work. */
  get saved(): Checkpoint {
    return this.#saved;
  }

  /** Durable when it resolves. False when it does not count. */
  async save(position: number): Promise<boolean> {
    const saved = await this.#checkpoints.save(this.fence, position);
    if (saved !== undefined) this.#saved = saved;
    return saved !== undefined;
  }

  async end(): Promise<void> {
    await this.#checkpoints.end(this.fence);
  }

  /**
   * The result of `work`; false if it throws and another process has taken over, whose changes
   * explain the error.
   */
  async orLost(work: () => Promise<boolean>): Promise<boolean> {
    try {
      return await work();
    } catch (error) {
      if (await this.#checkpoints.isHeldBy(this.fence)) throw error;
      return false;
    }
  }
}
