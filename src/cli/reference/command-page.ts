// Command pages: the commander tree as plain data. Completion and the man page are made from it,
// as `--help` is.
import type { Command } from "commander";
import { examplesOf, exitsOf } from "../help.ts";

export interface OptionLine {
  /** All its spellings: `-V`, `--version`. */
  readonly names: readonly string[];
  /** As the help page writes it: `-V, --version`, `--type <name>`. */
  readonly term: string;
  readonly description: string;
  /** True if a word follows as its value. */
  readonly takesValue: boolean;
  /** The only values; empty if any is accepted. */
  readonly choices: readonly string[];
}

export interface ArgumentLine {
  readonly term: string;
  readonly description: string;
  /** The only values; empty if any is accepted. */
  readonly choices: readonly string[];
}

export interface CommandPage {
  /** The words after `holdfast`; empty for the program itself. */
  readonly words: readonly string[];
  readonly summary: string;
  readonly description: string;
  /** What follows the words: `[options] <DIR>`. */
  readonly usage: string;
  readonly arguments: readonly ArgumentLine[];
  readonly options: readonly OptionLine[];
  readonly verbs: readonly { readonly name: string; readonly summary: string }[];
  readonly examples: readonly string[];
  readonly exits: readonly (readonly [code: string, meaning: string])[];
  /** True if its arguments are a command to run, with options of its own. */
  readonly runsCommand: boolean;
}

/** Returns the page of `command` and those of all commands below it, in the order of the help pages. */
export function pagesOf(command: Command, words: readonly string[] = []): CommandPage[] {
  const help = command.createHelp();
  const { required = false, variadic = false } = command.registeredArguments[0] ?? {};
  const below = command.commands.filter((each) => help.visibleCommands(command).includes(each));
  const page: CommandPage = {
    words,
    summary: command.summary(),
    description: command.description(),
    usage: command.usage(),
    arguments: help.visibleArguments(command).map((argument) => ({
      term: help.argumentTerm(argument),
      description: help.argumentDescription(argument),
      choices: argument.argChoices ?? [],
    })),
    options: help.visibleOptions(command).map((option) => ({
      names: [option.short, option.long].filter((name) => name !== undefined),
      term: help.optionTerm(option),
      description: help.optionDescription(option),
      takesValue: option.required || option.optional,
      choices: option.argChoices ?? [],
    })),
    verbs: below.map((each) => ({ name: each.name(), summary: each.summary() })),
    examples: examplesOf(command),
    exits: exitsOf(command),
    runsCommand: required && variadic,
  };
  return [page, ...below.flatMap((each) => pagesOf(each, [...words, each.name()]))];
}
