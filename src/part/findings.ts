// The problems that a verification has found, in the order in which it found them.
import type { Problem } from "../common.ts";
import { isHoldfastError } from "../errors.ts";
import { hasErrno } from "../ports/disk-error.ts";

/** Further problems are only counted. */
const problemsMax = 1000;

/** A place in a file. Lines count from 1, and the header is line 1; bytes count from 0. */
export interface Spot {
  readonly path: string;
  readonly line?: number | undefined;
  readonly byte?: number | undefined;
}

export class Findings {
  readonly #problems: Problem[] = [];
  #damages = 0;
  #isNewer = false;
  #left = 0;
  readonly #remedy: string;

  /** `remedy` is that of damage for which no other one is given. */
  constructor(remedy = "Restore the file from a backup.") {
    this.#remedy = remedy;
  }

  get hasDamage(): boolean {
    return this.#damages > 0;
  }

  /** Whether a file has a format that this version does not know. */
  get isNewer(): boolean {
    return this.#isNewer;
  }

  /** The last one counts those that are not listed. */
  get problems(): readonly Problem[] {
    if (this.#left === 0) return this.#problems;
    const what = `${this.#left} more problem(s) were found and are not listed.`;
    const more: Problem = {
      severity: "note",
      path: "",
      what,
      remedy: "See to those that are listed.",
      repaired: false,
    };
    return [...this.#problems, more];
  }

  /** What was repaired does not count any more. */
  damage(
    spot: Spot,
    what: string,
    remedy: string = this.#remedy,
    { repaired = false }: { readonly repaired?: boolean } = {},
  ): void {
    if (!repaired) this.#damages++;
    this.#add("damage", spot, what, remedy, repaired);
  }

  /** Harmless, and not needed any more. */
  leftover(spot: Spot, what: string, remedy: string, { repaired = false }: { readonly repaired?: boolean } = {}): void {
    this.#add("leftover", spot, what, remedy, repaired);
  }

  note(spot: Spot, what: string, remedy: string, { repaired = false }: { readonly repaired?: boolean } = {}): void {
    this.#add("note", spot, what, remedy, repaired);
  }

  /**
   * The result of `read`; undefined when the file is damaged, missing or newer, which is then
   * reported about `subject`. Other errors are no damage, and pass through.
   */
  async attempt<T>(spot: Spot, subject: string, read: () => Promise<T>): Promise<T | undefined> {
    try {
      return await read();
    } catch (error) {
      if (isHoldfastError(error, "NEWER_FORMAT")) this.#isNewer = true;
      const { what, remedy } = describeDamage(subject, error);
      this.damage(spot, what, remedy);
      return undefined;
    }
  }

  #add(
    severity: Problem["severity"],
    { path, line, byte }: Spot,
    what: string,
    remedy: string,
    repaired: boolean,
  ): void {
    if (this.#problems.length >= problemsMax) this.#left++;
    else
      this.#problems.push({
        severity,
        path,
        ...(line === undefined ? {} : { line }),
        ...(byte === undefined ? {} : { byte }),
        what,
        remedy,
        repaired,
      });
  }
}

/** What an error says of `subject`. Errors that are no damage are thrown. */
export function describeDamage(
  subject: string,
  error: unknown,
): { readonly what: string; readonly remedy: string | undefined } {
  if (isHoldfastError(error, "NEWER_FORMAT")) {
    const what = `${subject} has a newer format: Holdfast ${error.writtenBy} wrote it.`;
    return { what, remedy: "Upgrade Holdfast here." };
  }
  if (isMissing(error)) return { what: `${subject} is missing.`, remedy: undefined };
  if (isHoldfastError(error, "CORRUPT", "IO_ERROR", "INVALID_PATH"))
    return { what: `${subject} cannot be read: ${error.message}`, remedy: undefined };
  throw error;
}

/** Also if the error was turned into CORRUPT already. */
function isMissing(error: unknown): boolean {
  const cause = isHoldfastError(error, "CORRUPT") ? error.cause : error;
  return hasErrno(cause, "ENOENT", "ENOTDIR", "EISDIR");
}
