// The output of the command line: results to stdout, everything else to stderr, as text for people
// or as one line of JSON for programs.
import { styleText } from "node:util";

/** The members of a stream that the command line uses. */
export interface OutputSink {
  write(text: string | Uint8Array, onWritten?: () => void): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

export interface Streams {
  readonly stdout: OutputSink;
  readonly stderr: OutputSink;
}

export type Style = "green" | "yellow" | "red" | "bold" | "dim";

/** How a page of text is laid out. */
export interface Page {
  readonly columns: number;
  /** Styles a text; returns it plain if the output is not a terminal. */
  readonly style: (style: Style, text: string) => string;
}

export interface OutputOptions {
  /** One line of JSON for each item. Default false. */
  readonly isJson?: boolean;
  /** No notes and no progress. Default false. */
  readonly isQuiet?: boolean;
  /** Removes passwords from all that is written. Default: there are none. */
  readonly hide?: (text: string) => string;
}

export class Output {
  readonly isJson: boolean;
  readonly isQuiet: boolean;
  /** True if notes are printed: neither `--json` nor `--quiet` is given. */
  readonly isTalkative: boolean;
  /** Rewrites paths in texts for people to the user's spelling. */
  spell: (text: string) => string = (text) => text;
  readonly #streams: Streams;
  readonly #hide: (text: string) => string;

  constructor(streams: Streams, { isJson = false, isQuiet = false, hide = (text) => text }: OutputOptions) {
    this.#streams = streams;
    this.#hide = hide;
    this.isJson = isJson;
    this.isQuiet = isQuiet;
    this.isTalkative = !isJson && !isQuiet;
  }

  /** True if stderr is a terminal that a person may watch: then progress is shown. */
  get isWatched(): boolean {
    return this.isTalkative && this.#streams.stderr.isTTY === true;
  }

  /** Prints the result of the command. */
  result(value: unknown, toText: (page: Page) => string): void {
    if (this.isJson) return this.#write("stdout", `${JSON.stringify(value)}\n`);
    const { stdout } = this.#streams;
    const isTerminal = stdout.isTTY === true;
    // styleText itself respects NO_COLOR.
    const style = (name: Style, text: string): string => (isTerminal ? styleText(name, text) : text);
    this.#write("stdout", `${toText({ columns: Math.min(stdout.columns ?? 100, 120), style })}\n`);
  }

  /** Prints a list: a line of JSON for each item, or one text for all. */
  list(values: readonly unknown[], toText: (page: Page) => string): void {
    if (!this.isJson) return this.result(undefined, toText);
    for (const value of values) this.result(value, () => "");
  }

  /** Prints a note for people; nothing with --json or --quiet. */
  note(text: string): void {
    if (this.isTalkative) this.#write("stderr", `${this.spell(text)}\n`);
  }

  /** Reports what the command waits for: a note for people, an object for programs. */
  waiting(details: object, message: string, end: string): void {
    if (this.isJson && !this.isQuiet) this.#write("stderr", `${JSON.stringify({ waiting: this.#spelled(details) })}\n`);
    else this.note(`holdfast: ${message}${end === "" ? "" : `\n          ${end}`}`);
  }

  /** Prints a warning: the command works, but the user should know this. */
  warning(details: { readonly name: string; readonly message: string }): void {
    const message = this.spell(details.message);
    if (this.isJson) this.#write("stderr", `${JSON.stringify({ warning: { ...details, message } })}\n`);
    else this.#write("stderr", `holdfast: warning: ${message}\n`);
  }

  /** Reports why it failed. `hint` says what to do. */
  failure(details: object, message: string, hint: string): void {
    if (this.isJson) this.#write("stderr", `${JSON.stringify({ error: this.#spelled(details) })}\n`);
    else this.#write("stderr", this.spell(`holdfast: ${message}\n${hint === "" ? "" : `          ${hint}\n`}`));
  }

  #write(stream: keyof Streams, text: string): void {
    this.#streams[stream].write(this.#hide(text));
  }

  /** Only messages are escaped. Other fields may be the user's data and stay unchanged. */
  #spelled(details: object): object {
    const spelled = Object.entries(details).map(([name, value]: [string, unknown]) => [
      name,
      typeof value === "string" && ["message", "path", "for"].includes(name) ? this.spell(value) : value,
    ]);
    return Object.fromEntries(spelled) as object;
  }
}

/** Breaks `text` at spaces so that it fits after an indent of `indent` columns; the first line is not indented. */
export function wrap(text: string, columns: number, indent: number): string {
  const width = Math.max(columns - indent, 20);
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].join(`\n${" ".repeat(indent)}`);
}

/** Escapes text that others wrote: characters that would move a cursor or reverse the text appear as their number. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}]/gu, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}
