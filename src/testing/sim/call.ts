// One call of a simulated process to the outside: where it parks, and the ways in which it may end.

/**
 * What a call looks at or changes, so that calls which do not touch each other need not be tried in
 * both orders.
 */
export interface Touch {
  /** A path, or the name of a lock. Touching a path touches everything below it. */
  readonly what: string;
  readonly changes: boolean;
}

/** What a sync touches: nothing that a process can see, everything that a power cut can take. */
export const durabilityTouch = "(durability)";
export const durability: Touch = { what: durabilityTouch, changes: true };

/** Which kind of trouble an outcome stands for; a scenario says how much of each it wants. */
export type Trouble = "error" | "lostReply" | "retransmit" | "stale" | "hint" | "outage" | "staleHandle";

export interface Outcome<T> {
  /** Empty for the ordinary one. */
  readonly label: string;
  readonly trouble?: Trouble;
  /** Does it, and gives the answer or throws the failure that the process will see. */
  readonly run: () => T;
}

export interface Call<T> {
  readonly operation: string;
  /** For people: paths and values. */
  readonly detail: string;
  readonly touches: readonly Touch[];
  /** What may happen if it went on now; empty while it has to wait. */
  readonly outcomes: () => readonly Outcome<T>[];
  /** Takes the ordinary outcome, without a look at the others; absent where none may be open yet. */
  readonly ordinary?: () => T;
  /**
   * Whether its answer can no longer change, whatever others do: then it need not be tried at every
   * moment.
   */
  readonly isSettled?: () => boolean;
  /** Set for a sleep: it may go on when the simulated time has come. */
  readonly dueMs?: number;
  /**
   * Does the first half of it: what a process may leave that is killed meanwhile. Absent when it
   * happens in one step.
   */
  readonly half?: (() => void) | undefined;
  /** A run is over when only background calls are left. */
  readonly background?: boolean;
}

/**
 * How a simulated process makes its calls: at once while a scenario is set up, one by one under the
 * explorer.
 */
export type Park = <T>(call: Call<T>) => Promise<T>;

/** Takes the ordinary outcome at once. */
export const parkNever: Park = async <T>(call: Call<T>): Promise<T> => {
  if (call.ordinary !== undefined) return call.ordinary();
  const [ordinary] = call.outcomes();
  if (ordinary === undefined) throw new Error(`${call.operation} ${call.detail} would wait for ever`);
  return ordinary.run();
};
