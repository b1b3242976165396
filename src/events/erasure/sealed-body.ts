// The stored JSON of an event with personal values: each is replaced by `{"$personal": …}`. A
// user's key that looks like this one gets one more `$`.
import { objectOf, textOf } from "../../format/decoding.ts";
import { erased } from "./personal.ts";
import { isMarked, markKey, type Marks } from "./marks.ts";
import { keyIdOf, seal, unseal, type SealedValue, type ValueAddress } from "./sealed-value.ts";

const mark = "$personal";
const lookalike = /^\$+personal$/;
const escaped = /^\$\$+personal$/;

export type SubjectKeyMap = ReadonlyMap<string, Uint8Array>;
type EventAddress = Pick<ValueAddress, "type" | "id">;

/**
 * `json` is plain JSON. Removes each mark that it finds from `marks`. If any mark remains, its value was not found,
 * and the result must not be stored.
 */
export function sealTree(
  json: unknown,
  address: EventAddress,
  path: readonly string[],
  marks: Marks,
  keys: SubjectKeyMap,
): unknown {
  const found = marks.get(markKey(path));
  if (found !== undefined && isMarked(found, json)) {
    const key = keys.get(found.subject);
    if (key === undefined) throw new Error(`There is no key for ${found.subject}.`);
    marks.delete(markKey(path));
    return { [mark]: seal(key, found.subject, { ...address, path }, JSON.stringify(json)) };
  }
  return mapTree(json, (each, key) => sealTree(each, address, [...path, key], marks, keys), escapeKey);
}

/** Returns the subjects whose keys are needed to decrypt it. */
export function subjectsIn(json: unknown, subjects: Set<string> = new Set()): Set<string> {
  const sealed = findSealed(json);
  if (sealed !== undefined) subjects.add(sealed.subject);
  else mapTree(json, (each) => subjectsIn(each, subjects));
  return subjects;
}

/** Decrypts the values whose key exists, and replaces the others by `Erased`. Throws for an altered value. */
export function openTree(json: unknown, address: EventAddress, path: readonly string[], keys: SubjectKeyMap): unknown {
  const sealed = findSealed(json);
  if (sealed === undefined)
    return mapTree(json, (each, key) => openTree(each, address, [...path, unescapeKey(key)], keys), unescapeKey);
  const key = keys.get(sealed.subject);
  if (key === undefined || keyIdOf(key) !== sealed.key) return erased(sealed.subject);
  return JSON.parse(unseal(key, sealed, { type: address.type, id: address.id, path }));
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

/** Returns a copy with each property or item replaced. Returns a scalar unchanged. */
function mapTree(
  json: unknown,
  map: (each: unknown, key: string) => unknown,
  rename: (key: string) => string = (key) => key,
): unknown {
  if (Array.isArray(json)) return json.map((each: unknown, index) => map(each, String(index)));
  if (typeof json !== "object" || json === null) return json;
  return Object.fromEntries(Object.entries(json).map(([key, each]) => [rename(key), map(each, key)]));
}
