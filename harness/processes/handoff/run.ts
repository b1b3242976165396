// Runs a hand-off crew: real producers and workers share one box, and are killed and stopped at named points of the
// protocol, until every document is settled.
import { readdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Chance } from "../chance.ts";
import { compiledModule } from "../compiled-module.ts";
import { canStop, type Child } from "../child.ts";
import { Crew } from "../crew.ts";
import { giveOrders } from "./crash.ts";
import { allDocuments, type DocumentPlan } from "./documents.ts";
import type { CrashOrder, HandoffOrders, HandoffReport, Result } from "./orders.ts";
import { boxName, crashPoints } from "./steps.ts";

export interface HandoffRunOptions extends DocumentPlan {
  readonly directory: string;
  readonly workers: number;
  readonly seed: number;
  readonly leaseMs: number;
  readonly attempts: number;
  /** The number of children of each role that are killed at a named point. */
  readonly kills: Readonly<Record<HandoffOrders["role"], number>>;
  /** The number of children of each role that are stopped there until their lease has ended. */
  readonly stops: Readonly<Record<HandoffOrders["role"], number>>;
}

export interface HandoffRun {
  /** The number of kills at named points, without those by poisoned documents. */
  readonly kills: number;
  readonly stops: number;
  readonly poisonings: number;
  /** The points at which children were killed or stopped. */
  readonly points: ReadonlySet<string>;
  /** The number of acknowledgements per key that did not report a duplicate. */
  readonly published: ReadonlyMap<string, number>;
  readonly committed: ReadonlyMap<string, Result>;
  readonly violations: readonly string[];
}

/** If no ticket is settled and no child crashes for this long, the run is stuck. */
const stuckMs = 60_000;
const pollMs = 20;

/** Resolves when all documents are settled and all children have ended, or when something is wrong. */
export async function runHandoffCrew(options: HandoffRunOptions): Promise<HandoffRun> {
  const run = new Run(options);
  await run.work();
  return run;
}

class Run implements HandoffRun {
  readonly points = new Set<string>();
  readonly published = new Map<string, number>();
  readonly committed = new Map<string, Result>();
  readonly violations: string[] = [];
  readonly #options: HandoffRunOptions;
  readonly #crew: Crew<HandoffReport>;
  readonly #finished = new Set<string>();
  #isOver = false;
  kills = 0;
  stops = 0;
  poisonings = 0;

