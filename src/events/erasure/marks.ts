// Finds the personal values in an event: unwraps them for validators, and remembers their paths.
import { isDeepStrictEqual } from "node:util";
import { PersonalValue } from "./personal.ts";

export interface MarkedValue {
  readonly path: readonly string[];
  readonly subject: string;
  /** True if the path goes through a list. Then it is valid only if no validator reorders that list. */
  readonly isInList: boolean;
  /** For a value in a list: its JSON. Undefined if JSON cannot represent it. */
  readonly json: string | undefined;
}

/** The marks of one event, by `markKey`. */
export type Marks = Map<string, MarkedValue>;

/** Values nested deeper are not searched. Serialization then throws for a circular reference, and for a mark. */
const depthMax = 200;

export function markKey(path: readonly string[]): string {
  return JSON.stringify(path);
}

/**
 * Returns the value with marked values in clear text, and adds each mark to `marks`. Returns the same object if
 * nothing is marked. Searches only plain objects and lists: a mark anywhere else makes serialization throw.
 */
export function unwrapPersonal(value: unknown, path: readonly string[], marks: Marks, isInList = false): unknown {
  if (value instanceof PersonalValue) {
    // Serialize before validation: a validator may change the object.
    const json = isInList ? findJson(value.value) : undefined;
    marks.set(markKey(path), { path, subject: value.subject, isInList, json });
    return value.value;
  }
  if (path.length > depthMax || !isContainer(value)) return value;
  const before = marks.size;
  const isList = isInList || Array.isArray(value);
  const take = (each: unknown, key: string): unknown => unwrapPersonal(each, [...path, key], marks, isList);
  const clear = Array.isArray(value)
    ? value.map((each: unknown, index) => take(each, String(index)))
    : Object.fromEntries(Object.entries(value).map(([key, each]) => [key, take(each, key)]));
  return marks.size === before ? value : clear;
}

/**
 * True if `found`, the value at the path of the mark, is still the marked one. A property keeps its path, so its
 * value counts, even if it was changed. In a list that was sorted or filtered, another item may have that path: it
 * would be sealed under the wrong key, and the marked one stored in clear text.
 */
export function isMarked({ isInList, json }: MarkedValue, found: unknown): boolean {
  return !isInList || (json !== undefined && isDeepStrictEqual(found, JSON.parse(json)));
}

function findJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    // Serializing the whole event will throw for it, with the reason.
    return undefined;
  }
}

function isContainer(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || prototype === null) && !("toJSON" in value);
}
