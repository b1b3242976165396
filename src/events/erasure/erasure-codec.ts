// The codec with keys: seals personal values before they are stored, and opens them for readers
// while the key exists.
import type { NewEvent } from "../../common.ts";
import { isHoldfastError } from "../../errors.ts";
import { plainCodec, unreadable, type DecodedBody, type EventCodec, type StoredBody } from "../model/codec.ts";
import type { EventHead } from "../model/stored-event.ts";
import { jsonOf, invalidEvent } from "../model/new-event.ts";
import { SchemaCodec } from "../model/schema-codec.ts";
import type { EventStoreOptions, SubjectKeys } from "../model/event-store.ts";
import { KeyDemand } from "./key-demand.ts";
import { unwrapPersonal, type Marks } from "./marks.ts";
import { openTree, sealTree, subjectsIn, type SubjectKeyMap } from "./sealed-body.ts";

/** Returns the codec for the options of a store. Throws a TypeError or RangeError for unusable schemas. */
export function createCodec<E extends NewEvent>({
  schemas,
  keys,
}: Pick<EventStoreOptions<E>, "schemas" | "keys">): EventCodec {
  const codec = schemas === undefined ? plainCodec : new SchemaCodec(schemas);
  // The codec with keys wraps the one with schemas: schemas see clear text.
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
    const data = unwrapPersonal(event.data, ["data"], marks);
    const metadata = unwrapPersonal(event.metadata, ["metadata"], marks) as NewEvent["metadata"];
    if (marks.size === 0) return this.#inner.encode(event, id);
    // Pass on neither `version` nor `sealed` of the event: a body that is already sealed would be sealed twice.
    return this.#seal({ type, id }, this.#inner.encode({ type, data, metadata }, id), marks);
  }

  decode(head: Pick<EventHead, "type" | "id">, body: StoredBody): DecodedBody | Promise<DecodedBody> {
    return body.sealed === true ? this.#open(head, body) : this.#inner.decode(head, body);
  }

  async #seal(
    head: Pick<EventHead, "type" | "id">,
    encoded: StoredBody | Promise<StoredBody>,
    marks: Marks,
  ): Promise<StoredBody> {
    const body = await encoded;
    jsonOf(head.type, body);
    const keys = await this.#getKeys(head.type, marks);
    const { data, metadata, ...rest } = JSON.parse(JSON.stringify(body)) as StoredBody;
    const sealed = {
      data: sealTree(data, head, ["data"], marks, keys),
      ...(metadata !== undefined && { metadata: sealTree(metadata, head, ["metadata"], marks, keys) as object }),
      ...rest,
      sealed: true as const,
    };
    // The schema or a downcast moved a marked value. It would be stored in clear text elsewhere in the event.
    const missing = [...marks.values()].map(
      ({ path }) => `the personal value at ${path.join(".")} is missing after validation`,
    );
    if (missing.length === 0) return sealed as StoredBody;
    throw invalidEvent(head.type, [
      ...missing,
      "it is undefined, or the schema (or `downcast`) has moved or removed it, or changed it inside a list",
    ]);
  }

  async #getKeys(type: string, marks: Marks): Promise<SubjectKeyMap> {
    const subjects = [...new Set([...marks.values()].map(({ subject }) => subject))];
    try {
      return new Map(
        await Promise.all(subjects.map(async (subject) => [subject, await this.#demand.get(subject)] as const)),
      );
    } catch (error) {
      // Errors of the keys do not name the type of the event, so add it.
      throw isHoldfastError(error, "EVENT_INVALID") ? invalidEvent(type, error.issues, error) : error;
    }
  }

  async #open(head: Pick<EventHead, "type" | "id">, body: StoredBody): Promise<DecodedBody> {
    const { data, metadata, sealed: _, ...rest } = body;
    const keys = new Map<string, Uint8Array>();
    // Look up the key at each read: once it is forgotten, no later read may use it.
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
