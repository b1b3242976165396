// A consumer: one of all processes that use its name hands the events of a log to a handler, and what it has done outlives it.
import type { Cancel, NewEvent, SequencedEvent } from "../../common.ts";
import { fileNameOf } from "../../format/name.ts";
import type { PathHold } from "../../locks/path/path-hold.ts";
import type { ConsumerOptions, EventConsumer, EventStore } from "../model/event-store.ts";
import type { LogAccess } from "../log/log-access.ts";
import { itemsOf, type Matching, type Query } from "../model/query.ts";
import { ProgressWaiters } from "./progress-waiters.ts";
import type { Checkpoint } from "./checkpoint.ts";
import { Checkpoints } from "./checkpoints.ts";
import { followingOf, type Following } from "./following.ts";
import { Loop, type Failure, type LoopSignals } from "./loop.ts";
import { waitUntilProcessed } from "./progress.ts";
import { underLease, workThrough, type EventSource, type Outcome } from "./work-through.ts";

const batchMax = 100_000;

export type Handler = (events: readonly SequencedEvent[]) => Promise<void>;

/**
 * The handler sees each matching event in order, at least once: again after a crash, at most the batch that was in hand; and one that slept past its lease may
 * still be in its batch while the next process has begun with it. What must happen once is done under the event's id.
 *
 * When the handler throws, the batch is not checkpointed, the lease is released (another process of that name tries it next, if there is one) and `done` rejects with that
 * very error. It is not tried again by itself: an event that can never be handled would otherwise be tried for ever, and only the caller knows whether
 * to wait, to skip it or to stop. Calling `consume` again goes on with the same batch.
 */
export function consume<E extends NewEvent, const Q extends Query<E["type"]>>(
  store: Pick<EventStore<E>, "read" | "head">,
  access: LogAccess,
  name: string,
  query: Q,
  handler: (events: readonly SequencedEvent<Matching<E, Q>>[]) => Promise<void>,
  options: ConsumerOptions = {},
): EventConsumer {
  // Sound because only events that match are ever handed over.
  return new LogConsumer(store, access, name, query, handler as Handler, options);
}

class LogConsumer implements EventConsumer {
  readonly name: string;
  /** What it is locked by, and where its checkpoint is in the log's directory. */
  readonly #lease: string;
  readonly #source: EventSource;
  readonly #access: LogAccess;
  readonly #query: Query;
  readonly #handler: Handler;
  readonly #batch: number;
  readonly #following: Following;
  readonly #checkpoints: Promise<Checkpoints>;
  readonly #audience = new ProgressWaiters();
  readonly #loop: Loop;

  constructor(
    source: EventSource,
    access: LogAccess,
    name: string,
    query: Query,
    handler: Handler,
    { batch = 1, from = 0, signal }: ConsumerOptions,
  ) {
    itemsOf(query);
    if (!(Number.isSafeInteger(batch) && batch >= 1 && batch <= batchMax))
      throw new RangeError(`batch must be a whole number from 1 to ${batchMax}, not ${batch}.`);
    if (from !== "head" && !(Number.isSafeInteger(from) && from >= 0))
      throw new RangeError(`from must be "head" or a whole number from 0, not ${from}.`);
    if (typeof handler !== "function") throw new TypeError("A consumer needs a handler.");
    this.name = name;
    this.#lease = `consumers/${fileNameOf(name)}`;
    this.#source = source;
    this.#access = access;
    this.#query = query;
    this.#handler = handler;
    this.#batch = batch;
    this.#following = followingOf(access);
    // At once, and not when its turn comes: "head" means now.
    this.#checkpoints = this.#open(from);
    // Told by whoever waits for it: the loop, `position`.
    this.#checkpoints.catch(() => undefined);
    const { clock } = access.ports;
    const tell = (failure: Failure): Promise<boolean> => this.#audience.tell(failure);
    this.#loop = new Loop({ following: this.#following, clock, signal, tell }, (signals) => this.#run(signals));
  }

  get done(): Promise<void> {
    return this.#loop.done;
  }

  async stop(options?: { drainMs?: number | undefined }): Promise<void> {
    await this.#loop.stop(options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async position(): Promise<number> {
    return (await this.#checkpoint()).position;
  }

  async waitUntilProcessed(position: number, options: Cancel = {}): Promise<void> {
    const progress = {
      following: this.#following,
      access: this.#access,
      findCheckpoint: () => this.#checkpoint(),
      findFailure: () => this.#loop.failure,
    };
    await this.#audience.listen(() => waitUntilProcessed(position, progress, options));
  }

  async #checkpoint(): Promise<Checkpoint> {
    return (await (await this.#checkpoints).read()).state;
  }

  async #open(from: number | "head"): Promise<Checkpoints> {
    const begin = from === "head" ? await this.#access.headBeforeAppends() : from;
    await this.#access.opened();
    const { ground, directory } = this.#access;
    const checkpoints = await Checkpoints.open(ground.staging, `${directory}/${this.#lease}`, {
      ground: ground.id,
      bootId: ground.ports.host.bootId,
      findChecksum: (position) => this.#access.findChecksum(position),
      onSaved: () => this.#following.progressed(),
    });
    await checkpoints.begin(begin);
    return checkpoints;
  }

  async #run(signals: LoopSignals): Promise<void> {
    const checkpoints = await this.#checkpoints;
    try {
      await underLease(this.#following, this.#lease, signals, (hold) => this.#consume(checkpoints, hold, signals));
    } finally {
      await checkpoints.settled();
    }
  }

  async #consume(checkpoints: Checkpoints, hold: PathHold, signals: LoopSignals): Promise<Outcome> {
    const tenure = await checkpoints.take(hold.fence);
    if (tenure === undefined) return "lost";
    const work = {
      source: this.#source,
      access: this.#access,
      query: this.#query,
      batch: this.#batch,
      // The handler first: the reverse would lose the batch in a crash between the two.
      commit: async (events: readonly SequencedEvent[], position: number): Promise<boolean> => {
        if (events.length > 0) await this.#handler(events);
        return await tenure.save(position);
      },
    };
    return await workThrough(work, tenure, hold, signals);
  }
}
