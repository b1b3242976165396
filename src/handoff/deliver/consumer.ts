// A consumer: takes deliveries while it runs, a few at a time, and passes each to a handler.
import { isErrorLike, isHoldfastError } from "../../errors.ts";
import { unlessAborted, type LoopSignals } from "../../part/loop.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Random } from "../../ports/random.ts";
import { carriersOf } from "../../telemetry/carrier.ts";
import type { OperationDetails, OperationMessage } from "../../telemetry/operation.ts";
import { trace } from "../../telemetry/trace.ts";
import { attemptsDefault, backoffDefaultMs, type ConsumeOptions, type Handler } from "../model/consume-options.ts";
import type { DeliveryFeed, DeliveryRequest } from "./feed.ts";
import type { OpenDelivery } from "./open-delivery.ts";

/** Runs until it is stopped. Rejects if deliveries can no longer be taken or settled. */
export async function consume(
  feed: DeliveryFeed,
  handler: Handler,
  options: ConsumeOptions,
  signals: LoopSignals,
): Promise<void> {
  const { concurrency = 1, attempts = attemptsDefault, idleMs = Infinity, onDeadLetter, onPause } = options;
  const request: DeliveryRequest = { attempts, waitMs: idleMs, onDeadLetter, onPause };
  const failed = new AbortController();
  const worker = async (): Promise<void> => {
    // Each worker has its own: Node reports many listeners on one signal as a leak.
    const stopping = AbortSignal.any([signals.stopping, failed.signal]);
    const lettingGo = AbortSignal.any([signals.lettingGo]);
    try {
      for (;;) {
        const delivery = await feed.next(request, stopping);
        if (delivery === undefined) return;
        await handle(feed, delivery, handler, options, lettingGo);
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
  feed: DeliveryFeed,
  open: OpenDelivery,
  handler: Handler,
  options: ConsumeOptions,
  lettingGo: AbortSignal,
): Promise<void> {
  try {
    const done = await unlessAborted(run(feed.clock, handler, open, options.handlerTimeoutMs), lettingGo);
    // `done` is undefined if the time to drain has ended: the handler continues on its own, and the
    // ticket returns to the queue.
    if (done !== undefined) await settle(feed, open, done.value, options);
  } finally {
    // Does nothing if the delivery is settled or lost.
    await open.giveBack();
  }
}

type HandleDetails = OperationDetails & Pick<OperationMessage, "location">;
type Outcome = { readonly result: unknown } | { readonly failure: unknown };

/** Runs the handler. If it takes too long, its signal aborts and its delivery refuses further calls. */
async function run(
  clock: Clock,
  handler: Handler,
  open: OpenDelivery,
  timeoutMs: number | undefined,
): Promise<Outcome> {
  return await new Promise((resolve) => {
    const fail = (failure: unknown): void => resolve({ failure });
    const abort = (): void => {
      const failure = new Error(`The handler of ticket ${open.id} took longer than ${timeoutMs} ms.`);
      open.revoke(failure);
      fail(failure);
    };
    const stop = timeoutMs === undefined ? undefined : clock.alarm(timeoutMs, abort);
    const delivery = open.asDelivery();
    const about = (): HandleDetails => {
      const { id, key, attempt, meta } = delivery;
      return { location: open.directory, id, key, attempt, carried: carriersOf([meta]) };
    };
    trace("handoff.handle", about, async () => await handler(delivery))
      .then((result) => resolve({ result }), fail)
      .finally(stop);
  });
}

async function settle(
  feed: DeliveryFeed,
  open: OpenDelivery,
  outcome: Outcome,
  options: ConsumeOptions,
): Promise<void> {
  // The handler settled the delivery.
  if (await open.hasEnded()) return;
  let failure: unknown;
  try {
    if ("result" in outcome) return await open.ack(outcome.result);
    failure = outcome.failure;
  } catch (error) {
    if (isHoldfastError(error, "CLAIM_LOST")) return;
    // It is unknown whether the result was committed. The process that claims the ticket next finds
    // out, after a delay.
    if (isHoldfastError(error, "OUTCOME_UNKNOWN")) return await tryLater(feed, open, error, options);
    // A result that cannot be recorded is the handler's fault; a full disk is not.
    if (isHoldfastError(error) && error.code !== "TOO_LARGE") throw error;
    failure = error;
  }
  const { attempts = attemptsDefault, onError } = options;
  const verdict = onError?.(failure, open.asDelivery()) ?? "retry";
  try {
    if (await open.hasEnded()) return;
    if (verdict === "fail" || open.attempt >= attempts) await open.fail(reasonOf(failure));
    else await open.retry(backoffMs(open.attempt, options, feed.random), reasonOf(failure));
  } catch (error) {
    if (!isHoldfastError(error, "CLAIM_LOST")) throw error;
  }
}

/** Retries even after the last attempt: the next claim checks the ledger before it gives up. */
async function tryLater(feed: DeliveryFeed, open: OpenDelivery, cause: Error, options: ConsumeOptions): Promise<void> {
  try {
    await open.retry(backoffMs(open.attempt, options, feed.random), cause.message);
  } catch (error) {
    if (!isHoldfastError(error, "CLAIM_LOST")) throw error;
  }
}

/**
 * Returns a delay that doubles from `min` to `max`. A random factor between 0.5 and 1 spreads
 * tickets that failed together.
 */
function backoffMs(attempt: number, { backoffMs: limits = backoffDefaultMs }: ConsumeOptions, random: Random): number {
  const wholeMs = Math.min(limits.max, limits.min * 2 ** Math.max(0, attempt - 1));
  return Math.round(wholeMs * (0.5 + random.fraction() / 2));
}

const reasonLengthMax = 4_000;

function textOf({ name, message }: Error): string {
  return name === "" ? message : `${name}: ${message}`;
}

function reasonOf(error: unknown): string {
  const text = isErrorLike(error) ? textOf(error) : String(error);
  return text.length <= reasonLengthMax ? text : `${text.slice(0, reasonLengthMax)}…`;
}
