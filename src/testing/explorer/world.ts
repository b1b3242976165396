// One run of a scenario: the simulated world, the pending calls of each actor, and the choices at each moment.
import type { Ports } from "../../ports/ports.ts";
import { errnoOf } from "../../ports/disk-error.ts";
import { parkNever, type SimCall, type CallOutcome, type FaultKind } from "../sim/call.ts";
import { Machine } from "../sim/machine.ts";
import { SimOsLocks } from "../sim/os-locks.ts";
import { createSimPorts } from "../sim/process.ts";
import { SimServer } from "../sim/server.ts";
import { withoutLateArrivals, type ActorState, type ActorMemory, type ParkedCall } from "./actor-state.ts";
import type { Choice, RecordedStep } from "./choice.ts";
import { describeError, describeValue } from "./describe.ts";
import { hashOf } from "./hash.ts";
import { isPrivate, mustKeepOutOfOthersTemp } from "./private-step.ts";
import type { Actor, Fact, Scenario } from "./scenario.ts";

interface PreparedActor {
  readonly definition: Actor;
  readonly prepare: () => Promise<void>;
  readonly begin: () => Promise<void>;
}

export class World {
  readonly scenario: Scenario;
  readonly facts: Fact[] = [];
  /** Set if a promise was broken. */
  violation: string | undefined;
  /** The disk after `setup`, if no file was left open. Never changed. */
  ground: SimServer | undefined;
  readonly #isSetUp: boolean;
  readonly #server: SimServer;
  readonly #osLocks: SimOsLocks;
  readonly #machines = new Map<string, Machine>();
  readonly #actors: ActorState[] = [];
  readonly #left: Record<FaultKind | "kill" | "pause" | "clockJump", number>;
  // Starts far from 0, so that no real stamp looks like a missing one.
  #nowMs = 100_000_000;
  #lastActor = "";
  #isEager = false;
  /** True while steps are repeated whose results are known. */
  #isRedoing = false;
  /** The choices of this moment, once they were computed. */
  #choices: Choice[] | undefined;

  /** `ground`: the disk after `setup` in another world of the same scenario. */
  constructor(scenario: Scenario, ground?: SimServer) {
    this.scenario = scenario;
    this.#isSetUp = ground !== undefined;
    // A disk that several machines have mounted is not local.
    const isShared = new Set(Object.values(scenario.actors).map(({ machine = "m1" }) => machine)).size > 1;
    const volume = scenario.volume ?? { kind: isShared ? "network" : "local", type: "simulated", mountOptions: [] };
    const { profile = "ext4-ordered", quirks = {} } = scenario;
    const options = { profile, quirks, volume, now: () => this.#nowMs };
    this.#server = ground?.copy(options) ?? new SimServer(options);
    this.#osLocks = new SimOsLocks(quirks.osLocks);
    this.#left = {
      kill: scenario.killsMax ?? 0,
      pause: scenario.pauses?.count ?? 0,
      clockJump: scenario.clockJumps?.count ?? 0,
      error: scenario.troubles?.error ?? 0,
      lostReply: scenario.troubles?.lostReply ?? 0,
      retransmit: scenario.troubles?.retransmit ?? 0,
      stale: scenario.troubles?.stale ?? Infinity,
      hint: scenario.troubles?.hint ?? 0,
      outage: scenario.troubles?.outage ?? 0,
      staleHandle: scenario.troubles?.staleHandle ?? 0,
    };
  }

