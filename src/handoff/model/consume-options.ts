// The options of a consumer, and their check. A mistake throws a TypeError or RangeError before
// anything is claimed.
import type { Cancel } from "../../common.ts";
import { checkOptions } from "../../format/known-options.ts";
import type { Delivery } from "./delivery.ts";
import type { DeadLetter } from "./handoff.ts";

/** Options of `consume`. */
export interface ConsumeOptions extends Cancel {
  /** How many tickets are processed at the same time. Default 1. */
  concurrency?: number | undefined;
  /**
   * After this many attempts a ticket becomes a dead letter. The claim counts the attempt, so a
   * ticket that kills its workers ends there too. Default 5.
   */
  attempts?: number | undefined;
  /**
   * Delay before a retry: doubles from `min` to `max`, with jitter. Default `{ min: 1_000, max:
   * 3_600_000 }`.
   */
  backoffMs?: { min: number; max: number } | undefined;
  /** After this time the signal of the delivery aborts and the ticket is retried. Default: no limit. */
  handlerTimeoutMs?: number | undefined;
  /** Decides what an error of the handler means. Default: `retry` until `attempts` is reached. */
  onError?: ((error: unknown, delivery: Delivery) => "retry" | "fail") | undefined;
  /**
   * Ends the consumer when there was nothing to claim for this long; 0 ends it as soon as the queue
   * is empty. Default: never.
   */
  idleMs?: number | undefined;
  /**
   * Called after a ticket became a dead letter: by its handler, by its last attempt, or before any
   * handler saw it, because it is damaged, expired, does not match its manifest or was lost too
   * often. If it throws, the consumer ends with that error.
   */
  onDeadLetter?: ((ticket: DeadLetter) => void) | undefined;
  /**
   * Called once for each pause that keeps this consumer from claiming a ticket, with the reason
   * that was passed to `pause`.
   */
  onPause?: ((reason: string | undefined) => void) | undefined;
}

/**
 * Processes one ticket. If the promise resolves, the ticket is completed with its value. If it
 * rejects, the ticket is retried, unless `onError` decides otherwise.
 */
export type Handler = (delivery: Delivery) => Promise<unknown>;

export const attemptsDefault = 5;
export const backoffDefaultMs = { min: 1_000, max: 3_600_000 };

/** Throws a TypeError or RangeError before anything is taken. */
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
