// The processes that work on one folder, some in each guest, and the ledgers of what they were
// told: the torture of harness/, spread over machines.
import { Ledger } from "../../harness/torture/ledger.ts";
import { getTortureTask } from "../../harness/torture/parts.ts";
import type { WorkerOrders, WorkerReport } from "../../harness/torture/report.ts";
import { VisitLedger, type ConfirmedVisit } from "../../harness/torture/visit-ledger.ts";
import type { Bed } from "./bed.ts";
import { until } from "./command.ts";
import type { Guest } from "./guest.ts";
import type { Script } from "./script.ts";

export interface WorkOptions {
  readonly part: string;
  readonly directory: string;
  readonly leaseMs: number;
  /** Run the known-wrong variant. */
  readonly sabotage: boolean;
  readonly workersPerGuest: number;
  /** How long each of them rests after each round. */
  readonly restMs: number;
}

const finishMsMax = 60_000;
const auditMsMax = 90_000;
/**
 * A killed machine takes reports with it that were on their way: any number of appends may have
 * been made that we never heard of.
 */
const anyNumber = 1_000_000_000;
/**
 * How exactly the clocks of two guests are known to each other: visits are taken to be shorter by
 * so much at both ends.
 */
const clockMs = 10;

export class WorkCrew {
  readonly #bed: Bed;
  readonly #options: WorkOptions;
  readonly #ledger = new Ledger();
  readonly #visits = new VisitLedger();
  readonly #scripts = new Map<Guest, Script<WorkerReport>[]>();
  readonly #failures: string[] = [];
  readonly #unknown: Record<string, number> = {};
  #visitCount = 0;
  #livesOver = 0;
  #inDoubt = 0;

  constructor(bed: Bed, options: WorkOptions) {
    this.#bed = bed;
    this.#options = options;
  }

  get part(): string {
    return this.#options.part;
  }
  get violations(): readonly string[] {
    return this.#ledger.violations;
  }
  /** Workers that ended by themselves or hang, and what they said. */
  get failures(): readonly string[] {
    return this.#failures;
  }
  /** Nothing new is learned by going on. */
  get isOver(): boolean {
    return this.violations.length > 0 || (this.failures.length > 0 && !this.#options.sabotage);
  }
  get wins(): number {
    return this.#ledger.size;
  }
  get summary(): string {
    return `${this.wins} acknowledged, ${this.#visitCount} visits, ${this.#livesOver} lives over, ${this.#inDoubt} in doubt`;
  }
  /** What runs in the guest now. */
  scripts(guest: Guest): readonly Script<WorkerReport>[] {
    return this.#scripts.get(guest) ?? [];
  }

  /** Also again, after its machine was started again. */
  start(guest: Guest): void {
    this.#scripts.set(
      guest,
      this.#namesOf(guest).map((name) => this.#startWorker(guest, name)),
    );
  }

  /** Removes the lock file that the dead machine left, as a person does on a share. */
  async bury(dead: Guest): Promise<void> {
    const { lockFileForPerson } = getTortureTask(this.part);
    if (lockFileForPerson === undefined) return;
    const lock = `${this.#options.directory}/${lockFileForPerson}`;
    const person = this.#bed.guests.find((guest) => guest !== dead);
    // The listing first, so that the machine of that person looks the name up anew.
    await person?.shell(
      `ls ${this.#options.directory} >/dev/null; ! grep -qx 'host=${dead.name}' ${lock} || rm ${lock}`,
    );
  }

