// A consumer: takes deliveries as long as it runs, a few at a time, and hands each to a handler.
import type { Cancel } from "../../common.ts";
import { isHoldfastError } from "../../errors.ts";
import { inHand, type LoopSignals } from "../../part/loop.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Random } from "../../ports/random.ts";
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

/** Runs until it is stopped. Rejects when deliveries cannot be taken any more. */
export async function consume(
  parts: ConsumerParts,
  handler: Handler,
  options: ConsumeOptions,
  signals: LoopSignals,
): Promise<void> {
  const { concurrency = 1, attempts = attemptsDefault } = options;
  const failed = new AbortController();
  const stopping = AbortSignal.any([signals.stopping, failed.signal]);
  const worker = async (): Promise<void> => {
    try {
      for (;;) {
        const delivery = await parts.next(attempts, stopping);
        if (delivery === undefined) return;
        await handle(parts, delivery, handler, options, signals);
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
  { lettingGo }: LoopSignals,
): Promise<void> {
  const delivery = open.asDelivery();
  const { attempts = attemptsDefault, handlerTimeoutMs, onError } = options;
  try {
    const work = limited(parts.clock, handler(delivery), delivery, handlerTimeoutMs);
    const done = await inHand(work, lettingGo);
    // The time to drain is over: the handler goes on by itself, and the ticket goes back.
    if (done === undefined) await open.giveBack();
    else if (!open.isSettled) await open.ack(done.value);
  } catch (error) {
    if (open.isSettled || isLost(error) || open.signal.aborted) return;
    const isLast = delivery.attempt >= attempts;
    const verdict = onError?.(error, delivery) ?? "retry";
    const settling =
      verdict === "fail" || isLast
        ? open.fail(reasonOf(error))
        : open.retry(backoffMs(delivery.attempt, options, parts.random), reasonOf(error));
    await settling.catch((failure: unknown) => {
      if (!isLost(failure)) throw failure;
    });
  }
}

function isLost(error: unknown): boolean {
  return isHoldfastError(error, "CLAIM_LOST", "LOCK_LOST");
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

async function limited(
  clock: Clock,
  work: Promise<unknown>,
  delivery: Delivery,
  timeoutMs: number | undefined,
): Promise<unknown> {
  if (timeoutMs === undefined) return await work;
  return await new Promise((resolve, reject) => {
    const stop = clock.alarm(timeoutMs, () => {
      reject(new Error(`The handler of ticket ${delivery.id} took longer than ${timeoutMs} ms.`));
    });
    work.then(resolve, reject).finally(stop);
  });
}

const reasonLengthMax = 4_000;

function reasonOf(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return text.length <= reasonLengthMax ? text : `${text.slice(0, reasonLengthMax)}…`;
}
