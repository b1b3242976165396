// One look at everything in a box: what is wrong, what can be done about it, and how far the look has come.
import type { Problem, VerifyOptions } from "../../../common.ts";
import { moveAside } from "../../../part/aside.ts";
import { Findings } from "../../../part/findings.ts";
import type { Box } from "../../box/box.ts";

export type Repair = () => Promise<void>;

export const repairable = "Run verify with repair.";
const restore = "Restore the file from a backup.";

export class Inspection {
  readonly box: Box;
  readonly repairs: Repair[] = [];
  /** How many tickets were looked at. */
  checked = 0;
  readonly #findings = new Findings(restore);
  readonly #options: VerifyOptions;
  #done = 0;
  #total = 0;

  /** Whether nothing was repaired before in the same call. */
  readonly isFirst: boolean;

  constructor(box: Box, options: VerifyOptions, isFirst: boolean) {
    this.box = box;
    this.isFirst = isFirst;
    this.#options = options;
  }

  get ok(): boolean {
    return !this.#findings.hasDamage;
  }

  get problems(): readonly Problem[] {
    return this.#findings.problems;
  }

  get signal(): AbortSignal {
    return this.#options.signal ?? never;
  }

  expect(count: number): void {
    this.#total += count;
  }

  /** One more of what is expected was looked at. */
  step(): void {
    this.signal.throwIfAborted();
    this.#done++;
    this.#options.onProgress?.(Math.min(this.#done, this.#total), this.#total);
  }

  damage(
    path: string,
    what: string,
    repair?: Repair,
    remedy: string = repair === undefined ? restore : repairable,
  ): void {
    this.#findings.damage({ path }, what, remedy);
    if (repair !== undefined) this.repairs.push(repair);
  }

  leftover(path: string, what: string, repair: Repair): void {
    this.#findings.leftover({ path }, what, `It does no harm. ${repairable}`);
    this.repairs.push(repair);
  }

  note(path: string, what: string, remedy: string): void {
    this.#findings.note({ path }, what, remedy);
  }

  /** A file that Holdfast has not made. */
  stray(path: string): void {
    this.leftover(path, "It is no file of this box.", this.aside(path));
  }

  /** The repair that moves `path` into `aside/` of the box, where a person can look at it. */
  aside(path: string): Repair {
    const { disk, layout } = this.box;
    const newId = (): string => this.box.newId();
    return async () => void (await moveAside({ disk, directory: layout.directory, newId }, path));
  }

  /** Whether what was found wrong is still there: other processes go on meanwhile. */
  async isStill(path: string): Promise<boolean> {
    return await this.box.disk.canOpen(path);
  }
}

const never = new AbortController().signal;
