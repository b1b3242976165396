// The demo as a whole: workstations on one folder, kills and pauses for a while, and an audit by a
// process that took no part.
import { setTimeout as sleep } from "node:timers/promises";
import { isHoldfastError } from "../../index.ts";
import { FrontDesk } from "./front-desk.ts";
import { openSharedFolder, type Findings, type SharedFolder, type Receipt } from "./stations/station.ts";
import { stationKinds } from "./workstation.ts";
import { TemporaryFolder } from "./temporary-folder.ts";
import { FaultInjector } from "./trouble.ts";
import { Waker } from "./waker.ts";
import { WorkstationProcess } from "./workstation-process.ts";

export interface DemoOptions {
  /** The shared folder. Default: a new one, removed at the end. */
  readonly directory: string | undefined;
  readonly workstations: number;
  readonly seconds: number;
  readonly sabotage: boolean;
  readonly signal: AbortSignal;
  readonly onStart: (directory: string, isTemporary: boolean) => void;
  readonly onSecond: (figures: DemoFigures) => void;
  /** Called if something could not be cleaned up; the result is reported anyway. */
  readonly onLeftBehind: (why: string) => void;
  /** Called with the address of a console on a store of the demo. If absent, the demo opens neither. */
  readonly onConsole?: ((url: string) => void) | undefined;
  /** Called with the result before the folder is removed; the console stays open until it resolves. */
  readonly onResult: (result: DemoResult) => Promise<void>;
}

export interface DemoFigures {
  readonly seconds: number;
  /** How many pieces of work were acknowledged so far. */
  readonly pieces: number;
  readonly piecesPerSecond: number;
  readonly kills: number;
  readonly pauses: number;
}

export interface StationFindings extends Findings {
  readonly station: string;
  readonly pieces: string;
}

export interface DemoResult extends DemoFigures {
  readonly directory: string;
  readonly workstations: number;
  /** Workstations that ended although the demo had not ended them. */
  readonly failures: readonly string[];
  readonly stations: readonly StationFindings[];
  /** True if nothing was lost, doubled or out of order, and no workstation failed. */
  readonly isSound: boolean;
}

/**
 * Runs the demo. Rejects with the signal's reason if it is interrupted. Leaves no process and, if
 * it can be removed, no temporary folder.
 */
export async function runDemo(options: DemoOptions): Promise<DemoResult> {
  if (options.directory !== undefined) return await runAt(options.directory, options);
  const folder = await TemporaryFolder.make();
  try {
    return await runAt(folder.directory, options);
  } finally {
    if (!(await folder.remove())) options.onLeftBehind(`${folder.directory} could not be removed. Remove it by hand.`);
  }
}

async function runAt(directory: string, options: DemoOptions): Promise<DemoResult> {
  const folder = await openSharedFolder(directory, "demo");
  try {
    return await runIn(folder, options);
  } finally {
    await leave(folder, options);
  }
}

async function runIn(folder: SharedFolder, options: DemoOptions): Promise<DemoResult> {
  options.onStart(folder.directory, options.directory === undefined);
  if (options.onConsole === undefined) return await workIn(folder, options);
  await using desk = await FrontDesk.open(folder.directory);
  options.onConsole(desk.url);
  return await workIn(folder, options, desk);
}

async function workIn(folder: SharedFolder, options: DemoOptions, desk?: FrontDesk): Promise<DemoResult> {
  const run = new DemoRun(options, folder.directory, desk);
  await run.work();
  options.signal.throwIfAborted();
  const stations: StationFindings[] = [];
  for (const { name, pieces, audit } of stationKinds) {
    const receipts = run.receipts.filter(({ station }) => station === name);
    stations.push({ station: name, pieces, ...(await audit(folder, receipts)) });
  }
  const { workstations } = options;
  // An audit proves nothing if there is nothing to look for.
  const failures = run.receipts.length > 0 ? run.failures : [...run.failures, "no workstation got anything done"];
  const isSound = failures.length === 0 && stations.every(isInOrder);
  const result = { ...run.figures(), directory: folder.directory, workstations, failures, stations, isSound };
  await options.onResult(result);
  return result;
}

