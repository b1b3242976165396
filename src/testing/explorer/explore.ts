// Tries all schedules of a scenario, or as many as asked for, and reports the shortest trace of a broken promise.
import { formatTrace, type TraceRow } from "./trace.ts";
import type { Scenario } from "./scenario.ts";
import { World, type Choice } from "./world.ts";

export interface ExploreOptions {
  /** Give up (not exhausted) beyond so many states. Default 1_000_000. */
  readonly statesMax?: number | undefined;
  /** Only schedules with at most so many switches away from an actor that could have gone on. Default: all. */
  readonly preemptionsMax?: number | undefined;
  /** Instead of all schedules: so many random ones, from this seed. */
  readonly random?: { readonly seed: number; readonly runs: number } | undefined;
  /** How long to look for a shorter trace of a violation. Default 1_000. */
  readonly shortenMs?: number | undefined;
  readonly onProgress?: ((progress: { readonly states: number; readonly schedules: number }) => void) | undefined;
}

export interface Exploration {
  readonly scenario: string;
  /** Different states of disk and processes. */
  readonly states: number;
  /** Runs from the start to an end or to a state that was seen before. */
  readonly schedules: number;
  /** Disks that a power cut left, each audited. */
  readonly crashStates: number;
  readonly steps: number;
  readonly ms: number;
  /** Every schedule was tried. */
  readonly exhausted: boolean;
  readonly violation?: Violation;
}

export interface Violation {
  readonly message: string;
  /** Replays it: `replay(scenario, seed)`. */
  readonly seed: string;
  readonly trace: readonly TraceRow[];
  /** The trace as a table. */
  readonly table: string;
}

export async function explore(scenario: Scenario, options: ExploreOptions = {}): Promise<Exploration> {
  const search = new Search(scenario, options);
  // Failures are answers here, made by the hundred thousand: nobody reads their stacks.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  await (options.random === undefined ? search.depthFirst() : search.randomly(options.random));
  if (search.violation !== undefined) await search.shorten(options.shortenMs ?? 1000);
  Error.stackTraceLimit = stackTraceLimit;
  return search.result();
}

/** Runs one schedule again and tells what happened. */
export async function replay(
  scenario: Scenario,
  seed: string,
): Promise<{ table: string; violation: string | undefined }> {
  const search = new Search(scenario, {});
  await search.run(parseSeed(seed), { onward: false });
  const trace = search.violation?.trace ?? search.lastTrace;
  return { table: formatTrace(trace), violation: search.violation?.message };
}

interface RunOptions {
  /** Go on past the given schedule, taking the first choice and leaving the others for later. */
  readonly onward: boolean;
}

class Search {
  violation: Violation | undefined;
  lastTrace: TraceRow[] = [];
  readonly #scenario: Scenario;
  readonly #options: ExploreOptions;
  /** States that were seen, with the fewest steps (and preemptions) that led there. */
  readonly #seen = new Map<string, number>();
  readonly #seenImages = new Set<string>();
  /** Schedules to be tried; the last one first. */
  #open: number[][] = [];
  #schedules = 0;
  #steps = 0;
  #crashStates = 0;
  #exhausted = true;
  #depthMax = Infinity;
  readonly #startedAt = performance.now();
  #ms = 0;

  constructor(scenario: Scenario, options: ExploreOptions) {
    this.#scenario = scenario;
    this.#options = options;
  }

  async depthFirst(until: number = Infinity): Promise<void> {
    const { statesMax = 1_000_000, onProgress } = this.#options;
    this.#open = [[]];
    for (let next = this.#open.pop(); next !== undefined; next = this.#open.pop()) {
      await this.run(next, { onward: true });
      if (this.violation !== undefined && until === Infinity) break;
      if (this.#schedules % 2000 === 0) onProgress?.({ states: this.#seen.size, schedules: this.#schedules });
      if (this.#seen.size > statesMax || performance.now() > until) {
        this.#exhausted = false;
        break;
      }
    }
    this.#ms = performance.now() - this.#startedAt;
  }

  async randomly({ seed, runs }: { readonly seed: number; readonly runs: number }): Promise<void> {
    this.#exhausted = false;
    let state = seed | 1;
    const pick = (count: number): number => {
      state = (Math.imul(state, 1664525) + 1013904223) | 0;
      return (state >>> 8) % count;
    };
    for (let run = 0; run < runs && this.violation === undefined; run++) await this.run([], { onward: true }, pick);
    this.#ms = performance.now() - this.#startedAt;
  }

  /** Looks for the same kind of violation with fewer steps, for a bounded time: the shorter the trace, the sooner it is understood. */
  async shorten(ms: number): Promise<void> {
    const until = performance.now() + ms;
    const { schedules, steps, crashStates, states } = { ...this.result() };
    for (let best = this.violation; best !== undefined && performance.now() < until; best = this.violation) {
      this.#seen.clear();
      this.#seenImages.clear();
      this.#depthMax = best.trace.length - 1;
      await this.#searchShorter(best, until);
      if (this.violation === best) break;
    }
    this.#schedules = schedules;
    this.#steps = steps;
    this.#crashStates = crashStates;
    this.#statesBeforeShortening = states;
  }
  #statesBeforeShortening: number | undefined;

  async #searchShorter(best: Violation, until: number): Promise<void> {
    this.violation = undefined;
    this.#open = [[]];
    for (let next = this.#open.pop(); next !== undefined && performance.now() < until; next = this.#open.pop()) {
      await this.run(next, { onward: true });
      if (this.violation !== undefined) return;
    }
    this.violation = best;
  }

