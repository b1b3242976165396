// Preconditions of writes. They are checked on exactly the state after which the write is linked.
import { holdfastError } from "../../errors.ts";
import type { KeyVersion } from "../key/key-versions.ts";
import type { Preconditions } from "../model/object.ts";
import { versionIdOf } from "./find-version.ts";

/** The conditions of a write on the current version. */
export interface WriteConditions extends Preconditions {
  /**
   * The id that the entry of the current version must have. All null versions of a key share one
   * version id, so that is not enough.
   */
  readonly ifEntry?: string | undefined;
}

export function hasPreconditions({ ifMatch, ifNoneMatch, ifVersion, ifEntry }: WriteConditions): boolean {
  return [ifMatch, ifNoneMatch, ifVersion, ifEntry].some((each) => each !== undefined);
}

/** Throws PRECONDITION_FAILED. */
export function mustMeet(key: string, current: KeyVersion | undefined, wanted: WriteConditions): void {
  const { ifMatch, ifNoneMatch, ifVersion, ifEntry } = wanted;
  if (ifNoneMatch !== undefined && current !== undefined && matches(current, ifNoneMatch))
    throw failed(key, current, ifNoneMatch === "*" ? "it already exists" : `its ETag is among ${ifNoneMatch}`);
  if (ifMatch !== undefined) mustMatch(key, current, ifMatch);
  if (ifVersion !== undefined && (current === undefined || versionIdOf(current) !== ifVersion))
    throw failed(key, current, `its current version is not ${ifVersion}`);
  if (ifEntry !== undefined && current?.entry.id !== ifEntry)
    throw failed(key, current, "it was changed since it was read");
}

/**
 * Throws PRECONDITION_FAILED, even if there is no object: the loser cannot know whether the winner
 * replaced or deleted it. `current` is then absent, so that a front end can tell the cases apart.
 */
export function mustMatch(key: string, current: KeyVersion | undefined, ifMatch: string): void {
  if (current?.entry.kind !== "put") throw failed(key, undefined, "it does not exist, or was deleted");
  if (!matches(current, ifMatch)) throw failed(key, current, `its ETag is not ${ifMatch}`);
}

/** Accepts one ETag or a list, with or without quotes, as in HTTP. "*" matches every object. */
export function matches({ entry }: KeyVersion, etags: string): boolean {
  if (entry.kind !== "put") return false;
  const listed = etags.split(",").map((each) => each.trim().replace(/^W\//, "").replaceAll('"', ""));
  return listed.includes("*") || listed.includes(entry.etag);
}

export function failed(key: string, current: KeyVersion | undefined, why: string): Error {
  const message = `The condition on ${JSON.stringify(key)} does not hold: ${why}. Nothing was changed. Read it again and decide again.`;
  return holdfastError("PRECONDITION_FAILED", message, {
    key,
    ...(current === undefined ? {} : { current: versionIdOf(current) }),
  });
}
