// Subscriptions: all matching events after a position, in order, each once, and then new ones as
// they are appended.
import type { Cancel, NewEvent, SequencedEvent } from "../../common.ts";
import type { EventStore } from "../model/event-store.ts";
import type { LogAccess } from "../log/log-access.ts";
import { itemsOf, type Matching, type Query } from "../model/query.ts";

export interface SubscribeOptions extends Cancel {
  /** Exclusive. Default 0. */
  after?: number | undefined;
}

/**
 * Never skips or repeats an event: each round reads up to a head, and the next round begins there. Aborting the
 * signal is the only way to end the iteration from outside. It then ends without an error, like `break`.
 */
export function subscribe<E extends NewEvent, const Q extends Query<E["type"]>>(
  store: Pick<EventStore<E>, "read">,
  access: Pick<LogAccess, "waitBeyond">,
  query: Q,
  { after = 0, signal }: SubscribeOptions = {},
): AsyncGenerator<SequencedEvent<Matching<E, Q>>, void, undefined> {
  // Throw for a wrong argument at the call, not at the first event.
  itemsOf(query);
  if (!(Number.isSafeInteger(after) && after >= 0))
    throw new RangeError(`after must be a whole number from 0, not ${after}.`);
  return follow(store, access, query, after, signal);
}

async function* follow<E extends NewEvent, const Q extends Query<E["type"]>>(
  store: Pick<EventStore<E>, "read">,
  access: Pick<LogAccess, "waitBeyond">,
  query: Q,
  after: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<SequencedEvent<Matching<E, Q>>, void, undefined> {
  let position = after;
  try {
    while (!signal?.aborted) {
      const head = await access.waitBeyond(position, { signal });
      for await (const event of store.read(query, { after: position, upTo: head, signal })) {
        if (signal?.aborted) return;
        yield event;
      }
      // Also skips events that did not match: they are not read again.
      position = head;
    }
  } catch (error) {
    if (!signal?.aborted || error !== signal.reason) throw error;
  }
}
