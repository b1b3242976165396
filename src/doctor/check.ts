// A check: a question to the file system that always gets an answer, even if the test fails.
import { errnoOf, hasErrno } from "../ports/disk-error.ts";
import type { Ports } from "../ports/ports.ts";
import type { DoctorCheck } from "./report.ts";

export interface CheckContext {
  readonly ports: Ports;
  /** An empty directory for this examination. Each check uses its own names. */
  readonly scratch: string;
}

export type CheckAnswer = Omit<DoctorCheck, "id" | "question">;

export interface CheckDefinition {
  readonly id: string;
  readonly question: string;
  /** True if Holdfast cannot work without it: then an unexpected failure is "bad", otherwise "limited". */
  readonly isVital: boolean;
  readonly ask: (context: CheckContext) => Promise<CheckAnswer>;
}

/** Throws DISK_FULL: nothing can be examined on a full disk. */
export async function runCheck(check: CheckDefinition, context: CheckContext): Promise<DoctorCheck> {
  const { id, question, isVital } = check;
  try {
    return { id, question, ...(await check.ask(context)) };
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === undefined || hasErrno(error, "ENOSPC", "EDQUOT")) throw error;
    return {
      id,
      question,
      verdict: isVital ? "bad" : "limited",
      finding: `The check failed: ${(error as Error).message}.`,
      meaning: isVital
        ? "Holdfast needs this, and nothing shows that it works."
        : "Nothing shows that it works, so do not count on it.",
      remedy: "Check the system's log for this mount, fix the cause and run the doctor again.",
    };
  }
}

export function good(finding: string, meaning: string, measured?: Readonly<Record<string, number>>): CheckAnswer {
  return { verdict: "good", finding, meaning, ...(measured === undefined ? {} : { measured }) };
}

export function limited(finding: string, meaning: string, remedy?: string): CheckAnswer {
  return { verdict: "limited", finding, meaning, ...(remedy === undefined ? {} : { remedy }) };
}

export function bad(finding: string, meaning: string, remedy: string): CheckAnswer {
  return { verdict: "bad", finding, meaning, remedy };
}

/**
 * Returns the POSIX name of the failure; undefined if the action succeeded. Throws errors that are
 * not disk failures.
 */
export async function failureOf(action: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await action();
    return undefined;
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === undefined || hasErrno(error, "ENOSPC", "EDQUOT")) throw error;
    return errno;
  }
}

export function bytesOf(text: string): Uint8Array {
  return Buffer.from(text);
}

const probeBytesMax = 4096;

/** Returns the content of a probe file; undefined if it is absent. */
export async function findText({ ports }: Pick<CheckContext, "ports">, path: string): Promise<string | undefined> {
  try {
    return Buffer.from(await ports.disk.readFile(path, probeBytesMax)).toString("utf8");
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return undefined;
    throw error;
  }
}

export function formatMs(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return `${Number((ms / 1_000).toFixed(1))} s`;
}