  constructor(options: HandoffRunOptions) {
    this.#options = options;
    const chance = new Chance(options.seed);
    for (const role of ["producer", "worker"] as const)
      giveOrders(options.directory, role, ordersFor(role, options, chance));
    const orders = new Map(
      (["producer", "worker"] as const).flatMap((role) =>
        Array.from({ length: role === "producer" ? options.producers : options.workers }, (_, number) => {
          const { directory, leaseMs, attempts } = options;
          const name = `${role}-${number + 1}`;
          return [name, { role, name, number, directory, leaseMs, attempts, plan: options } satisfies HandoffOrders];
        }),
      ) as [string, HandoffOrders][],
    );
    this.#crew = new Crew<HandoffReport>({
      names: [...orders.keys()],
      module: compiledModule(new URL("./child.ts", import.meta.url)),
      argsOf: (name) => [JSON.stringify(orders.get(name))],
      onReport: ({ from, report }) => this.#hear(from, report),
      onEnd: ({ child, signal, code, stderr }) => {
        if (this.#isOver) return;
        if (signal === "SIGKILL") this.#child(child)?.start();
        else this.violations.push(`${child} ended by itself with ${code ?? signal}: ${stderr.trim()}`);
      },
    });
  }

  async work(): Promise<void> {
    await this.#crew.run(async () => {
      try {
        await this.#untilSettled();
      } finally {
        this.#isOver = true;
      }
      if (this.violations.length > 0) return;
      for (const name of await this.#crew.finish()) this.violations.push(`${name} did not end when it was told to`);
      for (const { child, code, signal, stderr } of this.#crew.endings)
        if (code !== 0 && signal !== "SIGKILL") this.violations.push(`${child} ended with ${code}: ${stderr.trim()}`);
    });
  }

  async #untilSettled(): Promise<void> {
    const { directory, producers } = this.#options;
    const documents = allDocuments(this.#options).length;
    let before = "";
    for (let sinceMs = performance.now(); this.violations.length === 0;) {
      const settled = countTickets(`${directory}/${boxName}`);
      if (settled >= documents && this.#finished.size === producers && this.#areAllAwake) return;
      const now = `${settled} ${this.kills} ${this.stops} ${this.poisonings} ${this.published.size}`;
      if (now !== before) sinceMs = performance.now();
      before = now;
      if (performance.now() - sinceMs > stuckMs)
        this.violations.push(
          `${settled} of ${documents} documents are settled, and nothing happened for ${stuckMs} ms`,
        );
      await sleep(pollMs);
    }
  }

  /** Once a stopped child is declared dead, its tickets return to the queue, and another child does them. */
  get #areAllAwake(): boolean {
    return !this.#crew.children.some(({ isStopped }) => isStopped);
  }

  #hear(from: string, report: HandoffReport): void {
    if (report.kind === "wrong") this.violations.push(report.what);
    else if (report.kind === "finished") this.#finished.add(from);
    else if (report.kind === "poisoned") this.poisonings++;
    else if (report.kind === "published") this.#notePublished(report);
    else if (report.kind === "committed") this.#noteCommitted(report);
    else {
      this.points.add(report.point);
      if (report.order.how === "kill") this.kills++;
      else this.#letSleep(from);
    }
  }

  #notePublished({ key, duplicate }: { readonly key: string; readonly duplicate: boolean }): void {
    const times = (this.published.get(key) ?? 0) + (duplicate ? 0 : 1);
    this.published.set(key, times);
    if (times > 1) this.violations.push(`${key} was acknowledged as published twice`);
  }

  #noteCommitted({ key, result }: { readonly key: string; readonly result: Result }): void {
    const first = this.committed.get(key);
    if (first !== undefined)
      this.violations.push(`${key} was committed twice: ${JSON.stringify(first)}, ${JSON.stringify(result)}`);
    this.committed.set(key, result);
  }

  /** Lets the child sleep so long that others declare it dead and take its tickets. */
  #letSleep(name: string): void {
    const child = this.#child(name);
    if (child === undefined) return;
    this.stops++;
    const { starts } = child;
    child.stop();
    setTimeout(() => {
      if (child.starts === starts) child.cont();
    }, 2 * this.#options.leaseMs);
  }

  #child(name: string): Child | undefined {
    return this.#crew.children.find((child) => child.name === name);
  }
}

/** Uses every point in turn, with kills and stops mixed. */
function ordersFor(role: HandoffOrders["role"], { kills, stops }: HandoffRunOptions, chance: Chance): CrashOrder[] {
  const all = kills[role] + (canStop ? stops[role] : 0);
  const points = shuffled(crashPoints[role], chance);
  const hows = shuffled(
    Array.from({ length: all }, (_, index) => (index < kills[role] ? ("kill" as const) : ("stop" as const))),
    chance,
  );
  return hows.map((how, index) => ({
    point: points[index % points.length] ?? "",
    time: 1 + Math.floor(chance.fraction() * 3),
    how,
  }));
}

function shuffled<T>(values: readonly T[], chance: Chance): T[] {
  const left = [...values];
  return values.map(() => left.splice(Math.floor(chance.fraction() * left.length), 1)[0] as T);
}

function countTickets(box: string): number {
  let count = 0;
  for (const state of ["archive", "error"])
    for (const day of namesIn(`${box}/${state}`)) count += namesIn(`${box}/${state}/${day}`).length;
  return count;
}

/** Returns no names if the directory does not exist. */
function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
