// The codec that knows schemas: events are validated and numbered when they are appended, and lifted to the current version when they are read.
import type { NewEvent } from "../../common.ts";
import { plainCodec, type DecodedBody, type EventCodec, type StoredBody } from "./codec.ts";
import type { EventHead } from "./stored-event.ts";
import type { EventSchemas, StandardSchema } from "./schema.ts";
import { unreadable } from "./unreadable.ts";
import { validate } from "./validation.ts";

interface Entry {
  readonly schema: StandardSchema | undefined;
  readonly version: number;
  readonly upcast: ((data: unknown, fromVersion: number) => unknown) | undefined;
}

export class SchemaCodec implements EventCodec {
  /** A map, because types are the user's: "constructor" is one. */
  readonly #entries: ReadonlyMap<string, Entry>;

  constructor(schemas: EventSchemas<NewEvent>) {
    this.#entries = new Map(Object.entries(schemas).flatMap(([type, entry]) => (entry ? [checked(type, entry)] : [])));
  }

  encode(event: NewEvent, id: string): StoredBody | Promise<StoredBody> {
    const { type, data, metadata } = event;
    const entry = this.#entries.get(type);
    if (entry === undefined) return plainCodec.encode(event, id);
    const store = (value: unknown): StoredBody => ({
      data: value,
      ...(metadata !== undefined && { metadata }),
      ...(entry.version > 1 && { version: entry.version }),
    });
    const value = entry.schema === undefined ? data : validate(type, entry.schema, data);
    return value instanceof Promise ? value.then(store) : store(value);
  }

  decode(head: Pick<EventHead, "type" | "id">, body: StoredBody): DecodedBody | Promise<DecodedBody> {
    const entry = this.#entries.get(head.type);
    if (entry === undefined) return plainCodec.decode(head, body);
    const { version = 1, ...rest } = body;
    return plainCodec.decode(head, version === entry.version ? rest : { ...rest, data: lift(head, entry, body) });
  }
}

function lift(head: Pick<EventHead, "type" | "id">, { version, upcast }: Entry, body: StoredBody): unknown {
  const { data, version: from = 1 } = body;
  // Guessing what a newer program meant would be worse than stopping. Not NEWER_FORMAT: that is about our files, and a newer Holdfast would not help here.
  if (from > version)
    throw unreadable(head, [
      `its data has version ${from}, and this program knows only ${version}: it was written by a newer one, so upgrade this one`,
    ]);
  if (upcast === undefined)
    throw unreadable(head, [`its data has version ${from}, and there is no upcast to version ${version}`]);
  try {
    // A copy: the same line may be read again, and must then be what it was.
    return upcast(structuredClone(data), from);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw unreadable(head, [`its upcast from version ${from} to ${version} failed: ${why}`], cause);
  }
}

/** Mistakes in a schema are told when the store is opened, not at the first event that meets them. */
function checked(type: string, entry: NonNullable<EventSchemas<NewEvent>[string]>): [string, Entry] {
  const { schema, version = 1, upcast } = entry;
  if (!Number.isSafeInteger(version) || version < 1)
    throw new RangeError(`The version of the type ${JSON.stringify(type)} is a whole number from 1, not ${version}.`);
  if (schema !== undefined && typeof schema["~standard"]?.validate !== "function")
    throw new TypeError(`The schema of the type ${JSON.stringify(type)} is no Standard Schema.`);
  if (upcast !== undefined && typeof upcast !== "function")
    throw new TypeError(`The upcast of the type ${JSON.stringify(type)} is no function.`);
  return [type, { schema, version, upcast }];
}
