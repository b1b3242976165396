// Expectations of given-when-then tests: compares events and results, and shows differences.
import { isErrorLike, messageOf } from "../../errors.ts";
import { inspect, isDeepStrictEqual } from "node:util";

/** The properties of an event that a test compares. Time and id are not among them. */
export interface ComparedEvent {
  readonly type: string;
  readonly data: unknown;
  readonly tags: readonly string[];
}

export function comparedEventOf(event: {
  readonly type: string;
  readonly data: unknown;
  readonly tags?: readonly string[] | undefined;
}): ComparedEvent {
  // Normalized as a log returns it: data went through JSON, and tags are a set.
  const data: unknown = event.data === undefined ? undefined : JSON.parse(JSON.stringify(event.data));
  return { type: event.type, data, tags: [...new Set(event.tags)].sort() };
}

/** The expected error: a pattern of its message, its class, or a function that returns true for it. */
export type Refusal = RegExp | (abstract new (...parameters: never[]) => Error) | ((error: unknown) => boolean);
type ErrorClass = Exclude<Refusal, RegExp | ((error: unknown) => boolean)>;

export function refusalFits(expected: Refusal, error: unknown): boolean {
  if (expected instanceof RegExp) return expected.test(messageOf(error));
  return isErrorClass(expected) ? error instanceof expected : expected(error);
}

function isErrorClass(expected: ErrorClass | ((error: unknown) => boolean)): expected is ErrorClass {
  return isErrorLike(expected.prototype);
}

export function checkEqual(what: string, actual: unknown, expected: unknown): void {
  if (isDeepStrictEqual(actual, expected)) return;
  const error = unexpected(`${what}\n${differenceOf(describeValue(expected), describeValue(actual))}`);
  // Test runners that know these fields show their own diff.
  throw Object.assign(error, { actual, expected });
}

export function unexpected(message: string, cause?: unknown): Error {
  const error = new Error(message, cause === undefined ? undefined : { cause });
  error.name = "AssertionError";
  return error;
}

export function describeValue(value: unknown): string {
  return inspect(value, { depth: 20, sorted: true, breakLength: 80, compact: 1, maxArrayLength: 1_000 });
}

export function describeThrown(error: unknown): string {
  return isErrorLike(error) ? `${error.name}: ${error.message}` : describeValue(error);
}

/**
 * Shows the difference line by line: common lines at the beginning and end once, and between them the expected lines
 * (-) and the actual ones (+).
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
