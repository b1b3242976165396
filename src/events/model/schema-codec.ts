// The codec with schemas: validates events when they are appended, and lifts them to the current
// version when they are read.
import type { NewEvent } from "../../common.ts";
import { plainCodec, type DecodedBody, type EventCodec, type StoredBody, unreadable } from "./codec.ts";
import type { EventHead } from "./stored-event.ts";
import { type EventSchemas, type StandardSchema, validate } from "./schema.ts";

interface Entry {
  readonly schema: StandardSchema | undefined;
  readonly version: number;
  readonly upcast: ((data: unknown, fromVersion: number) => unknown) | undefined;
}

export class SchemaCodec implements EventCodec {
  /** A map, because a user may name a type "constructor". */
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
  // Not NEWER_FORMAT: that is for files of a newer Holdfast, and an upgrade of Holdfast would not
  // help here.
  if (from > version)
    throw unreadable(head, [
      `its data has version ${from}, and this program knows only ${version}: a newer program wrote it, so upgrade this one`,
    ]);
  if (upcast === undefined)
    throw unreadable(head, [`its data has version ${from}, and there is no upcast to version ${version}`]);
  try {
    // A copy: the same line may be read again, and must not have changed.
    return upcast(structuredClone(data), from);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw unreadable(head, [`its upcast from version ${from} to ${version} failed: ${why}`], cause);
  }
}

/** Throws when the store is opened, and not at the first event of the type. */
function checked(type: string, entry: NonNullable<EventSchemas<NewEvent>[string]>): [string, Entry] {
  const { schema, version = 1, upcast } = entry;
  if (!Number.isSafeInteger(version) || version < 1)
    throw new RangeError(`The version of the type ${JSON.stringify(type)} is a whole number from 1, not ${version}.`);
  if (schema !== undefined && typeof schema["~standard"]?.validate !== "function")
    throw new TypeError(`The schema of the type ${JSON.stringify(type)} is not a Standard Schema.`);
  if (upcast !== undefined && typeof upcast !== "function")
    throw new TypeError(`The upcast of the type ${JSON.stringify(type)} is not a function.`);
  return [type, { schema, version, upcast }];
}
