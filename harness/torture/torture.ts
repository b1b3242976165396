// Torture: real processes share one folder, and are killed and stopped at any moment. Then an audit checks the promises
// made to them.
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
  /** The length of the run, unless a promise is broken before. */
  readonly seconds: number;
  /** The figures that the run must reach to prove anything. It continues until then, for at most thirty times as long. */
  readonly atLeast?: Partial<TortureFigures> | undefined;
  /** Default: that of the part. Longer where a process is slow. */
  readonly leaseMs?: number | undefined;
  /** The longest time between two blows. Default 100. */
  readonly blowsEveryMsMax?: number | undefined;
  readonly processes: number;
  /** Decides which process is hit, when and how. The timing of the processes still varies. */
  readonly seed: number;
  /** Runs a known-wrong variant, to see that the audit finds it. */
  readonly sabotage?: boolean | undefined;
  /** The directory in which to make the folder. Default: the directory of temporary files. */
  readonly parent?: string | undefined;
  readonly onProgress?: ((figures: TortureFigures) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface TortureResult extends TortureFigures {
  readonly part: string;
  readonly seed: number;
  readonly appendsPerSecond: number;
  /** The epochs of a chain, or the batches of an event log. */
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
 * The longest time in which a child must append once after the trouble has ended. After that it hangs, or the machine
 * is very slow.
 */
const calmMsMax = 60_000;
/** More violations than this teach nothing new. */
const violationsShownMax = 20;

/** Ends at the first violation. Rejects only if the torture could not run. */
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
      // Most stops are as short as those of a scheduler. Some outlast the lease, and so end the session.
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
      // This also runs when interrupted. Otherwise the chaos would restart children that the crew has ended.
      await this.#chaos.end();
    }
    this.#workMs = performance.now() - this.#startedAtMs;
  }

  #goesOn(second: number, seconds: number): boolean {
    const figures = this.#figures();
    const isMissing = Object.entries(this.#options.atLeast ?? {}).some(
      ([name, least]) => figures[name as keyof TortureFigures] < least,
    );
    return second < seconds || (isMissing && second < 30 * seconds);
  }

  /** Resolves at once if a promise is broken. Rejects if it is interrupted. */
  async #rest(ms: number): Promise<void> {
    const { signal } = this.#options;
    const ends = [this.#broken.signal, ...(signal === undefined ? [] : [signal])];
    await sleep(ms, undefined, { signal: AbortSignal.any(ends) }).catch(() => signal?.throwIfAborted());
  }

  /** Once no child is disturbed any more, every child must make progress. */
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
   * Counts the appends of each child that may have happened without a report: one for each end that was not its own,
   * and one for each doubt that it reported.
   */
  #unknown(): Counter {
    const unknown: Record<string, number> = {};
    const add = (name: string): void => void (unknown[name] = (unknown[name] ?? 0) + 1);
    // A child that finished when told to has reported all its appends.
    for (const { child, code } of this.#crew.endings) if (code !== 0) add(child);
    for (const { from, report } of this.#crew.history)
      if (report.kind === "unknown" || report.kind === "lifeOver") add(from);
    return unknown;
  }

  get #leaseMs(): number {
    return this.#options.leaseMs ?? getTortureTask(this.#options.part).leaseMs ?? leaseMsDefault;
  }

  #noteVisit(visit: ConfirmedVisit): void {
    const wrong = this.#visits.note(visit);
    if (wrong !== undefined) this.#ledger.violate(wrong);
  }

  #stopNow(name: string): void {
    const child = this.#crew.children.find((each) => each.name === name);
    // Long enough for others to judge it, take over and finish, even on a busy machine. A stop during which no other
    // process enters shows nothing.
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
