// Codecs: what an event goes through between a caller and the log, both ways (schemas, versions,
// keys).
import type { NewEvent } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import type { EventBody, EventHead } from "./stored-event.ts";

/** A body as it is stored. */
export interface StoredBody extends EventBody {
  /**
   * Some of its values are encrypted. Outside of `data`, so that no data of a user can be taken for
   * it.
   */
  readonly sealed?: true;
}

/**
 * What only schemas and keys understand. A store without them gives it out with the event as it is
 * stored, and takes it back, so that a program that has neither can export a log and import it
 * whole.
 */
export type Untranslated = Pick<StoredBody, "version" | "sealed">;

export interface DecodedBody {
  readonly data: unknown;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly untranslated?: Untranslated;
}

export interface EventCodec {
  /** The stored body of an event with this id. EVENT_INVALID. */
  encode(event: NewEvent, id: string): StoredBody | Promise<StoredBody>;
  /**
   * What a reader gets. Without a promise where possible: one for each event would halve the rate
   * of a scan. EVENT_INVALID.
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

/** EVENT_INVALID for an event that is stored, and that this program cannot decode. */
export function unreadable(
  { type, id }: Pick<EventHead, "type" | "id">,
  issues: readonly string[],
  cause?: unknown,
): Error {
  const message = `The event ${id} of type ${JSON.stringify(type)} cannot be read: ${issues.join("; ")}.`;
  return holdfastError("EVENT_INVALID", message, { type, issues }, cause);
}
