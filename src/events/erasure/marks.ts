// Finding the personal values in what a user appends: for those who check it they are taken out of their marks, and where they were is remembered.
import { isDeepStrictEqual } from "node:util";
import { PersonalValue } from "./personal.ts";

export interface Mark {
  readonly path: readonly string[];
  readonly subject: string;
  /** Whether a list is on the way to it: then its path says where it stands only as long as nobody reorders that list. */
  readonly isInList: boolean;
  /** In a list: what was marked. Undefined also for what JSON does not have. */
  readonly json: string | undefined;
}

/** Where each personal value stands, by `placeKey`, and whose it is. */
export type Marks = Map<string, Mark>;

/** Deeper than anybody nests. What lies deeper is left as it is: a circle is refused when it is serialised, and so is a mark. */
const depthMax = 200;

export function placeKey(path: readonly string[]): string {
  return JSON.stringify(path);
}

/** The same value with everything in clear; the very same when nothing in it is marked. Looks into plain objects and lists only: a mark elsewhere refuses to be serialised. */
export function takeMarks(value: unknown, path: readonly string[], marks: Marks, isInList = false): unknown {
  if (value instanceof PersonalValue) {
    // As text, and now: a validator may work on the very object.
    const json = isInList ? findJson(value.value) : undefined;
    marks.set(placeKey(path), { path, subject: value.subject, isInList, json });
    return value.value;
  }
  if (path.length > depthMax || !isContainer(value)) return value;
  const before = marks.size;
  const isList = isInList || Array.isArray(value);
  const take = (each: unknown, key: string): unknown => takeMarks(each, [...path, key], marks, isList);
  const clear = Array.isArray(value)
    ? value.map((each: unknown, index) => take(each, String(index)))
    : Object.fromEntries(Object.entries(value).map(([key, each]) => [key, take(each, key)]));
  return marks.size === before ? value : clear;
}

/**
 * Whether `found`, at the path of the mark, is what was marked. A field keeps its name, so what stands there is the same value, changed at most. In a list that was
 * sorted or filtered it may be the next one: sealed in the place of a value that is now in clear, or under the key of somebody else.
 */
export function isMarked({ isInList, json }: Mark, found: unknown): boolean {
  return !isInList || (json !== undefined && isDeepStrictEqual(found, JSON.parse(json)));
}

function findJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    // Told, with the reason, when the event as a whole is serialised.
    return undefined;
  }
}

function isContainer(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || prototype === null) && !("toJSON" in value);
}
