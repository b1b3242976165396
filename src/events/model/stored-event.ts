// An event as the log stores it: a head that indexes need, and a body that only readers need.

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
