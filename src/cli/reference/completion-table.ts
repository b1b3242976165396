// The completion table: which words may follow in each command. The scripts of all shells hold the
// same table, each in the syntax of its shell.
import type { CommandPage } from "./command-page.ts";

export interface Candidate {
  readonly word: string;
  readonly description: string;
}

/** The words that may follow in one command. */
export interface TableRow {
  /** The words of the command, as in `events append`; empty for the program itself. */
  readonly at: string;
  /** Its verbs, or the only values of its argument. */
  readonly verbs: readonly Candidate[];
  readonly options: readonly Candidate[];
  /** Options whose value is a file or a folder. */
  readonly files: readonly string[];
  /** Options whose value is something else. */
  readonly values: readonly string[];
  /** The values of an option that has a fixed list. */
  readonly choices: readonly { readonly option: string; readonly values: readonly string[] }[];
  /** True if its arguments are a command to run. */
  readonly runsCommand: boolean;
}

/** Help texts are one line here: shells show them beside the candidate. */
const descriptionMax = 80;

export function tableOf(pages: readonly CommandPage[]): TableRow[] {
  return pages.map(({ words, verbs, arguments: all, options, runsCommand }) => {
    const valued = options.filter(({ takesValue }) => takesValue);
    const namesOf = (isFile: boolean): string[] =>
      valued.filter(({ term }) => isPath(term) === isFile).flatMap(({ names }) => names);
    return {
      at: words.join(" "),
      verbs: [
        ...verbs.map(({ name, summary }) => ({ word: name, description: shortened(summary) })),
        ...all.flatMap(({ choices, description }) => choices.map((word) => ({ word, description }))),
      ],
      options: options.flatMap(({ names, description }) =>
        names.map((word) => ({ word, description: shortened(description) })),
      ),
      files: namesOf(true),
      values: namesOf(false),
      choices: valued
        .filter(({ choices }) => choices.length > 0)
        .flatMap(({ names, choices }) => names.map((option) => ({ option, values: choices }))),
      runsCommand,
    };
  });
}

/** The help page names such a value FILE, DIR, folder … */
function isPath(term: string): boolean {
  return /[<[](?:file|folder|dir|path|d)\b/i.test(term);
}

function shortened(text: string): string {
  const [line = ""] = text.split("\n");
  return line.length <= descriptionMax ? line : `${line.slice(0, descriptionMax - 1)}…`;
}