  async start(): Promise<void> {
    const { setup, meanwhile, actors } = this.scenario;
    if (!this.#isSetUp) {
      await setup?.(this.#straightPorts(this.#server, "setup"));
      this.#keepGround();
    }
    const prepared = Object.entries(actors).map(([name, actor], index) => this.#newActor(name, actor, index));
    for (const actor of prepared) if (!actor.definition.isFresh) await actor.prepare();
    await meanwhile?.(this.#straightPorts(this.#server, "meanwhile"));
    for (const actor of prepared) if (actor.definition.isFresh) await actor.prepare();
    this.#server.settle();
    for (const actor of this.#actors) actor.status = "running";
    for (const actor of prepared) await actor.begin();
  }

  /** `setup` always leaves the same disk and no processes, so later worlds begin with a copy of it. */
  #keepGround(): void {
    if (this.#server.handles.size > 0) return;
    const { profile = "ext4-ordered", quirks = {} } = this.scenario;
    const { volume } = this.#server;
    this.ground = this.#server.copy({ profile, quirks, volume, now: () => this.#nowMs });
  }

  #newActor(name: string, definition: Actor, index: number): PreparedActor {
    const state: ActorState = {
      name,
      machine: this.#machine(definition.machine ?? "m1"),
      pid: definition.pid ?? 100 + index,
      parked: [],
      calls: 0,
      history: name,
      status: "preparing",
      frozenUntilMs: 0,
      hasBegun: false,
    };
    this.#actors.push(state);
    const ports = this.#actorPorts(state);
    const context = { name, ports, note: (what: string, value?: unknown) => this.#note(name, what, value) };
    let memory: unknown;
    return {
      definition,
      prepare: async () => {
        memory = await definition.prepare?.(context);
      },
      begin: () => this.#begin(state, definition.run(context, memory)),
    };
  }

  #actorPorts(state: ActorState): Ports {
    const park = <T>(call: SimCall<T>): Promise<T> =>
      new Promise((resolve, reject) => {
        if (state.status === "killed") return;
        state.parked.push({
          call,
          number: state.calls++,
          resolve: resolve as ParkedCall["resolve"],
          reject,
        });
      });
    return createSimPorts({
      name: state.name,
      machine: state.machine,
      server: this.#server,
      osLocks: this.#osLocks,
      now: () => this.#nowMs,
      pid: state.pid,
      processSpace: this.scenario.actors[state.name]?.container,
      beatsMax: this.scenario.beatsMax ?? 0,
      errors: this.scenario.errors,
      isPermanent: this.scenario.isPermanent,
      onImpermanence: (what) => (this.violation ??= what),
      processState: (pid, startMark) => this.#processState(state, pid, startMark),
      observed: (what) => {
        if (!this.#isRedoing) state.history = hashOf(state.history + what);
      },
      // Calls that it started in the background continue once the scenario begins.
      park: (call) => (state.status === "preparing" && !call.background ? parkNever(call) : park(call)),
    });
  }

  /** The answer of the process table on the asking actor's machine and in its container. */
  #processState(asking: ActorState, pid: number, startMark: string): "alive" | "dead" {
    const container = this.scenario.actors[asking.name]?.container;
    const found = this.#actors.some(
      (other) =>
        other.machine === asking.machine &&
        other.status !== "killed" &&
        other.pid === pid &&
        this.scenario.actors[other.name]?.container === container &&
        (startMark === "" || startMark === `start-of-${other.name}`),
    );
    return found ? "alive" : "dead";
  }

  async #begin(state: ActorState, running: Promise<void>): Promise<void> {
    running.then(
      () => (state.status = "done"),
      (error: unknown) => {
        if (state.status === "running") this.violation ??= `${state.name} failed: ${describeError(error)}`;
        state.status = "done";
      },
    );
    await settled();
  }

  /** Calls that an actor began without awaiting them also complete before its process ends. */
  get isOver(): boolean {
    if (this.violation !== undefined) return true;
    return this.#actors.every(
      ({ status, parked }) => status === "killed" || (status === "done" && parked.every(({ call }) => call.background)),
    );
  }

  /** Returns all possible next steps; those of the actor that moved last come first. Empty when the run is over. */
  choices(): Choice[] {
    return (this.#choices ??= this.#findChoices());
  }

  #findChoices(): Choice[] {
    if (this.isOver) return [];
    for (;;) {
      const choices = this.#choicesNow();
      if (choices.length > 0) return choices;
      if (!this.#passTime()) {
        const stuck = this.#actors.filter((actor) => actor.status === "running").map((actor) => actor.name);
        this.violation = `nothing can go on: ${stuck.join(" and ")} would wait for ever`;
        return [];
      }
    }
  }

  /** True if the only choices of this moment are those of one step that no other actor can notice. */
  get isEager(): boolean {
    return this.#isEager;
  }

  /** True if another actor could have continued instead: switching away from it is a preemption. */
  isPreemption(choice: Choice, choices: readonly Choice[]): boolean {
    return choice.actor !== this.#lastActor && choices.some((other) => other.actor === this.#lastActor);
  }

  /** The actor that moved last. With a bound on preemptions it decides which steps are preemptions. */
  get lastActor(): string {
    return this.#lastActor;
  }

  memories(): ActorMemory[] {
    return this.#actors.map(({ history, hasBegun }) => ({ history, hasBegun }));
  }

  /**
   * Repeats steps, from the start of this world to the state in which another world had these `memories`. Checks no
   * promises on the way, because the other world has kept them.
   */
  async redo(steps: readonly RecordedStep[], memories: readonly ActorMemory[]): Promise<void> {
    this.#isRedoing = true;
    for (const step of steps) {
      this.#redo(step);
      await settled();
    }
    this.#isRedoing = false;
    for (const [index, actor] of this.#actors.entries()) Object.assign(actor, memories[index]);
    this.#choices = undefined;
  }

  #actor(name: string): ActorState {
    const actor = this.#actors.find((each) => each.name === name);
    if (actor === undefined) throw new Error(`there is no actor ${name}`);
    return actor;
  }

