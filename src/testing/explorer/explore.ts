// Tries all schedules of a scenario, or as many as the options allow, and reports the shortest trace that breaks a
// promise.
import type { ActorMemory } from "./actor-state.ts";
import type { Choice, RecordedStep } from "./choice.ts";
import { canReduce, stillAsleep, type SleepSet, type TakenStep } from "./reduction.ts";
import { formatTrace, type TraceRow } from "./trace.ts";
import { checkAlike, type Scenario } from "./scenario.ts";
import type { SimServer } from "../sim/server.ts";
import { World } from "./world.ts";

/** Options of `explore`. */
export interface ExploreOptions {
  /** Stops after this many states, with `exhausted` false. Default 1,000,000. */
  readonly statesMax?: number | undefined;
  /**
   * Tries only schedules with at most this many switches away from an actor that could have
   * continued. Default: all.
   */
  readonly preemptionsMax?: number | undefined;
  /** Tries this many random schedules from this seed, instead of all. Default: all. */
  readonly random?: { readonly seed: number; readonly runs: number } | undefined;
  /** How long to look for a shorter trace of a violation. Default 1,000. */
  readonly shortenMs?: number | undefined;
  /** Called now and then with the counts so far. */
  readonly onProgress?: ((progress: { readonly states: number; readonly schedules: number }) => void) | undefined;
}

/** The result of `explore`. */
export interface Exploration {
  /** The name of the scenario. */
  readonly scenario: string;
  /** Number of different states of disk and processes. */
  readonly states: number;
  /** Number of runs from the start to an end, or to a state that was seen before. */
  readonly schedules: number;
  /** Number of disks that a power cut left, each audited. */
  readonly crashStates: number;
  /** Number of steps of all runs. */
  readonly steps: number;
  /** How long it took. */
  readonly ms: number;
  /** True if every schedule was tried; false if a limit omitted one. */
  readonly exhausted: boolean;
  /** The violation that was found, if any. */
  readonly violation?: Violation;
}

/** A broken promise and the schedule that leads to it. */
export interface Violation {
  /** The promise that was broken. */
  readonly message: string;
  /** Replays the schedule: `replay(scenario, seed)`. */
  readonly seed: string;
  /** The steps of the schedule. */
  readonly trace: readonly TraceRow[];
  /** The trace as a table. */
  readonly table: string;
}

/**
 * Tries all schedules of a scenario, or as many as the options allow, and reports the shortest
 * trace of a broken promise that it finds.
 *
 * @example
 * ```ts
 * const { violation, exhausted } = await explore(scenario);
 * if (violation !== undefined) console.error(violation.message, violation.table);
 * ```
 */
export async function explore(scenario: Scenario, options: ExploreOptions = {}): Promise<Exploration> {
  checkAlike(scenario);
  const search = new Search(scenario, options);
  // Failures are ordinary answers here, created by the hundred thousand. Nobody reads their stacks.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  await (options.random === undefined ? search.depthFirst() : search.randomly(options.random));
  if (search.violation !== undefined) await search.shorten(options.shortenMs ?? 1000);
  Error.stackTraceLimit = stackTraceLimit;
  return search.result();
}

/** The result of `replay`. */
export interface Replayed {
  /** The trace as a table. */
  readonly table: string;
  /** The promise that was broken, if any. */
  readonly violation: string | undefined;
}

/** Runs one schedule again. A seed that was found with `preemptionsMax` needs the same bound. */
export async function replay(
  scenario: Scenario,
  seed: string,
  bound: Pick<ExploreOptions, "preemptionsMax"> = {},
): Promise<Replayed> {
  const search = new Search(scenario, bound);
  await search.run(parseSeed(seed), { onward: false });
  const trace = search.violation?.trace ?? search.lastTrace;
  return { table: formatTrace(trace), violation: search.violation?.message };
}

interface RunOptions {
  /** Continues after the given schedule: takes the first choice, and leaves the others for later. */
  readonly onward: boolean;
  /** Chooses at random instead of trying all choices. */
  readonly pick?: (count: number) => number;
  /** The state from which to continue. Default: the start. */
  readonly from?: Pending;
}

