// The checkpoints of a piece of work: a rolling chain, so that they neither pile up nor go back.
//
// A worker first takes the chain over by an append with the fence of its lease. From then on every
// append with an older fence is refused. The position from which the worker resumes therefore
// cannot change, and the late checkpoint of a process that slept past its lease never counts.
import { growingEpochs } from "../../durable/chain/epoch-rollover.ts";
import type { AppendOptions, RollingChainOptions } from "../../durable/chain/rolling-chain-options.ts";
import { RollingChain } from "../../durable/chain/rolling-chain.ts";
import type { ChainOpener, StateChain } from "../../durable/chain/state-chain.ts";
import { retryIfSwept, type Staging } from "../../durable/publish/staging.ts";
import type { Random } from "../../ports/random.ts";
import { randomName } from "../../format/id.ts";
import { checkpointKind, doesCount, initialCheckpoint, type Checkpoint } from "./checkpoint.ts";

/** Small at first: a part may have many checkpoint chains, most of them with few checkpoints. */
const slotsPerEpoch = growingEpochs(64);

/** The sequence that the work processes: numbered positions, each with a mark. */
export interface MarkedSequence {
  /**
   * Returns a string that differs if the sequence was restored from a backup and then continued
   * differently. Undefined beyond the end; zeros ("00000000") for position 0; `unreadableMark` for
   * an unreadable position.
   */
  findMark(position: number): Promise<string | undefined>;
  /** Creates the error for a position whose mark is no longer the recorded one. */
  rewound(position: number): Error;
  /** True if a network mount may show another machine's checkpoint before the position that it names. */
  readonly mayLag: boolean;
}

/** The mark of an unreadable position. It proves nothing, and refutes nothing. */
export const unreadableMark = "?";

/** False if the sequence is not the one that was processed. */
export function isSameMark(one: string | undefined, other: string | undefined): boolean {
  return one === other || one === unreadableMark || other === unreadableMark;
}

/** Statements that are committed together with a checkpoint, if the chain supports that. */
export type SavedBeside = Pick<AppendOptions, "beside">;

export interface CheckpointsOptions {
  /** The id of the ground that the fences come from. */
  readonly ground: string;
  readonly sequence: MarkedSequence;
  /**
   * Returns where the work restarts if the sequence is not the one that was processed; for work
   * that may be done twice. Default: throws `rewound`.
   */
  readonly findStart?: (() => Promise<number>) | undefined;
  /** True if the work leaves files to which a late worker can add. Default false. */
  readonly remembersCutOff?: boolean;
  readonly slotsPerEpoch?: number;
  /** Called after each checkpoint that this process made. */
  readonly onSaved?: () => void;
}

export class Checkpoints {
  readonly #chain: StateChain<Checkpoint>;
  readonly #random: Random;
  readonly #options: CheckpointsOptions;

  protected constructor(chain: StateChain<Checkpoint>, random: Random, options: CheckpointsOptions) {
    this.#chain = chain;
    this.#random = random;
    this.#options = options;
  }

  /** Creates the chain if there is none. */
  static async open(opener: ChainOpener, name: string, options: CheckpointsOptions): Promise<Checkpoints> {
    const { host, random } = opener.ports;
    const chain = await retryIfSwept(() => opener.openChain(name, chainOptions({ ...options, bootId: host.bootId })));
    return new this(chain, random, options);
  }

  /** Returns the newest checkpoint, and a number that grows with each. */
  async read(): Promise<{ readonly number: number; readonly state: Checkpoint }> {
    return await this.#chain.read();
  }

  /** Decides where the work starts, unless that is decided. Needs no lease. Throws RangeError beyond the end. */
  async begin(position: number): Promise<void> {
    if ((await this.read()).state.isBegun) return;
    const checksum = await this.#options.sequence.findMark(position);
    if (checksum === undefined)
      throw new RangeError(`The work cannot begin at position ${position}: that position does not exist yet.`);
    const id = `0.begin.${randomName(this.#random.bytes(16))}`;
    await this.#append(id, (newest) => (newest.isBegun ? undefined : { ...newest, position, checksum, isBegun: true }));
  }

