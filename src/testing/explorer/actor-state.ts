// An actor in a world: what it waits for, and what it was told so far.
import type { Call } from "../sim/call.ts";
import type { Machine } from "../sim/machine.ts";

/** A call that waits for the explorer to choose how it ends. */
export interface Parked {
  readonly call: Call<unknown>;
  readonly number: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** What a world knows of an actor beside what it waits for. */
export interface Memory {
  /** A hash of everything that it was told: its local state is a function of that. */
  history: string;
  /** It has taken a step that other actors may notice. */
  hasBegun: boolean;
}

export interface ActorState extends Memory {
  readonly name: string;
  readonly machine: Machine;
  readonly pid: number;
  parked: Parked[];
  calls: number;
  status: "preparing" | "running" | "done" | "killed";
  frozenUntilMs: number;
}

/** Of those of `alike` that have not begun, only the first one that can. */
export function withoutLateComers(
  actors: readonly ActorState[],
  alike: readonly string[] = [],
  canStep: (actor: ActorState) => boolean,
): readonly ActorState[] {
  const waiting = alike.flatMap((name) => actors.filter((actor) => actor.name === name && !actor.hasBegun));
  const first = waiting.find(canStep);
  return first === undefined ? actors : actors.filter((actor) => actor === first || !waiting.includes(actor));
}
