// What a lock file without a readable record may be: the beginning of one, a malformed one, or somebody's data. Pure.
import { linesOf, recordKeys } from "./lock-file.ts";

/**
 * - `torn`: nothing, or the beginning of a record and nothing else. Whoever wrote it came no further.
 * - `malformed`: both required keys, with values that cannot be read: a time in milliseconds, a name for a process.
 *   Its writer has finished, and may be at work.
 * - `unfinished`: fields with other keys, which may be the beginning of a record of another program, or a file of settings. Nobody can tell, unless the rest is
 *   written soon.
 * - `data`: no record begins like this.
 */
export type Contents = "torn" | "malformed" | "unfinished" | "data";

const fieldKey = /^[A-Za-z_][\w.-]{0,63}$/;
/** One of these is the first line of whoever writes what the protocol requires. */
const requiredKeys = ["pid", "timestamp"];

/** Of a text that is no record. */
export function contentsOf(text: string): Contents {
  const lines = linesOf(text);
  // Only the last one can have been cut off: the others have their ends.
  const cut = lines.pop() ?? "";
  const whole = lines.filter((line) => line !== "");
  if (![...whole, cut.includes("=") ? cut : `${cut || "_"}=`].every(isField)) return "data";
  if (
    requiredKeys.every((key) =>
      [...whole, cut].some((line) => line.length > key.length + 1 && line.startsWith(`${key}=`)),
    )
  )
    return "malformed";
  const [first = cut, ...others] = cut === "" ? whole : [...whole, cut];
  if (first === "") return "torn";
  return mayBegin(first, requiredKeys) && others.every((line) => mayBegin(line, recordKeys)) ? "torn" : "unfinished";
}

/** Key and value on one line, without anything that no program writes into a text. */
function isField(line: string): boolean {
  const at = line.indexOf("=");
  return at > 0 && fieldKey.test(line.slice(0, at)) && !/\p{Cc}/u.test(line.slice(at).replaceAll("\t", " "));
}

function mayBegin(line: string, keys: readonly string[]): boolean {
  return keys.some((key) => (line.includes("=") ? line.startsWith(`${key}=`) : key.startsWith(line)));
}
