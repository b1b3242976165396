// A choice of the explorer: one way in which a world can continue, and how another world repeats it.
import type { Touch } from "../sim/call.ts";

/** One way in which the world can continue. */
export interface Choice {
  readonly actor: string;
  readonly operation: string;
  readonly detail: string;
  /** How the outcome differs from the ordinary one; empty if it does not. */
  readonly label: string;
  /**
   * The paths that the step reads or changes. Undefined if it must not be reordered with any other (a kill, a sleep,
   * limited trouble).
   */
  readonly touches: readonly Touch[] | undefined;
  /** Equal for the same step of the same actor, whenever it is taken. */
  readonly id: string;
  /** The call of the actor that it ends; undefined if something happens to the actor instead. */
  readonly call: number | undefined;
  /** The index of the outcome of that call, or of the thing that happens to the actor. */
  readonly outcome: number;
  /** Takes the step. Returns the answer that the actor saw, for the trace. */
  readonly take: () => string;
}

/**
 * A recorded step. Another world of the same scenario in the same state can take it again by this alone, without
 * computing the alternatives.
 */
export interface RecordedStep extends Pick<Choice, "actor" | "call" | "outcome"> {
  readonly nowMs: number;
}
