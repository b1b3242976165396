// What becomes of an event between the user's hands and the log, both ways: validation, versions, secrets.
import type { NewEvent } from "../../common.ts";
import type { EventBody, EventHead } from "./stored-event.ts";

/** A body as it is stored. */
export interface StoredBody extends EventBody {
  /** Some of its values are encrypted. Said outside of the data, so that nothing in the data can be taken for it. */
  readonly sealed?: true;
}

/**
 * What only schemas and keys can deal with. A store without them hands it out with the event, as it is stored, and takes it back: so those who have neither can
 * export a log and import it whole.
 */
export type Untranslated = Pick<StoredBody, "version" | "sealed">;

export interface DecodedBody {
  readonly data: unknown;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly untranslated?: Untranslated;
}

export interface EventCodec {
  /** What is stored for an event that has this id. EVENT_INVALID. */
  encode(event: NewEvent, id: string): StoredBody | Promise<StoredBody>;
  /** What a reader gets. At once where it can be: a promise for each event would halve the rate of a scan. EVENT_INVALID. */
  decode(head: Pick<EventHead, "type" | "id">, body: StoredBody): DecodedBody | Promise<DecodedBody>;
}

const noMetadata: Readonly<Record<string, unknown>> = Object.freeze({});

export const plainCodec: EventCodec = {
  encode: (event) => {
    const { data, metadata } = event;
    const body = metadata === undefined ? { data } : { data, metadata };
    const untranslated = findUntranslated(event as Untranslated);
    return untranslated === undefined ? body : { ...body, ...untranslated };
  },
  decode: (_head, body) => {
    const { data, metadata = noMetadata } = body;
    const untranslated = findUntranslated(body);
    return untranslated === undefined ? { data, metadata } : { data, metadata, untranslated };
  },
};

function findUntranslated({ version, sealed }: Untranslated): Untranslated | undefined {
  const isVersioned = Number.isSafeInteger(version) && (version as number) > 1;
  if (!isVersioned && sealed !== true) return undefined;
  return { ...(isVersioned && { version: version as number }), ...(sealed === true && { sealed }) };
}