/**
 * An error is ignored: the result of the demo matters more than leftovers, which the next demo in
 * this folder sweeps.
 */
async function leave({ ground }: SharedFolder, { onLeftBehind }: DemoOptions): Promise<void> {
  try {
    await ground.close();
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    onLeftBehind(error.message);
  }
}

/** How long to wait for the first piece of work of each station. */
const startMsMax = 60_000;

function isInOrder({ lost, doubled, disorder }: Findings): boolean {
  return lost.length + doubled.length + disorder.length === 0;
}

class DemoRun {
  readonly receipts: Receipt[] = [];
  readonly failures: string[] = [];
  readonly #options: DemoOptions;
  readonly #workstations: readonly WorkstationProcess[];
  readonly #trouble: FaultInjector;
  readonly #waker = new Waker();
  /** Returns the stations that have done some work. */
  readonly #stations = new Set<string>();
  readonly #begun = new AbortController();
  #startedAtMs: number = performance.now();
  #endedAtMs: number | undefined;

  constructor(options: DemoOptions, directory: string, desk: FrontDesk | undefined) {
    this.#options = options;
    this.#workstations = Array.from(
      { length: options.workstations },
      (_, index) =>
        new WorkstationProcess({
          name: `till-${String(index + 1).padStart(2, "0")}`,
          directory,
          sabotage: options.sabotage && index === 0,
          onReceipt: (receipt) => {
            this.receipts.push(receipt);
            desk?.add(receipt);
            this.#stations.add(receipt.station);
            if (this.#stations.size === stationKinds.length) this.#begun.abort();
          },
          onFailure: (why) => {
            this.failures.push(why);
            this.#begun.abort();
          },
          onPause: (pid) => this.#waker.remember(pid),
        }),
    );
    // The saboteur is neither killed nor paused: it would issue a false receipt after each start,
    // and one is easier to follow.
    this.#trouble = new FaultInjector(this.#workstations, ({ isSaboteur }) => !isSaboteur);
  }

  /** Ends all workstations, whatever happens. */
  async work(): Promise<void> {
    const { signal } = this.#options;
    const over = new AbortController();
    const killAll = (): void => this.#workstations.forEach((workstation) => workstation.killNow());
    process.once("exit", killAll);
    try {
      for (const workstation of this.#workstations) workstation.start();
      const trouble = this.#trouble.makeUntil(AbortSignal.any([over.signal, signal]));
      // The seconds begin once every station has done some work: the time to start all processes
      // depends on the machine.
      await sleep(startMsMax, undefined, { signal: AbortSignal.any([this.#begun.signal, signal]) }).catch(
        () => undefined,
      );
      this.#startedAtMs = performance.now();
      await this.#countSeconds();
      over.abort();
      await trouble;
    } finally {
      over.abort();
      await Promise.all(this.#workstations.map((workstation) => workstation.end()));
      process.off("exit", killAll);
      this.#waker.dismiss();
      this.#endedAtMs = performance.now();
    }
  }

  figures(): DemoFigures {
    const seconds = ((this.#endedAtMs ?? performance.now()) - this.#startedAtMs) / 1000;
    const pieces = this.receipts.length;
    const { kills, pauses } = this.#trouble;
    return {
      seconds: Math.round(seconds * 10) / 10,
      pieces,
      piecesPerSecond: Math.round(pieces / seconds),
      kills,
      pauses,
    };
  }

  async #countSeconds(): Promise<void> {
    const { seconds, signal, onSecond } = this.#options;
    for (let second = 1; second <= seconds && !signal.aborted; second++) {
      // The signal ended the sleep. The caller checks the signal.
      await sleep(1000, undefined, { signal }).catch(() => undefined);
      if (!signal.aborted) onSecond(this.figures());
    }
  }
}
