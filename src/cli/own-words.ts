// Which words of a command line are for us, before anything is parsed.
import type { Command } from "commander";

/**
 * Those before `--`; and where a command is given another one to run, those before that one: it may
 * have the same options.
 */
export function ownWords(program: Command, words: readonly string[]): readonly string[] {
  let command = program;
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    if (word === "--") return words.slice(0, index);
    if (word.startsWith("-")) {
      // What an option says is no command, whatever it looks like.
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
 * A word that stands where a verb does and is none. A user who asks for the help of a verb
 * that there is not would be shown that of the command before it, as if all was well.
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

/** A required list of words is a command with its arguments; an optional one is a list of files. */
function runsAnother({ registeredArguments }: Command): boolean {
  return registeredArguments.some(({ variadic, required }) => variadic && required);
}
