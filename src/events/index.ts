// The subpath "holdfast/events": a DCB event store that many processes and machines append to at once.
import type { NewEvent } from "../common.ts";
import { nodeMemoryBase, openNodePorts } from "../ports/node/ports.ts";
import { directoryOf } from "../ports/node/location.ts";
import { createCodec } from "./create-codec.ts";
import type { EventStore, EventStoreOptions } from "./event-store.ts";
import { givenOn, type Given } from "./decide/given.ts";
import { LogEventStore } from "./log-store.ts";
import { createMemoryEvents } from "./memory.ts";

export type { Cancel, NewEvent, Running, SequencedEvent, Sequencing, VerifyOptions, VerifyReport } from "../common.ts";
export type * from "./event-store.ts";
export { decide, type Decided, type DecideOptions, type Decision, type ResultOf } from "./decide/decide.ts";
export type { Checked, Given, Outcome } from "./decide/given.ts";
export {
  model,
  modelsOf,
  type DecisionModel,
  type ModelDefinition,
  type Models,
  type StatesOf,
} from "./decide/model.ts";
export type { Matching, Query, QueryItem } from "./query.ts";
export type { EventSchemas, StandardSchema } from "./schema.ts";
export type { SubjectKeys } from "./subject-keys.ts";

/** Opens the log in `directory`, making it if it is not there. */
export async function openEvents<E extends NewEvent = NewEvent>(
  directory: string | URL,
  options: EventStoreOptions<E> = {},
): Promise<EventStore<E>> {
  const path = directoryOf(directory);
  const ports = await openNodePorts(path);
  return await new LogEventStore<E>({ ports, directory: path, codec: createCodec(options, ports) }, options).open();
}

/** The same contract, in memory, for tests. */
export function memoryEvents<E extends NewEvent = NewEvent>(
  options: Pick<EventStoreOptions<E>, "schemas" | "keys"> = {},
): EventStore<E> {
  return createMemoryEvents<E>(nodeMemoryBase, options);
}

/** Given, when, then: what has happened before; on a store of your own when it needs schemas: `given([…], memoryEvents({ schemas }))`. */
export function given<E extends NewEvent = NewEvent>(
  events: readonly E[] = [],
  store: EventStore<E> = memoryEvents<E>(),
): Given<E> {
  return givenOn(events, store);
}
