// The way of an event into the log and back, as the options of a store ask for it.
import type { NewEvent } from "../common.ts";
import type { Ports } from "../ports/ports.ts";
import { plainCodec, type EventCodec } from "./codec.ts";
import type { EventStoreOptions } from "./event-store.ts";

export function createCodec<E extends NewEvent>(
  _options: Pick<EventStoreOptions<E>, "schemas" | "keys">,
  _ports: Ports,
): EventCodec {
  return plainCodec;
}
