// What a scenario is: a few simulated processes on one disk, the trouble they may meet, and what
// must always hold.
import type { Volume } from "../../ports/disk.ts";
import type { Ports } from "../../ports/ports.ts";
import type { Trouble } from "../sim/call.ts";
import type { InjectedErrors } from "../sim/disk.ts";
import type { Profile } from "../sim/persistence.ts";
import type { Quirks } from "../sim/server.ts";

/**
 * Something that happened as far as a user can tell: an acknowledgement, an entry into a critical
 * section. In the order of happening.
 */
export interface Fact {
  readonly actor: string;
  readonly what: string;
  readonly value: unknown;
}

export interface ActorContext {
  readonly name: string;
  readonly ports: Ports;
  readonly note: (what: string, value?: unknown) => void;
}

/** `State` is what the actor had in memory when the scenario began. */
export interface Actor<State = unknown> {
  /** Default: all on one machine, "m1". */
  readonly machine?: string;
  /** Default: counted from 100. */
  readonly pid?: number;
  /** Actors see only the processes of their own container. Default: none. */
  readonly container?: string;
  /** It prepares after what happened meanwhile, so it has nothing old in mind. */
  readonly isFresh?: boolean;
  /** What it did before the scenario begins, alone and undisturbed: opening things, mostly. */
  readonly prepare?: (context: ActorContext) => Promise<State>;
  /** Rejecting is a violation: an actor that expects an error handles it. */
  readonly run: (context: ActorContext, state: State) => Promise<void>;
}

/** By the number of states: at most 1,500, at most 150,000, or more. */
export type ScenarioSize = "small" | "medium" | "large";

export interface Scenario {
  readonly name: string;
  /** What it shows, in one sentence. */
  readonly about: string;
  /** How much there is to explore, and so which test run exhausts it. Default "small". */
  readonly size?: ScenarioSize;
  readonly profile?: Profile;
  readonly quirks?: Quirks;
  readonly volume?: Volume;
  /** Makes the world that the actors find; nothing parks, all of it is durable afterwards. */
  readonly setup?: (ports: Ports) => Promise<void>;
  readonly actors: Readonly<Record<string, Actor>>;
  /**
   * Actors that are the same but for their names, on one machine or each on one of its own. Any of
   * them may be the first: the explorer lets them begin in this order only.
   */
  readonly alike?: readonly string[];
  /**
   * What happens between the preparations of the actors and the moment when they go on: then they
   * have something old in mind.
   */
  readonly meanwhile?: (ports: Ports) => Promise<void>;

  /** How many actors may be killed (SIGKILL), each at any moment. Default 0. */
  readonly killsMax?: number;
  /** The actors that may be killed. Default: all. */
  readonly mortal?: readonly string[];
  /**
   * Each may be stopped for so long, `count` times in all, at any moment (SIGSTOP, a sleeping
   * laptop).
   */
  readonly pauses?: { readonly ms: number; readonly count: number; readonly actors?: readonly string[] };
  /** The wall clock of an actor's machine may jump by so much, `count` times in all. */
  readonly clockJumps?: { readonly ms: number; readonly count: number };
  /**
   * How much of each trouble there may be. Default: none, except "stale", which the quirks switch
   * on without limit.
   */
  readonly troubles?: Partial<Record<Trouble, number>>;
  readonly errors?: InjectedErrors;
  /** Also cut the power in every state, and audit every state that the profile allows then. */
  readonly powerCuts?: boolean;
  /** Beats that each heart makes. Default 0: silent from the start. */
  readonly beatsMax?: number;
  /** Actors look into each other's `/temp/<actor>`: then its steps are tried in every order too. */
  readonly tempIsShared?: boolean;

  /**
   * Steps whose moment no other actor can notice: what is done to names that only their maker knows
   * yet.
   */
  readonly isUnseen?: (operation: string, path: string) => boolean;

  /**
   * Names that are never removed or replaced once they are there (checked): looking at one need not
   * be tried at every moment.
   */
  readonly isPermanent?: (path: string) => boolean;

  /** Throws when the facts so far break a promise. Called after every step that added one. */
  readonly check?: (facts: readonly Fact[]) => void;
  /**
   * Throws when the disk breaks a promise, after all actors are done or dead; on a machine of its
   * own.
   */
  readonly audit?: (ports: Ports, facts: readonly Fact[]) => Promise<void>;
}

/** An actor whose `run` gets what its `prepare` made. */
export function actor<State>(definition: Actor<State>): Actor {
  // Sound because the explorer hands to `run` nothing but what `prepare` of the same actor gave.
  return definition as Actor;
}

/** Throws when what may happen to one of those that are alike may not happen to another. */
export function checkAlike({ name, alike = [], mortal, pauses, actors }: Scenario): void {
  for (const among of [mortal, pauses?.actors]) {
    const count = alike.filter((each) => among?.includes(each)).length;
    mustHold(among === undefined || count === 0 || count === alike.length, `"${name}": not alike: ${alike.join()}`);
  }
  const machines = new Set(alike.map((each) => actors[each]?.machine ?? "m1")).size;
  mustHold(machines <= 1 || machines === alike.length, `"${name}": not alike: ${alike.join()} share machines`);
}

/** For `check` and `audit`. */
export function mustHold(condition: boolean, otherwise: string): void {
  if (!condition) throw new Error(otherwise);
}

/** The values of the facts of one kind. */
export function valuesOf<T>(facts: readonly Fact[], what: string): T[] {
  return facts.filter((fact) => fact.what === what).map((fact) => fact.value as T);
}
