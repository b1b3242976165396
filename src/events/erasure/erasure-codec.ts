// The codec with keys: it seals personal values before they are stored, and opens them for readers
// while the key is there.
import type { NewEvent } from "../../common.ts";
import { isHoldfastError } from "../../errors.ts";
import { plainCodec, unreadable, type DecodedBody, type EventCodec, type StoredBody } from "../model/codec.ts";
import type { EventHead } from "../model/stored-event.ts";
import { jsonOf, invalid } from "../model/new-event.ts";
import { SchemaCodec } from "../model/schema-codec.ts";
import type { EventStoreOptions, SubjectKeys } from "../model/event-store.ts";
import { KeyDemand } from "./key-demand.ts";
import { takeMarks, type Marks } from "./marks.ts";
import { openTree, sealTree, subjectsIn, type SubjectKeyMap } from "./sealed-body.ts";

/**
 * The codec that the options of a store ask for. TypeError, RangeError for schemas that cannot be
 * used.
 */
export function createCodec<E extends NewEvent>({
  schemas,
  keys,
}: Pick<EventStoreOptions<E>, "schemas" | "keys">): EventCodec {
  const codec = schemas === undefined ? plainCodec : new SchemaCodec(schemas);
  // Keys outside, schemas inside: schemas see clear text.
  return keys === undefined ? codec : new ErasureCodec(codec, keys);
}

class ErasureCodec implements EventCodec {
  readonly #inner: EventCodec;
  readonly #keys: SubjectKeys;
  readonly #demand: KeyDemand;

  constructor(inner: EventCodec, keys: SubjectKeys) {
    this.#inner = inner;
    this.#keys = keys;
    this.#demand = new KeyDemand(keys);
  }

  encode(event: NewEvent, id: string): StoredBody | Promise<StoredBody> {
    const marks: Marks = new Map();
    const { type } = event;
    const data = takeMarks(event.data, ["data"], marks);
    const metadata = takeMarks(event.metadata, ["metadata"], marks) as NewEvent["metadata"];
    if (marks.size === 0) return this.#inner.encode(event, id);
    // Without `version` and `sealed` of the event: a body that is sealed already would be sealed
    // twice.
    return this.#seal({ type, id }, this.#inner.encode({ type, data, metadata }, id), marks);
  }

  decode(head: Pick<EventHead, "type" | "id">, body: StoredBody): DecodedBody | Promise<DecodedBody> {
    return body.sealed === true ? this.#open(head, body) : this.#inner.decode(head, body);
  }

  async #seal(
    place: Pick<EventHead, "type" | "id">,
    encoded: StoredBody | Promise<StoredBody>,
    marks: Marks,
  ): Promise<StoredBody> {
    const body = await encoded;
    jsonOf(place.type, body);
    const keys = await this.#getKeys(place.type, marks);
    const { data, metadata, ...rest } = JSON.parse(JSON.stringify(body)) as StoredBody;
    const sealed = {
      data: sealTree(data, place, ["data"], marks, keys),
      ...(metadata !== undefined && { metadata: sealTree(metadata, place, ["metadata"], marks, keys) as object }),
      ...rest,
      sealed: true as const,
    };
    // A mark that was not found: the schema has moved the value, and it would be stored in clear
    // elsewhere.
    const missing = [...marks.values()].map(
      ({ path }) => `the personal value at ${path.join(".")} is missing after validation`,
    );
    if (missing.length === 0) return sealed as StoredBody;
    throw invalid(place.type, [
      ...missing,
      "it is undefined, or the schema has moved or removed it, or changed it inside a list",
    ]);
  }

  async #getKeys(type: string, marks: Marks): Promise<SubjectKeyMap> {
    const subjects = [...new Set([...marks.values()].map(({ subject }) => subject))];
    try {
      return new Map(
        await Promise.all(subjects.map(async (subject) => [subject, await this.#demand.get(subject)] as const)),
      );
    } catch (error) {
      // The keys do not know the type of the event.
      throw isHoldfastError(error, "EVENT_INVALID") ? invalid(type, error.issues, error) : error;
    }
  }

  async #open(head: Pick<EventHead, "type" | "id">, body: StoredBody): Promise<DecodedBody> {
    const { data, metadata, sealed: _, ...rest } = body;
    const keys = new Map<string, Uint8Array>();
    // At each read: a key that was forgotten is gone for every read that begins after that.
    for (const subject of checked(head, () => subjectsIn([data, metadata]))) {
      const key = await this.#keys.find(subject);
      if (key !== undefined) keys.set(subject, key);
    }
    const opened = (part: unknown, name: string): unknown => checked(head, () => openTree(part, head, [name], keys));
    const clear: StoredBody = { ...rest, data: opened(data, "data") };
    if (metadata === undefined) return await this.#inner.decode(head, clear);
    return await this.#inner.decode(head, { ...clear, metadata: opened(metadata, "metadata") as typeof metadata });
  }
}

function checked<T>(head: Pick<EventHead, "type" | "id">, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    const issue = "a personal value in it was altered, or was made for another event (its id or type was changed)";
    throw unreadable(head, [issue], cause);
  }
}
