// One call of a simulated process to the outside: where it parks, and how it may end.

/** A path that a call reads or changes. Calls that touch nothing in common need not be tried in both orders. */
export interface Touch {
  /** A path, or the name of a lock. Touching a path touches everything below it. */
  readonly what: string;
  readonly changes: boolean;
}

/** The touch of a sync: invisible to processes, but relevant to a power cut. */
export const durabilityTouch = "(durability)";
export const durability: Touch = { what: durabilityTouch, changes: true };

/** A kind of failure that the explorer may choose; a scenario limits how often each may happen. */
export type FaultKind = "error" | "lostReply" | "retransmit" | "stale" | "hint" | "outage" | "staleHandle";
/** @deprecated Use `FaultKind`. */
export type Trouble = FaultKind;

export interface CallOutcome<T> {
  /** Empty for the ordinary outcome. */
  readonly label: string;
  readonly trouble?: FaultKind;
  /** Performs it. Returns the answer, or throws the failure, that the process will see. */
  readonly run: () => T;
}

export interface SimCall<T> {
  readonly operation: string;
  /** Paths and values, for people. */
  readonly detail: string;
  readonly touches: readonly Touch[];
  /** Returns the outcomes that are possible now; none while the call must wait. */
  readonly outcomes: () => readonly CallOutcome<T>[];
  /** Takes the ordinary outcome without computing the others. Absent if it may not be possible yet. */
  readonly ordinary?: () => T;
  /** True if its answer can no longer change, whatever others do. Then it need not be tried at every moment. */
  readonly isSettled?: () => boolean;
  /** Set for a sleep: when it may continue, in simulated time. */
  readonly dueMs?: number;
  /**
   * Performs the first half of the call: what a process may leave if it is killed meanwhile. Absent if the call
   * happens in one step.
   */
  readonly half?: (() => void) | undefined;
  /** True for a call in the background. A run is over when only such calls are left. */
  readonly background?: boolean;
}

/** How a simulated process makes its calls: at once during the setup of a scenario, one by one under the explorer. */
export type Park = <T>(call: SimCall<T>) => Promise<T>;

/** Takes the ordinary outcome at once. */
export const parkNever: Park = async <T>(call: SimCall<T>): Promise<T> => {
  if (call.ordinary !== undefined) return call.ordinary();
  const [ordinary] = call.outcomes();
  if (ordinary === undefined) throw new Error(`${call.operation} ${call.detail} would wait for ever`);
  return ordinary.run();
};
