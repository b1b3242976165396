// An event as the log stores it: a head that indexes need, and a body that only readers need.
import { isDeepStrictEqual } from "node:util";
import { traceKey } from "../../telemetry/carrier.ts";

/** The part of an event that an index needs. */
export interface EventHead {
  readonly type: string;
  readonly tags: readonly string[];
  readonly id: string;
  /** True if the caller chose the id, and may append the event again with it. */
  readonly given?: true;
}

/** The part of an event that only readers need. */
export interface EventBody {
  readonly data: unknown;
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** The schema version that wrote `data`. Absent: 1. */
  readonly version?: number;
}

/**
 * True if an event that is appended again with its id is the same. An event without metadata reads as one with empty
 * metadata. Its trace is not compared: a repeated call is another operation.
 */
export function isSameBody(one: EventBody, other: EventBody): boolean {
  return isDeepStrictEqual(comparable(one), comparable(other));
}

function comparable({ metadata, ...body }: EventBody): unknown {
  const { [traceKey]: _trace, ...compared } = metadata ?? {};
  return { ...body, metadata: compared };
}
