// The way of an event into the log and back, as the options of a store ask for it.
import type { NewEvent } from "../../common.ts";
import { plainCodec, type EventCodec } from "./codec.ts";
import { ErasureCodec } from "../erasure/erasure-codec.ts";
import type { EventStoreOptions } from "./event-store.ts";
import { SchemaCodec } from "./schema-codec.ts";

/** TypeError, RangeError for schemas that cannot be used. */
export function createCodec<E extends NewEvent>({
  schemas,
  keys,
}: Pick<EventStoreOptions<E>, "schemas" | "keys">): EventCodec {
  const codec = schemas === undefined ? plainCodec : new SchemaCodec(schemas);
  // Outside of the schemas: they are for what users see, and users see clear text.
  return keys === undefined ? codec : new ErasureCodec(codec, keys);
}
