// A consumer passes the events of a log to a handler. Of all processes that use its name, one runs it at a time. A
// checkpoint records how far it has come.
import type { Cancel, NewEvent, SequencedEvent } from "../../common.ts";
import { fileNameOf } from "../../format/name.ts";
import type { PathHold } from "../../locks/path/path-hold.ts";
import { Loop, ProgressWaiters, type LoopSignals } from "../../part/loop.ts";
import type { Checkpoint } from "../../part/progress/checkpoint.ts";
import type { Checkpoints } from "../../part/progress/checkpoints.ts";
import { waitUntilProcessed } from "../../part/progress/wait-until-processed.ts";
import { underLease, type WorkOutcome } from "../../part/under-lease.ts";
import { carriersOf } from "../../telemetry/carrier.ts";
import { trace } from "../../telemetry/trace.ts";
import type { LogAccess } from "../log/log-access.ts";
import type { ConsumerOptions, EventConsumer, EventStore } from "../model/event-store.ts";
import { itemsOf, type Matching, type Query } from "../model/query.ts";
import { workOn, type LogWork } from "./log-work.ts";
import { processEvents, type EventSource } from "./process-events.ts";

const batchMax = 100_000;

type Handler = (events: readonly SequencedEvent[]) => Promise<void>;

/**
 * The handler gets each matching event in order, at least once. After a crash it gets the current batch again. If a
 * process slept past its lease, its handler may still be running when the next process begins the same batch. If an
 * effect must happen once, key it by the event's id.
 *
 * If the handler throws, the batch is not checkpointed, the lease is released, and `done` rejects with that error. If
 * another process runs a consumer of that name, it tries the batch next. This one does not retry automatically: it
 * would retry a faulty event forever, and only the caller knows whether to wait, skip it or stop. Calling `consume`
 * again continues with the same batch.
 */
export function consume<E extends NewEvent, const Q extends Query<E["type"]>>(
  store: Pick<EventStore<E>, "read" | "head">,
  access: LogAccess,
  name: string,
  query: Q,
  handler: (events: readonly SequencedEvent<Matching<E, Q>>[]) => Promise<void>,
  options: ConsumerOptions = {},
): EventConsumer {
  // Safe, because the handler gets only events that match.
  return new LogConsumer(store, access, name, query, handler as Handler, options);
}

class LogConsumer implements EventConsumer {
  readonly name: string;
  /** The name of the lease, and of the directory of the checkpoints in that of the log. */
  readonly #lease: string;
  readonly #source: EventSource;
  readonly #access: LogAccess;
  readonly #query: Query;
  readonly #handler: Handler;
  readonly #batch: number;
  readonly #work: LogWork;
  readonly #checkpoints: Promise<Checkpoints>;
  readonly #waiters = new ProgressWaiters();
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
    this.#work = workOn(access);
    // Open now, not once the lease is acquired: "head" means the head at this call.
    this.#checkpoints = this.#open(from);
    // The loop and `position` await this promise and report its failure.
    this.#checkpoints.catch(() => undefined);
    this.#loop = new Loop(this.#work.loops, (signals) => this.#run(signals), {
      signal,
      tell: (failure) => this.#waiters.tell(failure),
    });
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
    const { loops, sequence } = this.#work;
    const work = {
      loops,
      sequence,
      findCheckpoint: () => this.#checkpoint(),
      findFailure: () => this.#loop.failure,
    };
    await this.#waiters.listen(() => waitUntilProcessed(position, work, options));
  }

  async #checkpoint(): Promise<Checkpoint> {
    return (await (await this.#checkpoints).read()).state;
  }

  async #open(from: number | "head"): Promise<Checkpoints> {
    const begin = from === "head" ? await this.#access.headBeforeAppends() : from;
    await this.#access.opened();
    const checkpoints = await this.#work.openCheckpoints(`${this.#access.directory}/${this.#lease}`);
    await checkpoints.begin(begin);
    return checkpoints;
  }

  async #run(signals: LoopSignals): Promise<void> {
    const checkpoints = await this.#checkpoints;
    try {
      await underLease(this.#work.leases, this.#lease, signals, (hold) => this.#consume(checkpoints, hold, signals));
    } finally {
      await checkpoints.settled();
    }
  }

  async #handle(events: readonly SequencedEvent[]): Promise<void> {
    const about = () => ({
      location: this.#access.directory,
      consumer: this.name,
      count: events.length,
      carried: carriersOf(events.map(({ metadata }) => metadata)),
    });
    await trace("events.handle", about, () => this.#handler(events));
  }

  async #consume(checkpoints: Checkpoints, hold: PathHold, signals: LoopSignals): Promise<WorkOutcome> {
    const leased = await checkpoints.take(hold.fence);
    if (leased === undefined) return "lost";
    const work = {
      source: this.#source,
      access: this.#access,
      query: this.#query,
      batch: this.#batch,
      // Handle before the checkpoint: in the reverse order a crash in between would lose the batch.
      commit: async (events: readonly SequencedEvent[], position: number): Promise<boolean> => {
        if (events.length > 0) await this.#handle(events);
        return await leased.save(position);
      },
    };
    return await processEvents(work, leased, hold, signals);
  }
}
