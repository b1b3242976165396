// A choice of the explorer: one way in which a world may go on, and how it is taken again in another
// one.
import type { Touch } from "../sim/call.ts";

/** One way in which the world may go on. */
export interface Choice {
  readonly actor: string;
  readonly operation: string;
  readonly detail: string;
  /** Empty when all went well. */
  readonly label: string;
  /**
   * What it looks at or changes; undefined when it must not change places with anything (a kill, a
   * sleep, trouble that is limited).
   */
  readonly touches: readonly Touch[] | undefined;
  /** The same for the same step of the same actor, at whatever moment it is taken. */
  readonly id: string;
  /** Which call of the actor it ends; undefined when something is done to the actor. */
  readonly call: number | undefined;
  /** Which of the outcomes of that call, or of what may be done to the actor. */
  readonly outcome: number;
  /** Does it; returns what the actor saw, for the trace. */
  readonly take: () => string;
}

/**
 * A step that was taken: another world of the same scenario in the same state takes it again by this
 * alone, without a look at what else might have happened.
 */
export interface RecordedStep extends Pick<Choice, "actor" | "call" | "outcome"> {
  readonly nowMs: number;
}
