// The definition of a scenario: a few simulated processes on one disk, the trouble that may happen to them, and the
// promises that must hold.
import type { Volume } from "../../ports/disk.ts";
import type { Ports } from "../../ports/ports.ts";
import type { FaultKind } from "../sim/call.ts";
import type { InjectedErrors } from "../sim/disk.ts";
import type { CrashProfile } from "../sim/persistence.ts";
import type { ServerQuirks } from "../sim/server.ts";

/**
 * Something that happened as far as a user can tell: an acknowledgement, the acquisition of a lock.
 * Facts are in the order in which they happened.
 */
export interface Fact {
  /** The name of the actor. */
  readonly actor: string;
  /** The kind of fact. */
  readonly what: string;
  /** The value that was passed to `note`. */
  readonly value: unknown;
}

/** The context of an actor. */
export interface ActorContext {
  /** The name of the actor. */
  readonly name: string;
  /** The ports of its process. */
  readonly ports: Ports;
  /** Records a fact. */
  readonly note: (what: string, value?: unknown) => void;
}

/** A simulated process. `State` is its memory when the scenario begins. */
export interface Actor<State = unknown> {
  /** The machine that it runs on. Default "m1" for all. */
  readonly machine?: string;
  /** Its process id. Default: counted from 100. */
  readonly pid?: number;
  /** The container that it runs in: it sees only the processes of that container. Default: none. */
  readonly container?: string;
  /** Prepares after `meanwhile`, so it remembers nothing outdated. Default false. */
  readonly isFresh?: boolean;
  /** Runs before the scenario begins, alone and undisturbed: mostly opens things. Default: none. */
  readonly prepare?: (context: ActorContext) => Promise<State>;
  /** Runs the actor. If it rejects, that is a violation: an actor that expects an error handles it. */
  readonly run: (context: ActorContext, state: State) => Promise<void>;
}

/** The size of a scenario by its number of states: at most 1,500, at most 150,000, or more. */
export type ScenarioSize = "small" | "medium" | "large";

/**
 * A few simulated processes on one disk, the failures that may happen to them, and the promises
 * that must always hold.
 */
export interface Scenario {
  /** The name of the scenario. */
  readonly name: string;
  /** Describes the purpose of the scenario, in one sentence. */
  readonly about: string;
  /** How much there is to explore, and so which test run exhausts it. Default `small`. */
  readonly size?: ScenarioSize;
  /** The disks that a power cut may leave. Default `ext4-ordered`. */
  readonly profile?: CrashProfile;
  /** The promises that the file system does not keep. Default: none. */
  readonly quirks?: ServerQuirks;
  /** The mount that the disk reports. Default: a local one. */
  readonly volume?: Volume;
  /**
   * Creates the world that the actors find. Nothing interrupts it, and everything is durable
   * afterwards. Default: none.
   */
  readonly setup?: (ports: Ports) => Promise<void>;
  /** The simulated processes, by name. */
  readonly actors: Readonly<Record<string, Actor>>;
  /**
   * Actors that differ only by name, on one machine or each on its own. The explorer lets them
   * begin in this order only. Default: none.
   */
  readonly alike?: readonly string[];
  /**
   * Runs after the actors have prepared and before they run, so that they remember something
   * outdated. Default: none.
   */
  readonly meanwhile?: (ports: Ports) => Promise<void>;

  /** How many actors may be killed (SIGKILL), each at any moment. Default 0. */
  readonly killsMax?: number;
  /** The actors that may be killed. Default: all. */
  readonly mortal?: readonly string[];
  /**
   * Actors (default: each) may be stopped for `ms`, `count` times in all, at any moment (SIGSTOP, a
   * sleeping laptop). Default: none.
   */
  readonly pauses?: { readonly ms: number; readonly count: number; readonly actors?: readonly string[] };
  /** The wall clock of an actor's machine may jump by `ms`, `count` times in all. Default: none. */
  readonly clockJumps?: { readonly ms: number; readonly count: number };
  /**
   * How often each kind of failure may happen. Default: never, except `stale`, which the quirks
   * allow without limit.
   */
  readonly troubles?: Partial<Record<FaultKind, number>>;
  /** Errors that the disk may return, as often as `troubles` allows. Default: none. */
  readonly errors?: InjectedErrors;
  /** Also cuts the power in every state, and audits every disk that the profile then allows. Default false. */
  readonly powerCuts?: boolean;
  /** How many beats each heart makes. Default 0: silent from the start. */
  readonly beatsMax?: number;
  /** True if actors read each other's `/temp/<actor>`: steps there are tried in every order, too. Default false. */
  readonly tempIsShared?: boolean;

  /**
   * Returns true for a step whose moment no other actor can notice: a step on a name that only its
   * creator knows yet. Default: none.
   */
  readonly isUnseen?: (operation: string, path: string) => boolean;

  /**
   * Returns true for a name that is never removed or replaced once it exists (checked): reading it
   * need not be tried at every moment. Default: none.
   */
  readonly isPermanent?: (path: string) => boolean;

  /** Throws if the facts so far break a promise. Called after every step that added one. Default: none. */
  readonly check?: (facts: readonly Fact[]) => void;
  /**
   * Throws if the disk breaks a promise after all actors have ended. Runs on a machine of its own.
   * Default: none.
   */
  readonly audit?: (ports: Ports, facts: readonly Fact[]) => Promise<void>;
}

/** Defines an actor whose `run` receives the state that its `prepare` returned. */
export function actor<State>(definition: Actor<State>): Actor {
  // Sound, because the explorer passes to `run` only what `prepare` of the same actor returned.
  return definition as Actor;
}

/** Throws if something may happen to one of the `alike` actors but not to another. */
export function checkAlike({ name, alike = [], mortal, pauses, actors }: Scenario): void {
  for (const among of [mortal, pauses?.actors]) {
    const count = alike.filter((each) => among?.includes(each)).length;
    mustHold(among === undefined || count === 0 || count === alike.length, `"${name}": not alike: ${alike.join()}`);
  }
  const machines = new Set(alike.map((each) => actors[each]?.machine ?? "m1")).size;
  mustHold(machines <= 1 || machines === alike.length, `"${name}": not alike: ${alike.join()} share machines`);
}

/** Throws an error with the message `otherwise` unless the condition holds. For `check` and `audit`. */
export function mustHold(condition: boolean, otherwise: string): void {
  if (!condition) throw new Error(otherwise);
}

/** Returns the values of the facts of one kind. */
export function valuesOf<T>(facts: readonly Fact[], what: string): T[] {
  return facts.filter((fact) => fact.what === what).map((fact) => fact.value as T);
}
