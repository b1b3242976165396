// What becomes of an event between the user's hands and the log, both ways: validation, versions, secrets.
import type { NewEvent } from "../common.ts";
import type { EventBody } from "./log/line.ts";

export interface DecodedBody {
  readonly data: unknown;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface EventCodec {
  /** What is stored for an event. EVENT_INVALID. */
  encode(event: NewEvent): EventBody | Promise<EventBody>;
  /** What a reader gets. At once where it can be: a promise for each event would halve the rate of a scan. */
  decode(type: string, body: EventBody): DecodedBody | Promise<DecodedBody>;
}

const noMetadata: Readonly<Record<string, unknown>> = Object.freeze({});

export const plainCodec: EventCodec = {
  encode: ({ data, metadata }) => (metadata === undefined ? { data } : { data, metadata }),
  decode: (_type, { data, metadata = noMetadata }) => ({ data, metadata }),
};
