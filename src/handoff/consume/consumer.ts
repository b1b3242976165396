// A consumer: takes deliveries as long as it runs, a few at a time, and hands each to a handler.
import type { Cancel } from "../../common.ts";
import { isHoldfastError } from "../../errors.ts";
import { checkOptions } from "../../format/known-options.ts";
import { inHand, type LoopSignals } from "../../part/loop.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Random } from "../../ports/random.ts";
import type { DeadLetter } from "../model/handoff.ts";
import type { Delivery, OpenDelivery } from "./delivery.ts";

export interface ConsumeOptions extends Cancel {
  /** Default 1. */
  concurrency?: number | undefined;
  /** Default 5. The claim counts it, so a ticket that kills its workers ends in `error`. */
  attempts?: number | undefined;
  /** Default { min: 1_000, max: 3_600_000 }, doubling, with jitter. */
  backoffMs?: { min: number; max: number } | undefined;
  /** A handler that takes longer is aborted and retried. Default: none. */
  handlerTimeoutMs?: number | undefined;
  /** What a thrown error means. Default: "retry" until `attempts`, then `error`. */
  onError?: ((error: unknown, delivery: Delivery) => "retry" | "fail") | undefined;
  /** Ends by itself when there was nothing to take for so long: 0 for a job that works off what is there. Default: never. */
  idleMs?: number | undefined;
  /**
   * Called after a ticket went to the dead letters: by its handler, by its last attempt, or without a handler that has
   * seen it, because it is damaged, expired, not what its manifest says, or was lost too often. What it throws ends the
   * consumer.
   */
  onDeadLetter?: ((ticket: DeadLetter) => void) | undefined;
  /** Called once for each pause that keeps this consumer from taking a ticket, with the reason that was given for it. */
  onPause?: ((reason: string | undefined) => void) | undefined;
}

export type Handler = (delivery: Delivery) => Promise<unknown>;

export const attemptsDefault = 5;
const backoffDefaultMs = { min: 1_000, max: 3_600_000 };

export interface ConsumerParts {
  readonly clock: Clock;
  readonly random: Random;
  /** The next delivery, as soon as there is one; undefined when `stopping` aborts. */
  readonly next: (attempts: number, stopping: AbortSignal) => Promise<OpenDelivery | undefined>;
}

/** Before anything is taken: TypeError, RangeError. */
export function checkConsumeOptions(options: ConsumeOptions): void {
  checkOptions("consume", options, {
    concurrency: true,
    attempts: true,
    backoffMs: true,
    handlerTimeoutMs: true,
    onError: true,
    idleMs: true,
    onDeadLetter: true,
    onPause: true,
    signal: true,
  });
  const {
    concurrency = 1,
    attempts = 1,
    backoffMs: limits = backoffDefaultMs,
    handlerTimeoutMs = 1,
    onError,
    onDeadLetter,
    onPause,
  } = options;
  for (const [what, count] of [["concurrency", concurrency] as const, ["attempts", attempts] as const])
    if (!(Number.isSafeInteger(count) && count >= 1))
      throw new RangeError(`${what} must be a whole number from 1, not ${count}.`);
  if (!(limits.min >= 0 && limits.max >= limits.min && limits.max < Infinity))
    throw new RangeError("backoffMs must be { min, max } in milliseconds, min from 0 and max not below it.");
  if (!(handlerTimeoutMs > 0)) throw new RangeError(`handlerTimeoutMs must be above 0, not ${handlerTimeoutMs}.`);
  for (const [what, call] of Object.entries({ onError, onDeadLetter, onPause }))
    if (call !== undefined && typeof call !== "function") throw new TypeError(`${what} must be a function.`);
}

/** Runs until it is stopped. Rejects when deliveries cannot be taken or settled any more. */
export async function consume(
  parts: ConsumerParts,
  handler: Handler,
  options: ConsumeOptions,
  signals: LoopSignals,
): Promise<void> {
  const { concurrency = 1, attempts = attemptsDefault } = options;
  const failed = new AbortController();
  const worker = async (): Promise<void> => {
    // Of its own for each worker: many that listen to one signal look like a leak to Node.
    const stopping = AbortSignal.any([signals.stopping, failed.signal]);
    const lettingGo = AbortSignal.any([signals.lettingGo]);
    try {
      for (;;) {
        const delivery = await parts.next(attempts, stopping);
        if (delivery === undefined) return;
        await handle(parts, delivery, handler, options, lettingGo);
      }
    } catch (error) {
      failed.abort(error);
      throw error;
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: concurrency }, worker));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

