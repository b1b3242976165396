// What a scenario of the bed is: a name, and something that is done with guests and a server, at
// the end of which promises were kept or not.
import type { ServerKind } from "./arguments.ts";
import type { Bed } from "./bed.ts";

export interface Scenario {
  readonly name: string;
  /** What it shows, in one sentence. */
  readonly about: string;
  /** Default: all. */
  readonly servers?: readonly ServerKind[];
  /** It keeps the guests busy for `secondsOfLoad`, and `--sabotage` makes it fail. */
  readonly isLoad?: boolean;
  /**
   * Rejects when it could not be carried out. Where a promise is broken it says so by
   * `report.violate`, and may go on.
   */
  readonly run: (bed: Bed, report: Report) => Promise<void>;
}

/** What a scenario has to say. */
export class Report {
  readonly notes: string[] = [];
  readonly violations: string[] = [];
  readonly failures: string[] = [];

  /** A figure or a fact for the reader of the run. */
  note(text: string): void {
    this.notes.push(text);
    console.log(`    ${text}`);
  }

  /** A promise that was broken. */
  violate(text: string): void {
    this.violations.push(text);
    console.log(`    VIOLATION: ${text}`);
  }

  /**
   * Something that ended or could not be done. No proof of a broken promise: a sabotage that was
   * meant to break one is not found out by it.
   */
  fail(text: string): void {
    this.failures.push(text);
    console.log(`    FAILURE: ${text}`);
  }

  must(condition: boolean, otherwise: string): void {
    if (!condition) this.violate(otherwise);
  }
}
