// Torture: real processes on one folder, killed and stopped at any moment, and an audit of what
// they were promised.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Chance } from "../processes/chance.ts";
import { Chaos } from "../processes/chaos.ts";
import { compiledModule } from "../processes/compiled-module.ts";
import { Crew } from "../processes/crew.ts";
import type { Counter } from "../scenarios/durable/counter.ts";
import { Ledger } from "./ledger.ts";
import { getTortureTask } from "./parts.ts";
import type { TortureFigures } from "./task.ts";
import type { AuditorReport, WorkerOrders, WorkerReport } from "./report.ts";
import { VisitLedger, type ConfirmedVisit } from "./visit-ledger.ts";

export interface TortureOptions {
  readonly part: string;
  /** How long, if it is not broken before. */
  readonly seconds: number;
  /**
   * What must have happened meanwhile, or it shows nothing: it goes on until then, for ten times as
   * long at most.
   */
  readonly atLeast?: Partial<TortureFigures> | undefined;
  /** The longest time between two blows. Default 100. */
  readonly blowsEveryMsMax?: number | undefined;
  readonly processes: number;
  /** Decides which process is hit, when and how; the timing of the processes is their own. */
  readonly seed: number;
  /** Run a known-wrong variant, to see that it is found out. */
  readonly sabotage?: boolean | undefined;
  /** Where to make the folder. Default: where temporary files are. */
  readonly parent?: string | undefined;
  readonly onProgress?: ((figures: TortureFigures) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface TortureResult extends TortureFigures {
  readonly part: string;
  readonly seed: number;
  readonly appendsPerSecond: number;
  /** Of the chain; of the events the number of batches. */
  readonly epochs: number;
  readonly violations: readonly string[];
}

const leaseMsDefault = 1000;
const shortStopsMs = [
  [1, 30],
  [10, 100],
  [50, 300],
] as const;
/**
 * How long a child may take to append once, after the trouble has ended: it hangs, or the machine
 * is very slow.
 */
const calmMsMax = 60_000;
/** Beyond these nothing new is learned. */
const violationsShownMax = 20;

/** Ends at the first violation. Rejects only when it could not be carried out. */
export async function torture(options: TortureOptions): Promise<TortureResult> {
  const directory = await mkdtemp(join(options.parent ?? tmpdir(), "holdfast-torture-"));
  try {
    return await new Torture(options, directory).run();
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

class Torture {
  readonly #options: TortureOptions;
  readonly #directory: string;
  readonly #ledger = new Ledger();
  readonly #visits = new VisitLedger();
  readonly #names: readonly string[];
  readonly #crew: Crew<WorkerReport>;
  readonly #chaos: Chaos;
  readonly #startedAtMs = performance.now();
  /** The children that are in the middle of a change now. */
  readonly #inside = new Set<string>();
  readonly #broken = new AbortController();
  #killsInside = 0;
  #workMs = 0;

  constructor(options: TortureOptions, directory: string) {
    this.#options = options;
    this.#directory = directory;
    this.#names = Array.from({ length: options.processes }, (_, index) => `p${index + 1}`);
    this.#crew = this.#newCrew("worker", this.#names);
    this.#chaos = new Chaos(this.#crew.children, {
      chance: new Chance(options.seed),
      everyMsMax: options.blowsEveryMsMax ?? 100,
      killPart: 0.12,
      // Mostly a scheduler's whim; some stops outlast the lease, and the life with it.
      stopMs: [...shortStopsMs, ...shortStopsMs, [this.#leaseMs, 1.5 * this.#leaseMs]],
      isInside: (child) => this.#inside.has(child.name),
    });
  }

  async run(): Promise<TortureResult> {
    await this.#crew.run(async () => {
      await this.#work();
      if (!this.#isBroken) await this.#calmDown();
      if (this.#isBroken) return;
      for (const name of await this.#crew.finish())
        this.#ledger.violate(`${name} did not end when it was told to: it hangs`);
    });
    for (const { child, code, signal, stderr } of this.#crew.failures)
      this.#ledger.violate(`${child} ended by itself with ${code ?? signal}: ${stderr.trim()}`);
    const found = this.#isBroken ? undefined : await this.#audit();
    return {
      ...this.#figures(),
      part: this.#options.part,
      seed: this.#options.seed,
      appendsPerSecond: Math.round(this.#ledger.size / (this.#workMs / 1000)),
      epochs: found?.epochs ?? 0,
      violations: this.#ledger.violations.slice(0, violationsShownMax),
    };
  }

  async #work(): Promise<void> {
    const { seconds, onProgress } = this.#options;
    this.#chaos.begin();
    try {
      for (let second = 0; !this.#isBroken && this.#goesOn(second, seconds); second++) {
        await this.#rest(1000);
        onProgress?.(this.#figures());
      }
    } finally {
      // Also when interrupted, or it would start children again that the crew has ended.
      await this.#chaos.end();
    }
    this.#workMs = performance.now() - this.#startedAtMs;
  }

  #goesOn(second: number, seconds: number): boolean {
    const figures = this.#figures();
    const isMissing = Object.entries(this.#options.atLeast ?? {}).some(
      ([name, least]) => figures[name as keyof TortureFigures] < least,
    );
    return second < seconds || (isMissing && second < 10 * seconds);
  }

  /** Ends at once when a promise is broken; rejects when it is interrupted. */
  async #rest(ms: number): Promise<void> {
    const { signal } = this.#options;
    const ends = [this.#broken.signal, ...(signal === undefined ? [] : [signal])];
    await sleep(ms, undefined, { signal: AbortSignal.any(ends) }).catch(() => signal?.throwIfAborted());
  }

  /** When no child is disturbed any more, all of them get on. */
  async #calmDown(): Promise<void> {
    const before = this.#names.map((name) => this.#ledger.acknowledgedOf(name));
    const stuck = (): string[] =>
      this.#names.filter((name, index) => this.#ledger.acknowledgedOf(name) <= (before[index] ?? 0));
    const until = performance.now() + calmMsMax;
    while (stuck().length > 0 && performance.now() < until && !this.#isBroken) await this.#rest(20);
    if (this.#isBroken) return;
    for (const name of stuck()) this.#ledger.violate(`${name} got nothing done within ${calmMsMax} ms of peace`);
  }

  async #audit(): Promise<AuditorReport | undefined> {
    const auditors = this.#newCrew("auditor", ["auditor"]);
    await auditors.run(async () => {
      const until = performance.now() + calmMsMax;
      while (auditors.endings.length === 0 && performance.now() < until) await sleep(10);
    });
    const found = auditors.history.map(({ report }) => report).find((report) => report.kind === "found");
    if (found === undefined) this.#ledger.violate(`the audit failed: ${auditors.endings[0]?.stderr ?? "it hangs"}`);
    else this.#ledger.audit(found, this.#names, this.#unknown());
    return found;
  }

  /**
   * How many appends of each may have happened without our knowing: one for each end that was not
   * its own, and for each doubt that it reported itself.
   */
  #unknown(): Counter {
    const unknown: Record<string, number> = {};
    const add = (name: string): void => void (unknown[name] = (unknown[name] ?? 0) + 1);
    // A child that finished when it was told to has reported all that it did.
    for (const { child, code } of this.#crew.endings) if (code !== 0) add(child);
    for (const { from, report } of this.#crew.history)
      if (report.kind === "unknown" || report.kind === "lifeOver") add(from);
    return unknown;
  }

  get #leaseMs(): number {
    return getTortureTask(this.#options.part).leaseMs ?? leaseMsDefault;
  }

  #noteVisit(visit: ConfirmedVisit): void {
    const wrong = this.#visits.note(visit);
    if (wrong !== undefined) this.#ledger.violate(wrong);
  }

  #stopNow(name: string): void {
    const child = this.#crew.children.find((each) => each.name === name);
    // So long that others judge it, take over and are done, also on a busy machine: a stop during
    // which no other process enters shows nothing.
    if (child !== undefined) this.#chaos.stopNow(child, 4 * this.#leaseMs);
  }

  #figures(): TortureFigures {
    const { history } = this.#crew;
    return {
      seconds: Math.round((performance.now() - this.#startedAtMs) / 100) / 10,
      appends: this.#ledger.size,
      kills: this.#chaos.kills,
      killsInside: this.#killsInside,
      stops: this.#chaos.stops,
      livesOver: history.filter(({ report }) => report.kind === "lifeOver").length,
    };
  }

  #endIfBroken(): void {
    if (this.#isBroken) this.#broken.abort();
  }

  get #isBroken(): boolean {
    return this.#ledger.violations.length > 0 || this.#crew.failures.length > 0;
  }

  #newCrew(role: WorkerOrders["role"], names: readonly string[]): Crew<WorkerReport> {
    const { part, seed, sabotage = false } = this.#options;
    const module = compiledModule(new URL("./worker.ts", import.meta.url));
    return new Crew<WorkerReport>({
      names,
      module,
      argsOf: (name) => {
        const orders: WorkerOrders = {
          part,
          role,
          name,
          directory: this.#directory,
          leaseMs: this.#leaseMs,
          seed,
          sabotage,
        };
        return [JSON.stringify(orders)];
      },
      onReport: ({ from, report }) => {
        if (report.kind === "won") this.#ledger.note({ name: from, ...report });
        else if (report.kind === "visited") this.#noteVisit(report);
        else if (report.kind === "entered") this.#inside.add(from);
        else if (report.kind === "left") this.#inside.delete(from);
        else if (report.kind === "vulnerable") this.#stopNow(from);
        this.#endIfBroken();
      },
      onEnd: ({ child }) => {
        if (this.#inside.delete(child)) this.#killsInside++;
        this.#endIfBroken();
      },
    });
  }
}