/** A step and its predecessors. Schedules with the same beginning share them. */
interface Path {
  readonly before: Path | undefined;
  readonly length: number;
  readonly step: RecordedStep;
  readonly row: TraceRow;
  /**
   * The index of the choice, if there was more than one. Only such choices are part of a seed, so that it stays
   * short.
   */
  readonly choice: number | undefined;
}

/** A schedule to be tried: the steps up to a state, and one choice in that state. */
interface Pending {
  readonly state: BranchingState;
  readonly choice: number;
}

interface BranchingState {
  readonly path: Path | undefined;
  readonly preemptions: number;
  readonly memories: readonly ActorMemory[];
  /** Steps that need not be tried from there. Grows as its choices are tried. */
  readonly asleep: Map<string, TakenStep>;
}

/** How a state was reached when it was last explored. */
interface Visit {
  /** The number of steps if short traces are wanted, or of preemptions if those are bounded. */
  cost: number;
  asleep: readonly string[];
}

const statesMaxDefault = 1_000_000;

class Search {
  violation: Violation | undefined;
  #lastPath: Path | undefined;
  readonly #scenario: Scenario;
  readonly #options: ExploreOptions;
  readonly #startedAt: number = performance.now();
  readonly #visits = new Map<string, Visit>();
  readonly #images = new Set<string>();
  #reduces: boolean;
  /** A stack: the last one is tried first. */
  #pending: Pending[] = [];
  #figures = { schedules: 0, steps: 0, crashStates: 0 };
  #depthMax = Infinity;
  /** True if there were more states than allowed. */
  #isFull = false;
  /** True if the bound on preemptions left a schedule out. */
  #isCut = false;
  #before: Exploration | undefined;
  #ground: SimServer | undefined;

  constructor(scenario: Scenario, options: ExploreOptions) {
    this.#scenario = scenario;
    this.#options = options;
    this.#reduces = canReduce(scenario) && options.preemptionsMax === undefined;
  }

  async depthFirst(): Promise<void> {
    const { onProgress } = this.#options;
    await this.#tryAll(() => {
      const { schedules } = this.#figures;
      if (schedules % 1000 === 0) onProgress?.({ states: this.#visits.size, schedules });
      return !this.#isFull;
    });
  }

  async randomly({ seed, runs }: { readonly seed: number; readonly runs: number }): Promise<void> {
    // Random schedules never exhaust a scenario: earlier picks are not remembered.
    this.#isCut = true;
    let state = seed | 1;
    const pick = (count: number): number => {
      state = (Math.imul(state, 1664525) + 1013904223) | 0;
      return (state >>> 8) % count;
    };
    for (let run = 0; run < runs && this.violation === undefined; run++) await this.run([], { onward: true, pick });
  }

  /** Looks for a violation with fewer steps, for a limited time: a shorter trace is easier to understand. */
  async shorten(ms: number): Promise<void> {
    this.#before = this.result();
    const until = performance.now() + ms;
    this.#reduces = false;
    for (let best = this.violation; best !== undefined; best = this.violation) {
      // Allow one step less. A power cut does not count as a step.
      this.#depthMax = best.trace.filter(({ actor }) => actor !== "").length - 1;
      if (this.#depthMax < 0 || performance.now() > until) return;
      this.violation = undefined;
      this.#visits.clear();
      this.#images.clear();
      await this.#tryAll(() => performance.now() < until);
      if (this.violation === undefined) {
        this.violation = best;
        return;
      }
    }
  }

  result(): Exploration {
    const exhausted = !this.#isFull && !this.#isCut && this.violation === undefined;
    const ms = Math.round(performance.now() - this.#startedAt);
    const report = this.#before ?? {
      scenario: this.#scenario.name,
      states: this.#visits.size,
      ...this.#figures,
      ms,
      exhausted,
    };
    return this.violation === undefined ? report : { ...report, violation: this.violation };
  }

  async #tryAll(goOn: () => boolean): Promise<void> {
    this.#pending = [];
    await this.run([], { onward: true });
    for (let next = this.#pending.pop(); next !== undefined && goOn(); next = this.#pending.pop()) {
      if (this.violation !== undefined) return;
      await this.run([], { onward: true, from: next });
    }
  }