  /**
   * Takes over with this fence. Undefined if a newer fence did, or if the chain is closed. Throws
   * `rewound` if the sequence is not the one that was processed: then the position means something
   * else. With `findStart` the work restarts there instead.
   */
  async take(fence: number): Promise<LeasedWork | undefined> {
    const { ground, sequence, findStart } = this.#options;
    const taken = await this.#append(`${fence}.take.0`, (newest) => {
      if (newest.isClosed || (newest.ground === ground && this.isSuperseded(newest, fence))) return undefined;
      const isOwn = newest.ground === ground && newest.fence === fence;
      return { ...newest, ground, fence, isOver: false, cutOff: isOwn ? newest.cutOff : this.#cutOffWith(newest) };
    });
    if (taken === undefined) return undefined;
    if (isSameMark(await sequence.findMark(taken.position), taken.checksum)) return new LeasedWork(this, taken);
    if (findStart === undefined) throw sequence.rewound(taken.position);
    const begunAnew = await this.save(fence, await findStart());
    return begunAnew === undefined ? undefined : new LeasedWork(this, begunAnew);
  }

  /**
   * Records that everything up to `position` is done. Undefined if that does not count: another
   * process has taken over.
   */
  async save(fence: number, position: number, beside: SavedBeside = {}): Promise<Checkpoint | undefined> {
    const { ground, sequence } = this.#options;
    const checksum = await sequence.findMark(position);
    if (checksum === undefined) throw sequence.rewound(position);
    const change = (newest: Checkpoint): Checkpoint | undefined => {
      if (newest.isClosed || newest.ground !== ground || this.isSuperseded(newest, fence)) return undefined;
      return { ...newest, fence, position, checksum };
    };
    return await this.#append(`${fence}.save.${position}`, change, beside);
  }

  /** The worker with this fence states that its work is complete. */
  async end(fence: number): Promise<void> {
    await this.#append(`${fence}.end.0`, (newest) => {
      const isOwn = newest.ground === this.#options.ground && newest.fence === fence;
      return isOwn && !newest.isOver ? { ...newest, isOver: true } : undefined;
    });
  }

  /** Ends all work, also that of the lease's holder. The last checkpoint remains. */
  async close(): Promise<Checkpoint> {
    const id = `0.close.${randomName(this.#random.bytes(16))}`;
    const closed = await this.#append(id, (newest) => (newest.isClosed ? undefined : { ...newest, isClosed: true }));
    return closed ?? (await this.read()).state;
  }

  /** Deletes old epochs of the chain. */
  async collect(): Promise<void> {
    await this.#chain.collect();
  }

  /** Resolves when no deletion runs in the background. */
  async settled(): Promise<void> {
    await this.#chain.settled();
  }

  /** True if the worker with this fence is still the current one, and the chain is open. */
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

  async #append(
    id: string,
    change: (newest: Checkpoint) => Checkpoint | undefined,
    options: AppendOptions = {},
  ): Promise<Checkpoint | undefined> {
    const entry = await retryIfSwept(() => this.#chain.append(id, change, options));
    if (entry !== undefined) this.#options.onSaved?.();
    return entry?.state;
  }
}

type ChainOptions = Pick<CheckpointsOptions, "slotsPerEpoch"> & Pick<RollingChainOptions<Checkpoint>, "bootId">;

function chainOptions(options: ChainOptions): RollingChainOptions<Checkpoint> {
  return {
    kind: checkpointKind,
    initial: initialCheckpoint,
    counts: doesCount,
    slotsPerEpoch: options.slotsPerEpoch ?? slotsPerEpoch,
    bootId: options.bootId,
  };
}

async function openChain(
  staging: Staging,
  directory: string,
  options: ChainOptions,
): Promise<RollingChain<Checkpoint>> {
  return await retryIfSwept(() => RollingChain.open(staging, directory, chainOptions(options)));
}

/** Returns the newest checkpoint in `directory`, of work that was begun. Throws CORRUPT. */
export async function readCheckpoint(staging: Staging, directory: string, options: ChainOptions): Promise<Checkpoint> {
  return (await (await openChain(staging, directory, options)).read()).state;
}

/** Continues from the newest readable checkpoint. Call it only while no other process works. */
export async function repairCheckpoints(
  staging: Staging,
  directory: string,
  options: ChainOptions & { readonly moveAside: (path: string) => Promise<unknown> },
): Promise<void> {
  await RollingChain.repair(staging, directory, chainOptions(options), options.moveAside);
}

/** The work of one lease holder: where it resumes, and how it advances. */
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

  /** Saves the checkpoint, which is durable when this resolves. Returns false if it does not count. */
  async save(position: number, beside?: SavedBeside): Promise<boolean> {
    const saved = await this.#checkpoints.save(this.fence, position, beside);
    if (saved !== undefined) this.#saved = saved;
    return saved !== undefined;
  }

  async end(): Promise<void> {
    await this.#checkpoints.end(this.fence);
  }

  /**
   * Returns the result of `work`. Returns false if it throws after another process has taken over: the changes of
   * that process explain the error.
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