  #redo({ actor: name, call: number, outcome: index, nowMs }: RecordedStep): void {
    this.#nowMs = nowMs;
    this.#lastActor = name;
    const actor = this.#actor(name);
    if (number === undefined) return void this.#disturbances(actor)[index]?.take();
    const parked = actor.parked.find((each) => each.number === number);
    if (parked === undefined)
      throw new Error(`${name} has no call ${number}: its run depends on more than its answers`);
    actor.parked = actor.parked.filter((other) => other !== parked);
    const { call, resolve, reject } = parked;
    try {
      if (index === 0 && call.ordinary !== undefined) return resolve(call.ordinary());
      const outcome = call.outcomes()[index];
      if (outcome?.trouble !== undefined) this.#left[outcome.trouble]--;
      resolve(outcome?.run());
    } catch (error) {
      reject(error);
    }
  }

  /** Returns a step of this moment as `redo` needs it. */
  record({ actor, call, outcome }: Choice): RecordedStep {
    return { actor, call, outcome, nowMs: this.#nowMs };
  }

  async take(choice: Choice): Promise<string> {
    this.#lastActor = choice.actor;
    if (!this.#isEager) this.#actor(choice.actor).hasBegun = true;
    const seen = choice.take();
    await settled();
    this.#choices = undefined;
    return seen;
  }

  /** Returns a text that is equal for states with the same possible futures. */
  key(): string {
    const actors = this.#actors.map(
      ({ history, status, hasBegun, frozenUntilMs, parked }) =>
        `${history}${status}${hasBegun ? "" : "-"}${Math.max(0, frozenUntilMs - this.#nowMs)}/${parked.map(({ number, call }) => `${number}@${call.dueMs ?? ""}`).join()}`,
    );
    const caches = [...this.#machines.values()].map((machine) => machine.describeCaches());
    const facts = this.facts.map(({ actor, what, value }) => `${actor} ${what} ${JSON.stringify(value)}`);
    return [
      this.#server.fingerprint(this.scenario.powerCuts === true),
      hashOf(
        `${actors.join(" ")}|${caches.join(" ")}|${this.#osLocks.describe()}|${Object.values(this.#left).join()}|${this.#nowMs}`,
      ),
      hashOf(facts.join(";")),
    ].join(":");
  }

  /** Audits the disk as the actors left it. */
  async audit(): Promise<string | undefined> {
    for (const actor of this.#actors) this.#server.closeHandlesOf(actor.name);
    return await this.#auditOn(this.#server);
  }

  /** Audits each state that a power cut may leave now, unless `isKnown` says that it was audited already. */
  async auditPowerCuts(isKnown: (key: string) => boolean): Promise<{ count: number; violation?: string }> {
    const facts = hashOf(JSON.stringify(this.facts));
    // Most states differ only in the memory of processes, which a power cut erases.
    if (isKnown(`${this.#server.fingerprint(true)}@${this.#nowMs}:${facts}`)) return { count: 0 };
    let count = 0;
    for (let index = 0; index < this.#server.crashImageCount(); index++) {
      const image = this.#server.crashImage(index);
      if (isKnown(`${image.fingerprint(false)}:${facts}`)) continue;
      count++;
      const violation = await this.#auditOn(image);
      if (violation !== undefined) return { count, violation: `after a power cut: ${violation}` };
    }
    return { count };
  }

  async #auditOn(server: SimServer): Promise<string | undefined> {
    try {
      await this.scenario.audit?.(this.#straightPorts(server, "auditor"), this.facts);
      return undefined;
    } catch (error) {
      return describeError(error);
    }
  }

  #straightPorts(server: SimServer, name: string): Ports {
    return createSimPorts({
      name,
      machine: new Machine(name),
      server,
      osLocks: new SimOsLocks(this.scenario.quirks?.osLocks),
      park: parkNever,
      now: () => this.#nowMs,
      observed: () => undefined,
      pid: 99,
      beatsMax: 0,
      processState: () => "dead",
    });
  }

  #machine(name: string): Machine {
    const machine = this.#machines.get(name) ?? new Machine(name);
    this.#machines.set(name, machine);
    return machine;
  }

  #note(actor: string, what: string, value: unknown): void {
    this.facts.push({ actor, what, value });
    if (this.#isRedoing) return;
    try {
      this.scenario.check?.(this.facts);
    } catch (error) {
      this.violation ??= describeError(error);
    }
  }

  #choicesNow(): Choice[] {
    const awake = this.#actors.filter((actor) => actor.status !== "killed" && actor.frozenUntilMs <= this.#nowMs);
    const last = awake.findIndex((actor) => actor.name === this.#lastActor);
    const ordered = last > 0 ? [...awake.splice(last, 1), ...awake] : awake;
    for (const actor of ordered)
      for (const parked of actor.parked) {
        if (!isPrivate(this.scenario, actor.name, parked.call)) continue;
        const unseen = this.#steps(actor, parked);
        if (unseen.length === 0) continue;
        this.#isEager = true;
        // A kill or a pause between two unseen steps leads to another state than one after them.
        return [...unseen, ...this.#disturbances(actor)];
      }
    this.#isEager = false;
    const choices: Choice[] = [];
    const canStep = (actor: ActorState) => actor.parked.some((parked) => this.#steps(actor, parked).length > 0);
    const free = withoutLateArrivals(ordered, this.scenario.alike, canStep);
    for (const actor of free) for (const parked of actor.parked) choices.push(...this.#steps(actor, parked));
    if (choices.length > 0) for (const actor of free) choices.push(...this.#disturbances(actor));
    return choices;
  }

  #steps(actor: ActorState, parked: ParkedCall): Choice[] {
    const { call, number } = parked;
    const choices: Choice[] = [];
    for (const [index, outcome] of call.outcomes().entries()) {
      const { label, trouble } = outcome;
      if (trouble !== undefined && this.#left[trouble] <= 0) continue;
      choices.push({
        actor: actor.name,
        operation: call.operation,
        detail: call.detail,
        label,
        touches: trouble === undefined && call.dueMs === undefined ? call.touches : undefined,
        id: `${actor.name}#${number}${label}`,
        call: number,
        outcome: index,
        take: () => this.#finish(actor, parked, outcome),
      });
    }
    return choices;
  }

  #finish(actor: ActorState, parked: ParkedCall, outcome: CallOutcome<unknown>): string {
    mustKeepOutOfOthersTemp(this.scenario, actor.name, parked.call);
    actor.parked = actor.parked.filter((other) => other !== parked);
    if (outcome.trouble !== undefined) this.#left[outcome.trouble]--;
    let seen: string;
    try {
      const value = outcome.run();
      seen = describeValue(value);
      parked.resolve(value);
    } catch (error) {
      seen = errnoOf(error) ?? describeError(error);
      parked.reject(error);
    }
    actor.history = hashOf(`${actor.history} ${parked.number} ${seen}`);
    return seen;
  }

  #disturbances(actor: ActorState): Choice[] {
    if (actor.status !== "running") return [];
    const { mortal, pauses, clockJumps } = this.scenario;
    const choices: Choice[] = [];
    const add = (operation: string, detail: string, take: () => void): void => {
      choices.push({
        actor: actor.name,
        operation,
        detail,
        label: "",
        touches: undefined,
        id: `${actor.name}!${operation}`,
        call: undefined,
        outcome: choices.length,
        take: () => {
          take();
          return "";
        },
      });
    };
    if (this.#left.kill > 0 && (mortal?.includes(actor.name) ?? true)) {
      add("is killed", "", () => this.#kill(actor));
      for (const { operation, detail, half } of this.#halves(actor))
        add(`is killed while it does half of: ${operation}`, detail, () => {
          half();
          this.#kill(actor);
        });
    }
    if (pauses !== undefined && this.#left.pause > 0 && (pauses.actors?.includes(actor.name) ?? true))
      add("is stopped", `for ${pauses.ms} ms`, () => {
        this.#left.pause--;
        this.#note(actor.name, "stopped", undefined);
        actor.frozenUntilMs = this.#nowMs + pauses.ms;
      });
    if (clockJumps !== undefined && this.#left.clockJump > 0)
      add("clock jumps", `by ${clockJumps.ms} ms`, () => {
        this.#left.clockJump--;
        actor.machine.wallOffsetMs += clockJumps.ms;
      });
    return choices;
  }

  /** Returns the first halves of calls in progress that do not happen in one step and that others may see. */
  #halves(actor: ActorState): { operation: string; detail: string; half: () => void }[] {
    return actor.parked.flatMap(({ call }) => {
      const { operation, detail, half } = call;
      return half === undefined || isPrivate(this.scenario, actor.name, call) ? [] : [{ operation, detail, half }];
    });
  }

  #kill(actor: ActorState): void {
    this.#left.kill--;
    this.#note(actor.name, "killed", undefined);
    actor.status = "killed";
    actor.parked = [];
    this.#osLocks.freeAllOf(actor.name);
    this.#server.closeHandlesOf(actor.name);
  }

  /** All actors wait, so advance the time to the first moment at which one of them can continue. */
  #passTime(): boolean {
    const moments = this.#actors
      .filter((actor) => actor.status !== "killed")
      .flatMap((actor) => [
        actor.frozenUntilMs,
        ...actor.parked.map(({ call }) => Math.max(call.dueMs ?? 0, actor.frozenUntilMs)),
      ])
      .filter((moment) => moment > this.#nowMs);
    if (moments.length === 0) return false;
    this.#nowMs = Math.min(...moments);
    return true;
  }
}

/**
 * Resolves when the actors have done all that they can without an answer: a new turn of the event loop comes after
 * all promises.
 */
function settled(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}
