// Codecs translate events between a caller and the log, in both directions: schemas, versions,
// keys.
import type { NewEvent } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import type { EventBody, EventHead } from "./stored-event.ts";

/** A body as stored. */
export interface StoredBody extends EventBody {
  /** True if some values are encrypted. Stored outside `data`, so that no user data can be mistaken for it. */
  readonly sealed?: true;
}

/**
 * Fields that only schemas and keys understand. A store without them returns these fields as stored, and accepts them
 * back. A program without schemas and keys can therefore export a log and import it whole.
 */
export type Untranslated = Pick<StoredBody, "version" | "sealed">;

export interface DecodedBody {
  readonly data: unknown;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly untranslated?: Untranslated;
}

export interface EventCodec {
  /** Returns the stored body of an event with this id. Throws EVENT_INVALID. */
  encode(event: NewEvent, id: string): StoredBody | Promise<StoredBody>;
  /**
   * Returns the event as readers get it. Returns a promise only if it must: one per event would halve the rate of a
   * scan. Throws EVENT_INVALID.
   */
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

/** Returns EVENT_INVALID for a stored event that this program cannot decode. */
export function unreadable(
  { type, id }: Pick<EventHead, "type" | "id">,
  issues: readonly string[],
  cause?: unknown,
): Error {
  const message = `The event ${id} of type ${JSON.stringify(type)} cannot be read: ${issues.join("; ")}.`;
  return holdfastError("EVENT_INVALID", message, { type, issues }, cause);
}
