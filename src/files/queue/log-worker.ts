// LogWorker: one process at a time follows the change log and indexes what it reads. The log is the
// queue: an ordinary change needs no ticket. A change gets a ticket if it fails, stays locked, or
// may have killed its worker.
import { checksumOf } from "../../format/checksum.ts";
import { isHoldfastError } from "../../errors.ts";
import { conflictsWith } from "../../locks/table/conflict.ts";
import type { Leases } from "../../part/leases.ts";
import type { LoopSignals } from "../../part/loop.ts";
import { Checkpoints, unreadableMark, type LeasedWork, type MarkedSequence } from "../../part/progress/checkpoints.ts";
import { underLease, type WorkOutcome } from "../../part/under-lease.ts";
import { Sleeper } from "../../ports/sleeper.ts";
import { markedFieldsOf } from "../change-log/change-record.ts";
import type { Outcomes } from "../documents/outcomes.ts";
import type { Change } from "../model/file-tree.ts";
import { resetIfDamaged } from "../tree/damaged-record.ts";
import { indexingTag } from "../tree/layout.ts";
import type { Tree } from "../tree/tree.ts";
import { isOfWork, LockRequired } from "./indexer.ts";
import type { TaskContext } from "./task-context.ts";
import type { IndexTask } from "./task.ts";
import type { Worker } from "./worker.ts";

/** A change that stays locked this long gets a ticket. An `add` publishes its own within that time. */
const graceMsDefault = 2_000;
/** A hint wakes the worker; this is for changes without a hint. */
const pauseMs = 500;
/** The hold of a change ends a moment after the change is announced: its paths are checked again soon. */
const heldPauseMs = { min: 2, max: 100 };
/** How many changes are read ahead. */
const windowMax = 1_000;
/** How many changes are processed in parallel. If the worker dies, this many get a ticket: one may be the cause. */
export const inProgressMax = 16;
/** A checkpoint only saves checking changes again, so it need not follow each of them. */
const savesEvery = { changes: 250, ms: 1_000 };
/** If more changes than this precede the checkpoint, none is checked: `settled` finds the lost ones. */
const lookedAtMax = 10_000;

export interface LogWorkerOptions {
  /** How long a change with locked paths waits before it gets a ticket. */
  readonly graceMs?: number;
  /** When the ticket of a change that failed is due. */
  readonly retryDelayMs?: number;
}

/** The work during one tenure of the lease. */
export interface Tenure {
  readonly work: LeasedWork;
  readonly signal: AbortSignal;
  /** Changes that were read and have neither an outcome nor a ticket yet; by number, in order. */
  readonly open: Map<number, Change>;
  /** Open changes in progress. */
  readonly inProgress: Map<number, Promise<void>>;
  /** When the paths of an open change were first found locked. */
  readonly heldSinceMs: Map<number, number>;
  /** Changes up to this one may already have an outcome. */
  readonly mayBeDoneUpTo: number;
  /** The last change that was read. */
  last: number;
  /** A failure of the whole work, not of one change. */
  failure?: { readonly error: unknown };
}

export class LogWorker {
  readonly #context: TaskContext;
  readonly #tree: Tree;
  readonly #leases: Leases;
  readonly #worker: Worker;
  readonly #options: Required<LogWorkerOptions>;
  readonly #sleeper: Sleeper;
  /** Changes that another call of this process handles. */
  readonly #elsewhere = new Set<number>();

  constructor(context: TaskContext, leases: Leases, worker: Worker, options: LogWorkerOptions = {}) {
    this.#context = context;
    this.#tree = context.derived.tree;
    this.#leases = leases;
    this.#worker = worker;
    this.#options = { graceMs: graceMsDefault, retryDelayMs: 0, ...options };
    this.#sleeper = new Sleeper(this.#tree.ground.ports.clock);
  }

  /** Call it when there may be a change to read. */
  readonly wake = (): void => this.#sleeper.wake();

  /** Leaves a change to another call of this process, which publishes its outcome. */
  leave(change: number): void {
    this.#elsewhere.add(change);
  }

