// An event as the log stores it: a head that an index needs, and a body that only readers need.

/** The part of an event that an index needs. */
export interface EventHead {
  readonly type: string;
  readonly tags: readonly string[];
  readonly id: string;
  /** The caller chose the id, and may append the event again with it. */
  readonly given?: true;
}

/** The part of an event that only readers need. */
export interface EventBody {
  readonly data: unknown;
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** The version of the schema that `data` was written by. Absent: 1. */
  readonly version?: number;
}
