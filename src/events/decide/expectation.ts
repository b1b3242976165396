// Expectations of given-when-then tests: what is compared, and how a difference is shown.
import { inspect, isDeepStrictEqual } from "node:util";

/** What a test compares of an event: neither its time nor its id. */
export interface Facts {
  readonly type: string;
  readonly data: unknown;
  readonly tags: readonly string[];
}

export function factsOf(event: {
  readonly type: string;
  readonly data: unknown;
  readonly tags?: readonly string[] | undefined;
}): Facts {
  // As a log gives it back: an event is JSON, and its tags are a set.
  const data: unknown = event.data === undefined ? undefined : JSON.parse(JSON.stringify(event.data));
  return { type: event.type, data, tags: [...new Set(event.tags)].sort() };
}

/**
 * What a refusal must be: a pattern of its message, its class, or a function that returns true for
 * it.
 */
export type Refusal = RegExp | ErrorClass | ((error: unknown) => boolean);
// oxlint-disable-next-line typescript/no-explicit-any -- an error class may take any arguments
type ErrorClass = abstract new (...parameters: any[]) => Error;

export function refusalFits(expected: Refusal, error: unknown): boolean {
  if (expected instanceof RegExp) return expected.test(error instanceof Error ? error.message : String(error));
  return isErrorClass(expected) ? error instanceof expected : expected(error);
}

function isErrorClass(expected: ErrorClass | ((error: unknown) => boolean)): expected is ErrorClass {
  return expected === Error || expected.prototype instanceof Error;
}

export function checkEqual(what: string, actual: unknown, expected: unknown): void {
  if (isDeepStrictEqual(actual, expected)) return;
  const error = unexpected(`${what}\n${differenceOf(shown(expected), shown(actual))}`);
  // Test runners that know these fields show the difference their own way.
  throw Object.assign(error, { actual, expected });
}

export function unexpected(message: string, cause?: unknown): Error {
  const error = new Error(message, cause === undefined ? undefined : { cause });
  error.name = "AssertionError";
  return error;
}

export function shown(value: unknown): string {
  return inspect(value, { depth: 20, sorted: true, breakLength: 80, compact: 1, maxArrayLength: 1_000 });
}

export function told(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : shown(error);
}

/**
 * By lines: the common beginning and end once, and between them what was expected (-) and what was
 * found (+).
 */
function differenceOf(expected: string, actual: string): string {
  const [before, after] = [expected.split("\n"), actual.split("\n")];
  const same = before.findIndex((line, index) => line !== after[index]);
  const start = same < 0 ? before.length : same;
  let end = 0;
  while (end < Math.min(before.length, after.length) - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  return [
    "- expected, + actual",
    ...before.slice(0, start).map((line) => `  ${line}`),
    ...before.slice(start, before.length - end).map((line) => `- ${line}`),
    ...after.slice(start, after.length - end).map((line) => `+ ${line}`),
    ...before.slice(before.length - end).map((line) => `  ${line}`),
  ].join("\n");
}
