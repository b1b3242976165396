// The codec with schemas: validates events when they are appended, and upcasts them to the current
// version when they are read.
import { types } from "node:util";
import { messageOf } from "../../errors.ts";
import type { NewEvent } from "../../common.ts";
import { plainCodec, type DecodedBody, type EventCodec, type StoredBody, unreadable } from "./codec.ts";
import type { EventHead } from "./stored-event.ts";
import { invalidEvent } from "./new-event.ts";
import { type EventSchemas, type StandardSchema, validate } from "./schema.ts";

interface Entry {
  readonly schema: StandardSchema | undefined;
  readonly version: number;
  readonly upcast: ((data: unknown, fromVersion: number) => unknown) | undefined;
  readonly writes: { readonly version: number; readonly downcast: (data: never) => unknown } | undefined;
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
    const version = entry.writes?.version ?? entry.version;
    const store = (value: unknown): StoredBody => ({
      data: entry.writes === undefined ? value : lower(type, entry.writes, value),
      ...(metadata !== undefined && { metadata }),
      ...(version > 1 && { version }),
    });
    const value = entry.schema === undefined ? data : validate(type, entry.schema, data);
    return types.isPromise(value) ? value.then(store) : store(value);
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
  // Not NEWER_FORMAT: that code means files of a newer Holdfast, and upgrading Holdfast would not help here.
  if (from > version)
    throw unreadable(head, [
      `its data has version ${from}, and this program knows only ${version}: a newer program wrote it, so upgrade this one`,
    ]);
  if (upcast === undefined)
    throw unreadable(head, [`its data has version ${from}, and there is no upcast to version ${version}`]);
  try {
    // A copy, because `upcast` may change it and the same line may be read again.
    return upcast(structuredClone(data), from);
  } catch (cause) {
    const why = messageOf(cause);
    throw unreadable(head, [`its upcast from version ${from} to ${version} failed: ${why}`], cause);
  }
}

/** Throws EVENT_INVALID if `downcast` throws: then nothing is stored. */
function lower(type: string, { version, downcast }: NonNullable<Entry["writes"]>, value: unknown): unknown {
  try {
    // Safe, because the value has the type of the entry.
    return downcast(value as never);
  } catch (cause) {
    throw invalidEvent(type, [`its downcast to version ${version} failed: ${messageOf(cause)}`], cause);
  }
}

/** Throws when the store is opened, not at the first event of the type. */
function checked(type: string, entry: NonNullable<EventSchemas<NewEvent>[string]>): [string, Entry] {
  const { schema, version = 1, upcast, writes } = entry;
  if (!Number.isSafeInteger(version) || version < 1)
    throw new RangeError(
      `The version of the type ${JSON.stringify(type)} must be a whole number from 1, not ${version}.`,
    );
  if (schema !== undefined && typeof schema["~standard"]?.validate !== "function")
    throw new TypeError(`The schema of the type ${JSON.stringify(type)} is not a Standard Schema.`);
  if (upcast !== undefined && typeof upcast !== "function")
    throw new TypeError(`The upcast of the type ${JSON.stringify(type)} is not a function.`);
  if (writes !== undefined) checkWrites(type, version, { upcast, writes });
  return [type, { schema, version, upcast, writes }];
}

function checkWrites(type: string, version: number, { upcast, writes }: Pick<Entry, "upcast" | "writes">): void {
  if (typeof writes?.downcast !== "function")
    throw new TypeError(`\`writes\` of the type ${JSON.stringify(type)} needs a version and a function \`downcast\`.`);
  if (!(Number.isSafeInteger(writes.version) && writes.version >= 1 && writes.version < version))
    throw new RangeError(
      `\`writes\` of the type ${JSON.stringify(type)} must be a version from 1 to ${version - 1}, not ${writes.version}.`,
    );
  // Otherwise this program could not read the events that it has written.
  if (upcast === undefined) throw new TypeError(`\`writes\` of the type ${JSON.stringify(type)} needs \`upcast\`.`);
}
