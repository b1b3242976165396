// Preconditions of writes, judged on the very state that the write is linked behind.
import { holdfastError } from "../../errors.ts";
import type { KeyVersion } from "../key/key-history.ts";
import type { Preconditions } from "../model/object-store.ts";
import { versionIdOf } from "./find-version.ts";

/** What a write wants of the current version. */
export interface Wanted extends Preconditions {
  /** The entry itself: all null versions of a key have the same version id. */
  readonly ifEntry?: string | undefined;
}

export function hasPreconditions({ ifMatch, ifNoneMatch, ifVersion, ifEntry }: Wanted): boolean {
  return [ifMatch, ifNoneMatch, ifVersion, ifEntry].some((each) => each !== undefined);
}

/** PRECONDITION_FAILED. */
export function mustMeet(key: string, current: KeyVersion | undefined, wanted: Wanted): void {
  const { ifMatch, ifNoneMatch, ifVersion, ifEntry } = wanted;
  if (ifNoneMatch !== undefined && current?.entry.kind === "put") throw failed(key, current, "it is there already");
  if (ifMatch !== undefined) mustMatch(key, current, ifMatch);
  if (ifVersion !== undefined && (current === undefined || versionIdOf(current) !== ifVersion))
    throw failed(key, current, `its current version is not ${ifVersion}`);
  if (ifEntry !== undefined && current?.entry.id !== ifEntry)
    throw failed(key, current, "it was changed since it was read");
}

/**
 * PRECONDITION_FAILED, also where no object is: the loser cannot know whether the winner has replaced
 * the object or deleted it. `current` is then absent, and a front can tell the two apart.
 */
export function mustMatch(key: string, current: KeyVersion | undefined, ifMatch: string): void {
  if (current?.entry.kind !== "put") throw failed(key, undefined, "it is not there, or was deleted");
  if (!matches(current, ifMatch)) throw failed(key, current, `its ETag is not ${ifMatch}`);
}

/** With or without quotes, as HTTP has them; a star matches every object. */
export function matches({ entry }: KeyVersion, etag: string): boolean {
  return entry.kind === "put" && (etag === "*" || etag.replaceAll('"', "") === entry.etag);
}

export function failed(key: string, current: KeyVersion | undefined, why: string): Error {
  const message = `The condition on ${JSON.stringify(key)} does not hold: ${why}. Nothing was changed: read it again, and decide anew.`;
  return holdfastError("PRECONDITION_FAILED", message, {
    key,
    ...(current === undefined ? {} : { current: versionIdOf(current) }),
  });
}
