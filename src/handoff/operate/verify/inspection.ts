// One inspection of a box: its findings, the repairs for them, and its progress.
import type { Problem, VerifyOptions } from "../../../common.ts";
import { isOutcomeUnknown } from "../../../ports/disk-error.ts";
import { isHoldfastError, messageOf } from "../../../errors.ts";
import { isUnreadable } from "../../../durable/publish/record-file.ts";
import { moveAside } from "../../../part/aside.ts";
import { Findings } from "../../../part/findings.ts";
import type { Box } from "../../box/box.ts";
import { nameExists } from "../../box/names.ts";

export type Repair = () => Promise<void>;

export const repairRemedy = "Run verify with repair.";
const mayNotRead = "Give the user of this process the right to read it, and verify again.";
const restore = "Restore the file from a backup.";

export class Inspection {
  readonly box: Box;
  readonly repairs: Repair[] = [];
  /** Number of tickets checked. */
  checked = 0;
  readonly #findings = new Findings(restore);
  readonly #options: VerifyOptions;
  #done = 0;
  #total = 0;

  /** True until this call has repaired something. */
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

  /** Counts one more item as checked. */
  step(): void {
    this.signal.throwIfAborted();
    this.#done++;
    this.#options.onProgress?.(Math.min(this.#done, this.#total), this.#total);
  }

  damage(
    path: string,
    what: string,
    repair?: Repair,
    remedy: string = repair === undefined ? restore : repairRemedy,
  ): void {
    this.#findings.damage({ path }, what, remedy);
    if (repair !== undefined) this.repairs.push(repair);
  }

  /**
   * Reports a record that cannot be read. A record of a newer release, or one that this user may
   * not read, may be intact: a repair leaves it alone. Rethrows an error that does not concern this
   * record.
   */
  unreadable(path: string, error: unknown, repair?: Repair): void {
    if (!isUnreadable(error) && (!isHoldfastError(error, "IO_ERROR") || isOutcomeUnknown(error))) throw error;
    const what = messageOf(error);
    if (isHoldfastError(error, "NEWER_FORMAT")) this.damage(path, what, undefined, "Upgrade Holdfast here.");
    else if (isHoldfastError(error, "NO_PERMISSION")) this.damage(path, what, undefined, mayNotRead);
    else this.damage(path, what, repair);
  }

  leftover(path: string, what: string, repair: Repair): void {
    this.#findings.leftover({ path }, what, `It does no harm. ${repairRemedy}`);
    this.repairs.push(repair);
  }

  note(path: string, what: string, remedy: string): void {
    this.#findings.note({ path }, what, remedy);
  }

  /** Reports a file that Holdfast did not make. */
  stray(path: string): void {
    this.leftover(path, "It is not a file of this box.", this.aside(path));
  }

  /** Returns the repair that moves `path` to the box's `aside/`, where a person can examine it. */
  aside(path: string): Repair {
    const { disk, layout } = this.box;
    const newId = (): string => this.box.newId();
    return async () => void (await moveAside({ disk, directory: layout.directory, newId }, path));
  }

  /** True if `path` still exists: other processes continue meanwhile. */
  async isStill(path: string): Promise<boolean> {
    return await nameExists(this.box.disk, path);
  }
}

const never = new AbortController().signal;
