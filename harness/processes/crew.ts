// A crew: child processes that run the same module, all their reports in the order of arrival, and the promise that no
// child outlives it.
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
  /** The start of the child that sent this report, from 1. */
  readonly start: number;
  /** The time of arrival, measured from the creation of the crew. */
  readonly atMs: number;
  readonly report: Report;
}

export interface Ended extends Ending {
  readonly child: string;
  readonly start: number;
  readonly atMs: number;
}

/** The time that a child may take to finish before it counts as hanging. */
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
            // The children write only reports to that pipe: their module and the type `Report` belong together.
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

  /** The children that ended on their own. */
  get failures(): Ended[] {
    return this.endings.filter(({ wanted }) => !wanted);
  }

  /**
   * Starts all children, runs `action`, and ends all children, even if `action` fails or this process ends meanwhile.
   * Only a SIGKILL of this process can leave a child behind, and only a stopped one: the others notice that their
   * parent is gone.
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

  /** Tells all children to finish. Returns the names of those that did not, and were killed. */
  async finish(): Promise<string[]> {
    const inTime = await Promise.all(this.children.map((child) => child.finish(finishMs)));
    return this.children.filter((_child, index) => !inTime[index]).map(({ name }) => name);
  }
}