  /** Runs until it is stopped. `mayWork` is called before changes are started. */
  async run(concurrency: number, signals: LoopSignals, mayWork: () => Promise<boolean>): Promise<void> {
    const tree = this.#tree;
    const checkpoints = await this.open();
    await underLease(this.#leases, "index", signals, async (hold) => {
      // A process that remembers another log must not put its checkpoint into a restored tree.
      await tree.changes.mustBeSame();
      const tenure = await this.take(checkpoints, hold.fence, AbortSignal.any([signals.lettingGo, hold.signal]));
      if (tenure === undefined) return "lost";
      try {
        return await this.#follow(tenure, Math.min(concurrency, inProgressMax), signals.stopping, mayWork);
      } finally {
        await Promise.all(tenure.inProgress.values());
      }
    });
  }

  /**
   * Opens the checkpoint. Each change up to it has an outcome or a ticket. An unreadable checkpoint
   * starts over, and some work is repeated.
   */
  async open(): Promise<Checkpoints> {
    const tree = this.#tree;
    const { ground } = tree;
    const directory = `${tree.layout.directory}/indexed`;
    return await resetIfDamaged(tree, directory, async () => {
      const sequence = sequenceOf(tree);
      const options = { ground: ground.id, sequence, findStart: () => this.#findStart() };
      const checkpoints = await Checkpoints.open(ground, directory, options);
      await checkpoints.begin(0);
      return checkpoints;
    });
  }

  /**
   * Takes over the work with the fence of the lease. Returns undefined if another process has taken
   * it over since.
   */
  async take(checkpoints: Checkpoints, fence: number, signal: AbortSignal): Promise<Tenure | undefined> {
    const { isOver } = (await checkpoints.read()).state;
    const work = await checkpoints.take(fence);
    if (work === undefined) return undefined;
    const maps = { open: new Map(), inProgress: new Map(), heldSinceMs: new Map() };
    const mayBeDoneUpTo = await this.#tree.changes.last();
    const tenure: Tenure = { work, signal, ...maps, mayBeDoneUpTo, last: work.saved.position };
    const isTaken = await work.orLost(async () => {
      await this.readLost(tenure);
      if (!isOver) await this.#suspect(tenure);
      return true;
    });
    return isTaken ? tenure : undefined;
  }

  /** Reads further changes, and starts work on those whose holds are over. */
  async begin(tenure: Tenure, concurrency: number = inProgressMax): Promise<void> {
    await this.#read(tenure);
    const { open, inProgress } = tenure;
    const waiting = [...open.values()].filter(({ number }) => !inProgress.has(number)).slice(0, windowMax);
    if (waiting.length === 0 || inProgress.size >= concurrency) return;
    const isFree = await this.findFree(waiting);
    for (const change of waiting) {
      if (inProgress.size >= concurrency) return;
      if (await isFree(change)) this.#start(tenure, change);
      else await this.#keep(tenure, change);
    }
  }

  /**
   * Moves the checkpoint up to the first open change. Returns false if the checkpoint was not
   * accepted.
   */
  async save({ work, open, last }: Tenure): Promise<boolean> {
    const position = Math.min(last, ...[...open.keys()].slice(0, 1).map((first) => first - 1));
    if (position <= work.saved.position) return true;
    // Throws if this process remembers another log than the current one.
    await this.#tree.changes.mustBeSame();
    return await work.save(position);
  }

  /**
   * Returns a function that is true if the hold that announced a change is over. That hold was in
   * the lock table when the change entered the log, so one read of the table covers all changes
   * read before. On a share a read may be stale: there it tries to lock.
   */
  protected async findFree(_read: readonly Change[]): Promise<(change: Change) => Promise<boolean>> {
    const tree = this.#tree;
    if (tree.disk.volume.kind !== "local") return (change) => this.#canLock(change);
    const { table } = tree.locks;
    const { requests, redos } = (await table.read()).state;
    const listed = new Set(requests.map(({ id }) => id));
    const orphans = redos.filter(({ request }) => !listed.has(request));
    return async ({ path, from }) => {
      const paths = from === undefined ? [path] : [path, from];
      const wanted = paths.map((each) => ({ path: tree.keyOf(each), mode: "exact", shared: true }) as const);
      if (orphans.some(({ claims }) => conflictsWith(wanted, claims))) return false;
      // A listed request may be over: its hold file is then gone, and everything committed under it
      // was applied.
      return (await table.standing(requests.filter(({ claims }) => conflictsWith(wanted, claims)))).length === 0;
    };
  }

  async #canLock({ path, from }: Change): Promise<boolean> {
    const requests = [path, ...(from === undefined ? [] : [from])].map((each) => ({ path: each, shared: true }));
    try {
      const hold = await this.#tree.locks.acquireAll(requests, { timeoutMs: 0, tag: indexingTag });
      await hold.release();
      return true;
    } catch (error) {
      // Another program put a link there that is dangling or leads out of the tree: nothing of the
      // change is left.
      if (isHoldfastError(error, "INVALID_PATH")) return true;
      if (!isHoldfastError(error, "LOCK_TIMEOUT")) throw error;
      return false;
    }
  }

  async #follow(
    tenure: Tenure,
    concurrency: number,
    stopping: AbortSignal,
    mayWork: () => Promise<boolean>,
  ): Promise<WorkOutcome> {
    const tree = this.#tree;
    const { clock, watch } = tree.ground.ports;
    const { work, open, inProgress, signal } = tenure;
    let watched = { block: "", stop: (): void => undefined };
    let [savedAtMs, heldMs]: number[] = [clock.monotonicMs(), heldPauseMs.min];
    try {
      while (!stopping.aborted && (await mayWork())) {
        this.#sleeper.forgetWakeUps();
        const block = tree.layout.changeBlock(tenure.last + 1);
        if (block !== watched.block) {
          watched.stop();
          watched = { block, stop: watch.start(block, this.wake) };
        }
        const { last } = tenure;
        if (!(await work.orLost(async () => (await this.begin(tenure, concurrency), true)))) return "lost";
        if (tenure.failure !== undefined) throw tenure.failure.error;
        if (signal.aborted) return "lost";
        const isHeld = open.size > inProgress.size && inProgress.size < concurrency;
        heldMs = tenure.last > last ? heldPauseMs.min : Math.min(heldPauseMs.max, 2 * (heldMs ?? 0));
        const [nowMs, unsaved] = [clock.monotonicMs(), tenure.last - work.saved.position];
        if (unsaved >= savesEvery.changes || (unsaved > 0 && nowMs - (savedAtMs ?? 0) >= savesEvery.ms)) {
          savedAtMs = nowMs;
          if (!(await work.orLost(() => this.save(tenure)))) return "lost";
        }
        const isDone = unsaved === 0 || open.size > 0;
        const idleMs = isDone ? pauseMs : Math.min(pauseMs, savesEvery.ms);
        await this.#sleeper.sleep(isHeld ? heldMs : idleMs, stopping).catch(() => undefined);
      }
      await Promise.all(inProgress.values());
    } finally {
      watched.stop();
    }
    if (tenure.failure !== undefined) throw tenure.failure.error;
    if (signal.aborted || !(await work.orLost(() => this.save(tenure)))) return "lost";
    await tree.changes.mustBeSame();
    await work.end();
    return "finished";
  }

  #start(tenure: Tenure, change: Change): void {
    const { number } = change;
    const working = this.#do(tenure, change)
      .then(
        () => {
          tenure.open.delete(number);
          tenure.heldSinceMs.delete(number);
        },
        (error: unknown) => {
          if (!tenure.signal.aborted) tenure.failure ??= { error };
        },
      )
      .finally(() => {
        tenure.inProgress.delete(number);
        this.wake();
      });
    tenure.inProgress.set(number, working);
  }

  /** Processes a change; ends when the change has an outcome or a ticket. */
  async #do({ signal, heldSinceMs, mayBeDoneUpTo }: Tenure, change: Change): Promise<void> {
    const { derived, waits } = this.#context;
    const { number } = change;
    if (this.#elsewhere.delete(number)) return;
    // The ticket of an `add`, which has its lock, was faster.
    const mayBeDone = heldSinceMs.has(number) || number <= mayBeDoneUpTo;
    if (mayBeDone && (await derived.outcomes.find(number)) !== undefined) return;
    await waits.latch.join();
    try {
      await this.#worker.index(change, { signal, isUnlocked: true });
    } catch (error) {
      signal.throwIfAborted();
      if (isOfWork(error)) throw error;
      await (error instanceof LockRequired ? this.#publish(number) : this.#publish(number, { failures: 1 }));
    } finally {
      waits.latch.leave();
    }
  }

  /**
   * Keeps a change with locked paths waiting, and publishes a ticket for it after the grace period.
   */
  async #keep({ open, heldSinceMs }: Tenure, { number }: Change): Promise<void> {
    const nowMs = this.#tree.ground.ports.clock.monotonicMs();
    const sinceMs = heldSinceMs.get(number) ?? nowMs;
    heldSinceMs.set(number, sinceMs);
    if (nowMs - sinceMs < this.#options.graceMs) return;
    await this.#publish(number);
    open.delete(number);
    heldSinceMs.delete(number);
  }

  /**
   * Finds changes before the checkpoint that have neither outcome nor ticket: queue and documents
   * may be older than the checkpoint, as in a copy made during changes.
   */
  protected async readLost({ work, open }: Tenure): Promise<void> {
    const { outcomes, tree } = this.#context.derived;
    const [start, { position }] = [await this.#findStart(), work.saved];
    if (position - start > lookedAtMax) return;
    for (const number of await withoutOutcome(outcomes, start, position)) {
      const change = (await this.#hasTicket(number)) ? undefined : await tree.changes.find(number);
      if (change !== undefined) open.set(number, change);
    }
  }

  /**
   * Publishes tickets for the first changes without an outcome, because the previous worker died.
   * It starts changes in order, so one of these may be the cause.
   */
  async #suspect({ work, mayBeDoneUpTo }: Tenure): Promise<void> {
    const { outcomes } = this.#context.derived;
    const { position } = work.saved;
    const numbers = await withoutOutcome(outcomes, position, Math.min(mayBeDoneUpTo, position + windowMax));
    for (const number of numbers.slice(0, inProgressMax)) await this.#publish(number, { deaths: 1 });
  }

  async #read(tenure: Tenure): Promise<void> {
    const { tree, outcomes } = this.#context.derived;
    while (tenure.open.size < windowMax) {
      const found = await tree.changes.readAfter(tenure.last);
      const [first, newest] = [found[0], found.at(-1)];
      if (first === undefined || newest === undefined) return;
      const isOld = first.number <= tenure.mayBeDoneUpTo;
      const done = new Set(isOld ? await outcomes.among(found.map(({ number }) => number)) : []);
      const start = isOld ? await this.#findStart() : 0;
      for (const change of found) {
        const { number } = change;
        // A ticket of an older build is processed as a ticket.
        if (number <= start || done.has(number) || (isOld && (await this.#hasTicket(number)))) continue;
        tenure.open.set(number, change);
      }
      tenure.last = newest.number;
    }
  }

  /** Returns the change up to which everything is in the index, or is indexed by the work on a later change. */
  async #findStart(): Promise<number> {
    const { derived, functions } = this.#context;
    if (!functions.has("index")) return 0;
    const index = await derived.decideIndex();
    return Math.max(index.base - 1, await derived.findSnapshotPosition(index));
  }

  async #publish(change: number, attempts: Pick<IndexTask, "failures" | "deaths"> = {}): Promise<void> {
    const delayed = attempts.failures === undefined ? {} : { delayMs: this.#options.retryDelayMs };
    await this.#context.queue.publishChange(change, attempts, delayed);
  }

  async #hasTicket(change: number): Promise<boolean> {
    return (await this.#context.queue.stateOf(change)) === "whole";
  }
}

async function withoutOutcome(outcomes: Outcomes, after: number, upTo: number): Promise<number[]> {
  const numbers = Array.from({ length: Math.max(0, upTo - after) }, (_, index) => after + 1 + index);
  const done = new Set(await outcomes.among(numbers));
  return numbers.filter((number) => !done.has(number));
}

function sequenceOf({ changes, disk }: Tree): MarkedSequence {
  return {
    findMark: async (position) => {
      if (position === 0) return "00000000";
      const change = await changes.find(position);
      if (change?.damaged !== undefined) return unreadableMark;
      return change === undefined ? undefined : checksumOf(markedFieldsOf(change));
    },
    // Called for a position that disappears while this process works: it remembers another log than
    // the current one.
    rewound: (position) => changes.replaced(position),
    mayLag: disk.volume.kind !== "local",
  };
}