  /**
   * Which workers of these guests have not appended within `msMax` from now, and how long the last
   * of the others took.
   */
  async waitForWins(
    guests: readonly Guest[],
    msMax: number,
  ): Promise<{ readonly tookSeconds: number; readonly stuck: string[] }> {
    const startMs = performance.now();
    const before = new Map(
      guests.flatMap((guest) => this.#namesOf(guest)).map((name) => [name, this.#ledger.acknowledgedOf(name)]),
    );
    const stuck = (): string[] =>
      [...before].filter(([name, count]) => this.#ledger.acknowledgedOf(name) <= count).map(([name]) => name);
    // The answer tells which workers are stuck.
    await until("wins", msMax, () => stuck().length === 0 || this.isOver || undefined).catch(() => false);
    return { tookSeconds: Math.round((performance.now() - startMs) / 10) / 100, stuck: stuck() };
  }

  async finish(): Promise<void> {
    for (const [guest, scripts] of this.#scripts)
      for (const script of scripts)
        await script
          .finish(finishMsMax)
          .catch(() => this.#failures.push(`a worker of ${guest.name} did not finish: it hangs`));
  }

  async kill(): Promise<void> {
    const scripts = [...this.#scripts.values()].flat();
    this.#scripts.clear();
    for (const script of scripts) if (script.ending === undefined) await script.kill();
  }

  /** A fresh process looks what is there. */
  async audit(): Promise<void> {
    const auditor = this.#run(this.#bed.guest(1), "auditor", "auditor", () => undefined);
    const ending = await until("the audit", auditMsMax, () => auditor.ending);
    const found = auditor.messages.find((report) => report.kind === "found");
    if (found === undefined) this.#failures.push(`the audit failed: ${causesIn(ending.stderr)}`);
    else {
      const names = this.#bed.guests.flatMap((guest) => this.#namesOf(guest));
      this.#ledger.audit(found, names, this.#unknown);
    }
  }

  #namesOf(guest: Guest): string[] {
    const length = this.#options.workersPerGuest;
    return Array.from({ length }, (_, index) => `${guest.name}-${index + 1}`);
  }

  #startWorker(guest: Guest, name: string): Script<WorkerReport> {
    const script = this.#run(guest, "worker", name, (report) => this.#hear(guest, name, report));
    void script.ended.then(({ code, signal, isMachineGone, stderr }) => {
      if (isMachineGone) this.#unknown[name] = anyNumber;
      // Workers that the bed has killed are no longer among the scripts.
      else if (code !== 0 && this.scripts(guest).includes(script))
        this.#failures.push(`worker ${name} ended by itself with ${code ?? signal}: ${causesIn(stderr)}`);
    });
    return script;
  }

  #hear(guest: Guest, name: string, report: WorkerReport): void {
    if (report.kind === "won") this.#ledger.note({ name, ...report });
    if (report.kind === "visited") this.#noteVisit(guest, report);
    if (report.kind === "unknown" || report.kind === "lifeOver") this.#unknown[name] = (this.#unknown[name] ?? 0) + 1;
    if (report.kind === "unknown") this.#inDoubt++;
    if (report.kind !== "lifeOver") return;
    this.#livesOver++;
    this.#bed.log(`${name} (${this.part}): ${report.why}`);
  }

  #noteVisit(guest: Guest, visit: ConfirmedVisit): void {
    this.#visitCount++;
    const [fromMs, toMs] = [visit.fromMs + guest.clockMs + clockMs, visit.toMs + guest.clockMs - clockMs];
    const wrong = this.#visits.note({ ...visit, fromMs, toMs: Math.max(fromMs, toMs) });
    if (wrong !== undefined) this.#ledger.violate(wrong);
  }

  #run(
    guest: Guest,
    role: WorkerOrders["role"],
    name: string,
    onMessage: (report: WorkerReport) => void,
  ): Script<WorkerReport> {
    const orders: WorkerOrders = { ...this.#options, role, name, seed: 1 };
    const module = this.#bed.module("harness/torture/worker.ts");
    return guest.run<WorkerReport>(module, [JSON.stringify(orders)], { onMessage });
  }
}

/** The messages of an error and of its causes, without the stacks. */
function causesIn(stderr: string): string {
  const lines = stderr.split("\n").filter((line) => /^\s*(\[cause\]: )?\[?\w*Error\b/.test(line));
  return lines.length === 0 ? stderr.trim() : lines.map((line) => line.trim()).join(" ");
}