  /**
   * Runs one schedule: the given choices, then onward from there. Stops at a state from which everything was tried
   * before.
   */
  async run(schedule: readonly number[], { onward, pick, from }: RunOptions): Promise<void> {
    this.#figures.schedules++;
    const world = new World(this.#scenario, this.#ground);
    this.#lastPath = from?.state.path;
    let choicesTaken = 0;
    let preemptions = from?.state.preemptions ?? 0;
    let asleep: SleepSet = new Map();
    let resumed = from;
    await world.start();
    this.#ground ??= world.ground;
    if (from !== undefined) await this.#redo(world, from.state);
    for (;;) {
      const choices = world.choices();
      const allowed = this.#allowed(world, choices, preemptions);
      const replaying = choicesTaken < schedule.length;
      let untried = allowed.map((_choice, index) => index);
      if (!replaying && pick === undefined && resumed === undefined) {
        const news = await this.#choicesLeft(world, { preemptions, asleep }, allowed);
        if (news === undefined) return;
        ({ untried, asleep } = news);
      }
      if (pick !== undefined && !(await this.#survivesPowerCuts(world))) return;
      if (allowed.length === 0) break;
      if (!replaying && resumed === undefined && (this.#length >= this.#depthMax || (!onward && allowed.length > 1)))
        return;
      let index = untried[0] ?? 0;
      let siblings: Map<string, TakenStep> = new Map(asleep);
      if (resumed !== undefined) {
        index = resumed.choice;
        siblings = resumed.state.asleep;
        resumed = undefined;
      } else if (allowed.length > 1) {
        if (replaying) index = schedule[choicesTaken] ?? 0;
        else if (pick !== undefined) index = pick(allowed.length);
        else if (untried.length > 1) {
          const state = { path: this.#lastPath, preemptions, memories: world.memories(), asleep: siblings };
          for (const choice of untried.slice(1).reverse()) this.#pending.push({ state, choice });
        }
        choicesTaken++;
      }
      const choice = allowed[index];
      if (choice === undefined) throw new Error(`The seed does not fit the scenario "${this.#scenario.name}".`);
      if (world.isPreemption(choice, choices)) preemptions++;
      const { actor, id, touches } = choice;
      const factsBefore = world.facts.length;
      await this.#take(world, choice, allowed.length > 1 ? index : undefined);
      const leadsToMore = await this.#takeForced(world);
      if (choicesTaken < schedule.length || !this.#reduces) continue;
      const step: TakenStep = { id, actor, touches, noted: leadsToMore || world.facts.length > factsBefore };
      asleep = stillAsleep(siblings, step, this.#scenario);
      // From now on its siblings need not try this step first: all schedules that begin with it have been tried.
      siblings.set(id, step);
    }
    const message = world.violation ?? (await world.audit());
    if (message !== undefined) this.#report(message);
  }

  get lastTrace(): TraceRow[] {
    return pathsTo(this.#lastPath).map(({ row }) => row);
  }

  get #length(): number {
    return this.#lastPath?.length ?? 0;
  }

  async #redo(world: World, { path, memories }: BranchingState): Promise<void> {
    const steps = pathsTo(path).map(({ step }) => step);
    await world.redo(steps, memories);
    this.#figures.steps += steps.length;
  }

  async #take(world: World, choice: Choice, index: number | undefined): Promise<void> {
    const { actor, operation, detail, label } = choice;
    const step = world.record(choice);
    const row = { actor, operation, detail, label, seen: await world.take(choice) };
    this.#lastPath = { before: this.#lastPath, length: this.#length + 1, step, row, choice: index };
    this.#figures.steps++;
  }

  /**
   * Takes steps that follow at once and have no alternative. They belong to the step before: if one of them notes a
   * fact, that step counts as noted, and its order matters. Returns true if another step follows at once that has
   * alternatives and may note a fact.
   */
  async #takeForced(world: World): Promise<boolean> {
    for (;;) {
      const [forced, ...others] = world.choices();
      if (forced === undefined || !world.isEager) return false;
      if (others.length > 0) return true;
      await this.#take(world, forced, undefined);
    }
  }

  #allowed(world: World, choices: Choice[], preemptions: number): Choice[] {
    const { preemptionsMax = Infinity } = this.#options;
    if (preemptions < preemptionsMax) return choices;
    const loyal = choices.filter((choice) => !world.isPreemption(choice, choices));
    if (loyal.length < choices.length) this.#isCut = true;
    return loyal;
  }

  /**
   * Returns the choices that are left to try from this state, or undefined if there are none. For a new state it also
   * audits all power cuts.
   */
  async #choicesLeft(
    world: World,
    { preemptions, asleep }: { readonly preemptions: number; readonly asleep: SleepSet },
    allowed: readonly Choice[],
  ): Promise<{ untried: number[]; asleep: SleepSet } | undefined> {
    const key = this.#options.preemptionsMax === undefined ? world.key() : `${world.key()}${world.lastActor}`;
    const cost =
      this.#depthMax < Infinity ? this.#length : this.#options.preemptionsMax === undefined ? 0 : preemptions;
    const visit = this.#visits.get(key);
    const indexes = allowed.map((_choice, index) => index);
    if (visit === undefined) {
      if (this.#visits.size >= (this.#options.statesMax ?? statesMaxDefault)) {
        // Check here and not between schedules: a schedule in which a process polls forever has no end.
        this.#isFull = true;
        return undefined;
      }
      this.#visits.set(key, { cost, asleep: [...asleep.keys()] });
      if (!(await this.#survivesPowerCuts(world))) return undefined;
      const untried = indexes.filter((index) => !asleep.has(allowed[index]?.id ?? ""));
      return allowed.length > 0 && untried.length === 0 ? undefined : { untried, asleep };
    }
    if (cost < visit.cost) {
      visit.cost = cost;
      return { untried: indexes, asleep };
    }
    // A step that was asleep at the last visit but is not now was never tried from here.
    const awake = new Set(visit.asleep.filter((id) => !asleep.has(id)));
    const untried = indexes.filter((index) => awake.has(allowed[index]?.id ?? ""));
    visit.asleep = visit.asleep.filter((id) => asleep.has(id));
    if (untried.length === 0) return undefined;
    return { untried, asleep: new Map([...asleep].filter(([id]) => visit.asleep.includes(id))) };
  }

  async #survivesPowerCuts(world: World): Promise<boolean> {
    if (!this.#scenario.powerCuts) return true;
    const cuts = await world.auditPowerCuts((image) => {
      const known = this.#images.has(image);
      this.#images.add(image);
      return known;
    });
    this.#figures.crashStates += cuts.count;
    if (cuts.violation === undefined) return true;
    this.#report(cuts.violation, { actor: "", operation: "the power is cut", detail: "", label: "", seen: "" });
    return false;
  }

  #report(message: string, ...last: readonly TraceRow[]): void {
    const choices = pathsTo(this.#lastPath).flatMap(({ choice }) => (choice === undefined ? [] : [choice]));
    const seed = choices.length === 0 ? "-" : choices.join(".");
    const trace = [...this.lastTrace, ...last];
    this.violation = { message, seed, trace, table: formatTrace(trace) };
  }
}

/** Returns the steps from the first one to `last`. */
function pathsTo(last: Path | undefined): Path[] {
  const paths: Path[] = [];
  for (let path = last; path !== undefined; path = path.before) paths.push(path);
  return paths.reverse();
}

function parseSeed(seed: string): number[] {
  return seed === "-" ? [] : seed.split(".").map(Number);
}
