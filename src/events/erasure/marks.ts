// Finds the personal values in an event: takes them out of their marks for validators, and
// remembers where they stood.
import { isDeepStrictEqual } from "node:util";
import { PersonalValue } from "./personal.ts";

export interface Mark {
  readonly path: readonly string[];
  readonly subject: string;
  /**
   * Whether its path goes through a list: then the path is right only while no validator reorders
   * that list.
   */
  readonly isInList: boolean;
  /** In a list: the marked value as JSON. Undefined also for a value that JSON cannot carry. */
  readonly json: string | undefined;
}

/** By `placeKey`. */
export type Marks = Map<string, Mark>;

/** What lies deeper is left as it is: serialising refuses a circular reference, and a mark. */
const depthMax = 200;

export function placeKey(path: readonly string[]): string {
  return JSON.stringify(path);
}

/**
 * The value with all marked values in clear; the same object when nothing in it is marked. Looks
 * into plain objects and lists only: a mark elsewhere refuses to be serialised.
 */
export function takeMarks(value: unknown, path: readonly string[], marks: Marks, isInList = false): unknown {
  if (value instanceof PersonalValue) {
    // As text, and now: a validator may change the object.
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
 * Whether `found`, at the path of the mark, is the marked value. A field keeps its name, so the
 * value there is the same one, perhaps changed. In a list that was sorted or filtered it may be
 * another one: that would be sealed under the wrong key, and the marked one stored in clear.
 */
export function isMarked({ isInList, json }: Mark, found: unknown): boolean {
  return !isInList || (json !== undefined && isDeepStrictEqual(found, JSON.parse(json)));
}

function findJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    // Serialising the whole event reports it, with the reason.
    return undefined;
  }
}

function isContainer(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || prototype === null) && !("toJSON" in value);
}
