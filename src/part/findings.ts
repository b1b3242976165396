// The problems that a verification found, in the order found.
import type { Problem } from "../common.ts";
import { isHoldfastError } from "../errors.ts";
import { hasErrno } from "../ports/disk-error.ts";

/** Further problems are only counted. */
const problemsMax = 1000;

/** A position in a file. Lines count from 1, and the header is line 1; bytes count from 0. */
export interface ProblemLocation {
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

  /** `remedy` is the default for damage without its own. */
  constructor(remedy = "Restore the file from a backup.") {
    this.#remedy = remedy;
  }

  get hasDamage(): boolean {
    return this.#damages > 0;
  }

  /** True if a file has a format that this version does not know. */
  get isNewer(): boolean {
    return this.#isNewer;
  }

  /** The last problem counts those that are not listed. */
  get problems(): readonly Problem[] {
    if (this.#left === 0) return this.#problems;
    const what = `${this.#left} more problem(s) were found and are not listed.`;
    const more: Problem = {
      severity: "note",
      path: "",
      what,
      remedy: "Fix the listed ones first.",
      repaired: false,
    };
    return [...this.#problems, more];
  }

  /** Reports damage. Repaired damage does not count, unless something was lost. */
  damage(
    location: ProblemLocation,
    what: string,
    remedy: string = this.#remedy,
    { repaired = false, isLost = !repaired }: { readonly repaired?: boolean; readonly isLost?: boolean } = {},
  ): void {
    if (isLost) this.#damages++;
    this.#add("damage", location, what, remedy, repaired);
  }

  /** Reports a file that is harmless and no longer needed. */
  leftover(
    location: ProblemLocation,
    what: string,
    remedy: string,
    { repaired = false }: { readonly repaired?: boolean } = {},
  ): void {
    this.#add("leftover", location, what, remedy, repaired);
  }

  note(
    location: ProblemLocation,
    what: string,
    remedy: string,
    { repaired = false }: { readonly repaired?: boolean } = {},
  ): void {
    this.#add("note", location, what, remedy, repaired);
  }

  /**
   * Returns the result of `read`. If the file is damaged, missing or newer, it reports that about
   * `subject` and returns undefined. Other errors are not damage, and are thrown.
   */
  async attempt<T>(location: ProblemLocation, subject: string, read: () => Promise<T>): Promise<T | undefined> {
    try {
      return await read();
    } catch (error) {
      if (isHoldfastError(error, "NEWER_FORMAT")) this.#isNewer = true;
      const { what, remedy } = describeDamage(subject, error);
      this.damage(location, what, remedy);
      return undefined;
    }
  }

  #add(
    severity: Problem["severity"],
    { path, line, byte }: ProblemLocation,
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

/** Like `describeDamage`, and also describes a file that belongs to another user. */
export function describeUnreadable(subject: string, error: unknown): ReturnType<typeof describeDamage> {
  if (isHoldfastError(error, "NO_PERMISSION"))
    return { what: `${subject} cannot be read: ${error.message}`, remedy: undefined };
  return describeDamage(subject, error);
}

/** Describes an error as damage of `subject`. Throws errors that are not damage. */
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

/** True also if the error was already turned into CORRUPT. */
function isMissing(error: unknown): boolean {
  const cause = isHoldfastError(error, "CORRUPT") ? error.cause : error;
  return hasErrno(cause, "ENOENT", "ENOTDIR");
}