  result(): Exploration {
    const states = this.#statesBeforeShortening ?? this.#seen.size;
    const figures = {
      states,
      schedules: this.#schedules,
      crashStates: this.#crashStates,
      steps: this.#steps,
      ms: Math.round(this.#ms),
    };
    const exhausted = this.#exhausted && this.violation === undefined;
    const result = { scenario: this.#scenario.name, ...figures, exhausted };
    return this.violation === undefined ? result : { ...result, violation: this.violation };
  }

  /** One schedule: the given choices, and onward from there. Stops at a state that was seen before. */
  async run(schedule: readonly number[], { onward }: RunOptions, pick?: (count: number) => number): Promise<void> {
    this.#schedules++;
    const world = new World(this.#scenario);
    const trace: TraceRow[] = [];
    this.lastTrace = trace;
    const taken: number[] = [];
    let preemptions = 0;
    await world.start();
    for (;;) {
      const choices = world.choices();
      const allowed = this.#allowed(world, choices, preemptions);
      const replaying = taken.length < schedule.length;
      if (!replaying && pick === undefined && !(await this.#isNews(world, trace, taken, preemptions))) return;
      if (allowed.length === 0) break;
      if (!replaying && (trace.length >= this.#depthMax || (!onward && allowed.length > 1))) return;
      let index = 0;
      // Only real choices are part of a seed: it stays short.
      if (allowed.length > 1) {
        if (replaying) index = schedule[taken.length] ?? 0;
        else if (pick !== undefined) index = pick(allowed.length);
        else for (let other = allowed.length - 1; other > 0; other--) this.#open.push([...taken, other]);
        taken.push(index);
      }
      const choice = allowed[index];
      if (choice === undefined) throw new Error(`The seed does not fit the scenario "${this.#scenario.name}".`);
      if (world.isPreemption(choice, choices)) preemptions++;
      const { actor, operation, detail, label } = choice;
      trace.push({ actor, operation, detail, label, seen: await world.take(choice) });
      this.#steps++;
    }
    const message = world.violation ?? (await world.audit());
    if (message !== undefined) this.#report(message, taken, trace);
  }

  #allowed(world: World, choices: Choice[], preemptions: number): Choice[] {
    const { preemptionsMax = Infinity } = this.#options;
    if (preemptions < preemptionsMax) return choices;
    const loyal = choices.filter((choice) => !world.isPreemption(choice, choices));
    return loyal.length > 0 ? loyal : choices;
  }

  /** Whether this state was never reached before, or only by a longer way; a new one also loses its power in every possible way. */
  async #isNews(world: World, trace: TraceRow[], taken: number[], preemptions: number): Promise<boolean> {
    const cost =
      (this.#depthMax === Infinity ? 0 : trace.length) +
      (this.#options.preemptionsMax === undefined ? 0 : preemptions * 1e6);
    const key = world.key();
    const known = this.#seen.get(key);
    if (known !== undefined && known <= cost) return false;
    this.#seen.set(key, cost);
    if (known === undefined && this.#scenario.powerCuts) {
      const cuts = await world.auditPowerCuts((image) => {
        if (this.#seenImages.has(image)) return true;
        this.#seenImages.add(image);
        return false;
      });
      this.#crashStates += cuts.count;
      if (cuts.violation !== undefined) {
        const row = { actor: "", operation: "the power is cut", detail: "", label: "", seen: "" };
        this.#report(cuts.violation, taken, [...trace, row]);
        return false;
      }
    }
    return true;
  }

  #report(message: string, taken: readonly number[], trace: readonly TraceRow[]): void {
    const seed = taken.length === 0 ? "-" : taken.join(".");
    this.violation = { message, seed, trace, table: formatTrace(trace) };
  }
}

function parseSeed(seed: string): number[] {
  return seed === "-" ? [] : seed.split(".").map(Number);
}
