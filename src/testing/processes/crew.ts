// A crew: children that run the same module, everything that they reported in the order of arrival,
// and the promise that none outlives it.
import { Child, type Ending } from "./child.ts";

export interface CrewOptions<Report> {
  readonly names: readonly string[];
  readonly module: string;
  readonly argsOf: (name: string) => readonly string[];
  readonly onReport?: (received: Received<Report>) => void;
  readonly onEnd?: (ended: Ended) => void;
}

export interface Received<Report> {
  readonly from: string;
  /** Which start of the child said it, from 1. */
  readonly start: number;
  /** When it arrived, since the crew was made. */
  readonly atMs: number;
  readonly report: Report;
}

export interface Ended extends Ending {
  readonly child: string;
  readonly start: number;
  readonly atMs: number;
}

/** How long a child that was told to finish may take, before it counts as hanging. */
const finishMs = 60_000;

export class Crew<Report> {
  readonly children: readonly Child[];
  readonly history: Received<Report>[] = [];
  readonly endings: Ended[] = [];
  readonly #startedAtMs = performance.now();

  constructor({ names, module, argsOf, onReport, onEnd }: CrewOptions<Report>) {
    const now = (): number => performance.now() - this.#startedAtMs;
    this.children = names.map(
      (name) =>
        new Child({
          name,
          module,
          args: argsOf(name),
          onReport: (child, report) => {
            // Nothing else is written to that pipe: the module of the children and the type
            // `Report` belong together.
            const received = { from: name, start: child.starts, atMs: now(), report: report as Report };
            this.history.push(received);
            onReport?.(received);
          },
          onEnd: (child, ending) => {
            const ended = { ...ending, child: name, start: child.starts, atMs: now() };
            this.endings.push(ended);
            onEnd?.(ended);
          },
        }),
    );
  }

  /** Children that ended by themselves. */
  get failures(): Ended[] {
    return this.endings.filter(({ wanted }) => !wanted);
  }

  /**
   * Starts all, runs `action`, and ends all, whatever happens: also when `action` fails, and when
   * this process ends meanwhile. Only a SIGKILL of this process can leave a child behind, and only
   * one that is stopped at that moment: the others see that their parent is gone.
   */
  async run<T>(action: (crew: this) => Promise<T>): Promise<T> {
    const killAll = (): void => this.children.forEach((child) => child.killNow());
    process.once("exit", killAll);
    try {
      for (const child of this.children) child.start();
      return await action(this);
    } finally {
      await Promise.all(this.children.map((child) => child.kill()));
      process.off("exit", killAll);
    }
  }

  /** Tells all to end by themselves; gives the names of those that did not, and were killed. */
  async finish(): Promise<string[]> {
    const inTime = await Promise.all(this.children.map((child) => child.finish(finishMs)));
    return this.children.filter((_child, index) => !inTime[index]).map(({ name }) => name);
  }
}
