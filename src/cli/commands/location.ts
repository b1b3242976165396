// A location on the command line: a folder, or a store in a database. The verbs pass it on as it is.
import { isDatabase, redacted } from "../../format/database-location.ts";
import { HoldfastError } from "../../index.ts";

export { isDatabase } from "../../format/database-location.ts";

/** Throws UNSUPPORTED for a location in a database. `what` is what only a folder has. */
export function mustBeFolder(location: string, what: string): void {
  if (!isDatabase(location)) return;
  const shown = redacted(location);
  throw new HoldfastError("UNSUPPORTED", `${shown}: ${what} is only possible with a folder.`, {
    what,
    location: shown,
  });
}

/** Returns the location without a password, for output that does not go through `Output`. */
export function shownLocation(location: string): string {
  return isDatabase(location) ? redacted(location) : location;
}

/** Removes the passwords of the locations among `words` from texts. */
export function hidingPasswords(words: readonly string[]): (text: string) => string {
  const pairs = words
    .map((word) => word.replace(/^-[^=]*=/, "").replace(/#.*$/, ""))
    .filter((word) => isDatabase(word) && redacted(word) !== word)
    .flatMap((word) => [[word, redacted(word)] as const, [inJson(word), inJson(redacted(word))] as const]);
  return (text) => pairs.reduce((so, [secret, shown]) => so.replaceAll(secret, () => shown), text);
}

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