async function handle(
  parts: ConsumerParts,
  open: OpenDelivery,
  handler: Handler,
  options: ConsumeOptions,
  lettingGo: AbortSignal,
): Promise<void> {
  try {
    const done = await inHand(run(parts.clock, handler, open, options.handlerTimeoutMs), lettingGo);
    // Otherwise the time to drain is over: the handler goes on by itself, and the ticket goes back.
    if (done !== undefined) await settle(parts, open, done.value, options);
  } finally {
    // Nothing, if it is settled or lost.
    await open.giveBack();
  }
}

type Outcome = { readonly result: unknown } | { readonly failure: unknown };

/** What the handler came to. One that takes too long is aborted, and what it still does counts no more. */
async function run(
  clock: Clock,
  handler: Handler,
  open: OpenDelivery,
  timeoutMs: number | undefined,
): Promise<Outcome> {
  return await new Promise((resolve) => {
    const fail = (failure: unknown): void => resolve({ failure });
    const abort = (): void => {
      const failure = new Error(`The handler of ticket ${open.claim.name.id} took longer than ${timeoutMs} ms.`);
      open.revoke(failure);
      fail(failure);
    };
    const stop = timeoutMs === undefined ? undefined : clock.alarm(timeoutMs, abort);
    Promise.resolve(open.asDelivery())
      .then(handler)
      .then((result) => resolve({ result }), fail)
      .finally(stop);
  });
}

async function settle(
  parts: ConsumerParts,
  open: OpenDelivery,
  outcome: Outcome,
  options: ConsumeOptions,
): Promise<void> {
  // By the handler itself.
  if (await open.hasEnded()) return;
  let failure: unknown;
  try {
    if ("result" in outcome) return await open.ack(outcome.result);
    failure = outcome.failure;
  } catch (error) {
    if (isHoldfastError(error, "CLAIM_LOST")) return;
    // Whether it is committed is not known: the process that gets the ticket next finds out, after a while.
    if (isHoldfastError(error, "OUTCOME_UNKNOWN")) return await tryLater(parts, open, error, options);
    // A result that cannot be recorded is the handler's fault; a disk that is full is not.
    if (isHoldfastError(error) && error.code !== "TOO_LARGE") throw error;
    failure = error;
  }
  const { attempts = attemptsDefault, onError } = options;
  const delivery = open.asDelivery();
  const verdict = onError?.(failure, delivery) ?? "retry";
  try {
    if (await open.hasEnded()) return;
    if (verdict === "fail" || delivery.attempt >= attempts) await open.fail(reasonOf(failure));
    else await open.retry(backoffMs(delivery.attempt, options, parts.random), reasonOf(failure));
  } catch (error) {
    if (!isHoldfastError(error, "CLAIM_LOST")) throw error;
  }
}

/** Whatever the attempt: the next claim looks into the ledger before it gives up. */
async function tryLater(
  parts: ConsumerParts,
  open: OpenDelivery,
  cause: Error,
  options: ConsumeOptions,
): Promise<void> {
  try {
    await open.retry(backoffMs(open.asDelivery().attempt, options, parts.random), cause.message);
  } catch (error) {
    if (!isHoldfastError(error, "CLAIM_LOST")) throw error;
  }
}

/** Doubling from `min` to `max`, between half of it and all of it: tickets that failed together drift apart. */
export function backoffMs(
  attempt: number,
  { backoffMs: limits = backoffDefaultMs }: ConsumeOptions,
  random: Random,
): number {
  const wholeMs = Math.min(limits.max, limits.min * 2 ** Math.max(0, attempt - 1));
  return Math.round(wholeMs * (0.5 + random.fraction() / 2));
}

const reasonLengthMax = 4_000;

/** An error without a name says all in its message. */
function textOf({ name, message }: Error): string {
  return name === "" ? message : `${name}: ${message}`;
}

function reasonOf(error: unknown): string {
  const text = error instanceof Error ? textOf(error) : String(error);
  return text.length <= reasonLengthMax ? text : `${text.slice(0, reasonLengthMax)}…`;
}
