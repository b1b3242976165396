// The stored JSON of an event with personal values: `{"$personal": …}` stands in the place of each.
// Keys of the user that look like this one get one more `$`.
import { objectOf, textOf } from "../../format/decoding.ts";
import { erased } from "./personal.ts";
import { isMarked, placeKey, type Marks } from "./marks.ts";
import { keyIdOf, seal, unseal, type SealedValue, type ValuePlace } from "./sealed-value.ts";

const mark = "$personal";
const lookalike = /^\$+personal$/;
const escaped = /^\$\$+personal$/;

export type SubjectKeyMap = ReadonlyMap<string, Uint8Array>;
type EventPlace = Pick<ValuePlace, "type" | "id">;

/**
 * `json` is plain JSON. Removes the marks that it finds from `marks`. If any are left, their values
 * were not found, and the result must not be stored.
 */
export function sealTree(
  json: unknown,
  place: EventPlace,
  path: readonly string[],
  marks: Marks,
  keys: SubjectKeyMap,
): unknown {
  const found = marks.get(placeKey(path));
  if (found !== undefined && isMarked(found, json)) {
    const key = keys.get(found.subject);
    if (key === undefined) throw new Error(`There is no key for ${found.subject}.`);
    marks.delete(placeKey(path));
    return { [mark]: seal(key, found.subject, { ...place, path }, JSON.stringify(json)) };
  }
  return mapTree(json, (each, key) => sealTree(each, place, [...path, key], marks, keys), escapeKey);
}

/** The subjects whose keys are needed to open it. */
export function subjectsIn(json: unknown, subjects: Set<string> = new Set()): Set<string> {
  const sealed = findSealed(json);
  if (sealed !== undefined) subjects.add(sealed.subject);
  else mapTree(json, (each) => subjectsIn(each, subjects));
  return subjects;
}

/**
 * Opens the values for which there is a key, and puts `Erased` for the others. Throws for a value
 * that was altered.
 */
export function openTree(json: unknown, place: EventPlace, path: readonly string[], keys: SubjectKeyMap): unknown {
  const sealed = findSealed(json);
  if (sealed === undefined)
    return mapTree(json, (each, key) => openTree(each, place, [...path, unescapeKey(key)], keys), unescapeKey);
  const key = keys.get(sealed.subject);
  if (key === undefined || keyIdOf(key) !== sealed.key) return erased(sealed.subject);
  return JSON.parse(unseal(key, sealed, { type: place.type, id: place.id, path }));
}

function findSealed(json: unknown): SealedValue | undefined {
  if (typeof json !== "object" || json === null || !(mark in json)) return undefined;
  const { subject, key, iv, tag, text } = objectOf(json[mark]);
  return { subject: textOf(subject), key: textOf(key), iv: textOf(iv), tag: textOf(tag), text: textOf(text) };
}

function escapeKey(key: string): string {
  return lookalike.test(key) ? `$${key}` : key;
}

function unescapeKey(key: string): string {
  return escaped.test(key) ? key.slice(1) : key;
}

/** A copy with each field or item replaced; a value without parts as it is. */
function mapTree(
  json: unknown,
  map: (each: unknown, key: string) => unknown,
  rename: (key: string) => string = (key) => key,
): unknown {
  if (Array.isArray(json)) return json.map((each: unknown, index) => map(each, String(index)));
  if (typeof json !== "object" || json === null) return json;
  return Object.fromEntries(Object.entries(json).map(([key, each]) => [rename(key), map(each, key)]));
}
