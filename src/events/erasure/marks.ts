// Finding the personal values in what a user appends: for those who check it they are taken out of their marks, and where they were is remembered.
import { PersonalValue } from "./personal.ts";

/** Where each personal value stands, by `placeKey`, and whose it is. */
export type Marks = Map<string, { readonly path: readonly string[]; readonly subject: string }>;

/** Deeper than anybody nests. What lies deeper is left as it is: a circle is refused when it is serialised, and so is a mark. */
const depthMax = 200;

export function placeKey(path: readonly string[]): string {
  return JSON.stringify(path);
}

/** The same value with everything in clear; the very same when nothing in it is marked. Looks into plain objects and lists only: a mark elsewhere refuses to be serialised. */
export function takeMarks(value: unknown, path: readonly string[], marks: Marks): unknown {
  if (value instanceof PersonalValue) {
    marks.set(placeKey(path), { path, subject: value.subject });
    return value.value;
  }
  if (path.length > depthMax || !isContainer(value)) return value;
  const before = marks.size;
  const take = (each: unknown, key: string): unknown => takeMarks(each, [...path, key], marks);
  const clear = Array.isArray(value)
    ? value.map((each: unknown, index) => take(each, String(index)))
    : Object.fromEntries(Object.entries(value).map(([key, each]) => [key, take(each, key)]));
  return marks.size === before ? value : clear;
}

function isContainer(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || prototype === null) && !("toJSON" in value);
}
