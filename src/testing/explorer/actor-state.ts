// An actor in a world: the calls for which it waits, and the answers that it has received.
import type { SimCall } from "../sim/call.ts";
import type { Machine } from "../sim/machine.ts";

/** A call that waits for the explorer to choose how it ends. */
export interface ParkedCall {
  readonly call: SimCall<unknown>;
  readonly number: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Everything that a world knows of an actor, except its pending calls. */
export interface ActorMemory {
  /** A hash of all answers that it received. Its local state is a function of them. */
  history: string;
  /** True once it has taken a step that other actors may notice. */
  hasBegun: boolean;
}

export interface ActorState extends ActorMemory {
  readonly name: string;
  readonly machine: Machine;
  readonly pid: number;
  parked: ParkedCall[];
  calls: number;
  status: "preparing" | "running" | "done" | "killed";
  frozenUntilMs: number;
}

/** Leaves out actors of `alike` that have not begun, except the first one that can begin. */
export function withoutLateArrivals(
  actors: readonly ActorState[],
  alike: readonly string[] = [],
  canStep: (actor: ActorState) => boolean,
): readonly ActorState[] {
  const waiting = alike.flatMap((name) => actors.filter((actor) => actor.name === name && !actor.hasBegun));
  const first = waiting.find(canStep);
  return first === undefined ? actors : actors.filter((actor) => actor === first || !waiting.includes(actor));
}
