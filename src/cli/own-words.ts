// Finds, before the command line is parsed, which of its words belong to Holdfast and not to a
// command that it runs, and which of them are paths.
import { isAbsolute, resolve, sep } from "node:path";
import type { Command } from "commander";
import { isDatabase } from "./commands/location.ts";
import { nativePath, withNativePaths } from "./windows/native-path.ts";

/**
 * Returns the words before `--`, and before a command that Holdfast is to run: that command may
 * have options of the same names.
 */
export function ownArguments(program: Command, words: readonly string[]): readonly string[] {
  let command = program;
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    if (word === "--") return words.slice(0, index);
    if (word.startsWith("-")) {
      // Skips the value of an option, which may look like a command.
      if (command.options.some(({ long, short, required }) => required && (word === long || word === short))) index++;
      continue;
    }
    const next = command.commands.find((each) => each.name() === word);
    if (next !== undefined) command = next;
    else if (runsAnother(command)) return words.slice(0, index);
  }
  return words;
}

/**
 * Returns an unknown word where a verb is expected. Without this check, `--help` after a wrong verb
 * would show the help of its parent.
 */
export function findUnknownVerb(
  program: Command,
  words: readonly string[],
): { readonly command: Command; readonly word: string } | undefined {
  let command = program;
  for (const word of words) {
    if (word.startsWith("-")) continue;
    if (command.commands.length === 0 || word === "help") return undefined;
    const next = command.commands.find((each) => each.name() === word);
    if (next === undefined) return { command, word };
    command = next;
  }
  return undefined;
}

/** A required list of words is a command to run with its arguments; an optional list has files. */
function runsAnother({ registeredArguments }: Command): boolean {
  return registeredArguments.some(({ variadic, required }) => variadic && required);
}

/** A backslash separates names on Windows only. */
const [atStart, atEnd] = sep === "/" ? [/^\/+/, /\/+$/] : [/^[/\\]+/, /[/\\]+$/];

/** Spells `path`, which is at or below `given`, as the user spells `given`: relative stays relative. */
export function asGiven(given: string, path: string): string {
  if (isDatabase(given)) return path;
  const [absolute, found] = [resolve(given), nativePath(path)];
  if (found === absolute) return given;
  if (!found.startsWith(absolute.endsWith(sep) ? absolute : `${absolute}${sep}`)) return found;
  return `${given.replace(atEnd, "")}${sep}${found.slice(absolute.length).replace(atStart, "")}`;
}

/** Returns the arguments and option values of a command that may be paths. */
export function wordsOf(command: Command): string[] {
  const values: readonly unknown[] = [...command.args, ...Object.values(command.opts<Record<string, unknown>>())];
  return values.filter((value): value is string => typeof value === "string");
}

/** An argument longer than this is data, not a path. */
const pathLengthMax = 4096;

/**
 * Returns a function for texts to people: it writes paths as the platform does, and replaces
 * absolute paths by the relative ones among `words`.
 */
export function spellingOf(words: readonly string[]): (text: string) => string {
  const isPath = (word: string): boolean => word !== "" && word.length <= pathLengthMax && !/[\n:]/.test(word);
  const given = words.filter((word) => isPath(word) && !isAbsolute(word));
  // The longest first: a path is replaced before its parent.
  const pairs = given
    .map((word) => [resolve(word), word] as const)
    .sort(([one], [other]) => other.length - one.length)
    .map(
      ([absolute, word]) =>
        [new RegExp(`(?<![\\w./-])${escaped(absolute)}(?![\\w-])`, "g"), nativePath(word.replace(atEnd, ""))] as const,
    );
  return (text) => pairs.reduce((so, [absolute, word]) => so.replace(absolute, () => word), withNativePaths(text));
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
