// An event store in memory: the same code on a disk that is none, for tests.
import type { NewEvent } from "../common.ts";
import { createMemoryHost } from "../ports/memory/host.ts";
import { createMemoryPorts } from "../ports/memory/ports.ts";
import type { Clock } from "../ports/clock.ts";
import type { Random } from "../ports/random.ts";
import { createCodec } from "./create-codec.ts";
import type { EventStore, EventStoreOptions } from "./event-store.ts";
import { LogEventStore } from "./log-store.ts";

/** What even a world in memory takes from the real one. */
export interface MemoryBase {
  readonly clock: Clock;
  readonly random: Random;
  readonly warn: (message: string) => void;
}

export function createMemoryEvents<E extends NewEvent>(
  base: MemoryBase,
  options: Pick<EventStoreOptions<E>, "schemas" | "keys">,
): EventStore<E> {
  const { clock, random, warn } = base;
  const ports = createMemoryPorts({ clock, random, host: createMemoryHost({ clock, random }, warn) });
  return new LogEventStore<E>({ ports, directory: "/events", codec: createCodec(options, ports) }, options);
}
