// What the command line writes: results to stdout, all the rest to stderr, as text for people or as
// one line of JSON for programs.
import { styleText } from "node:util";

/** A stream, as far as the command line needs one. */
export interface Sink {
  write(text: string | Uint8Array, onWritten?: () => void): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

export interface Streams {
  readonly stdout: Sink;
  readonly stderr: Sink;
}

export type Style = "green" | "yellow" | "red" | "bold" | "dim";

/** How a page of text is laid out. */
export interface Page {
  readonly columns: number;
  /** Plain text where the output is not a terminal. */
  readonly style: (style: Style, text: string) => string;
}

export interface OutputOptions {
  /** One line of JSON for each thing that is told. Default false. */
  readonly isJson?: boolean;
  /** No notes and no progress. Default false. */
  readonly isQuiet?: boolean;
}

export class Output {
  readonly isJson: boolean;
  /** Whether notes are wanted: a person may be reading them. */
  readonly isTalkative: boolean;
  readonly #streams: Streams;

  constructor(streams: Streams, { isJson = false, isQuiet = false }: OutputOptions) {
    this.#streams = streams;
    this.isJson = isJson;
    this.isTalkative = !isJson && !isQuiet;
  }

  /** Whether a person watches stderr: then a wait is explained, and progress shown. */
  get isWatched(): boolean {
    return this.isTalkative && this.#streams.stderr.isTTY === true;
  }

  /** What the command was asked for. */
  result(value: unknown, toText: (page: Page) => string): void {
    const { stdout } = this.#streams;
    if (this.isJson) return void stdout.write(`${JSON.stringify(value)}\n`);
    const isTerminal = stdout.isTTY === true;
    // NO_COLOR is minded by styleText itself.
    const style = (name: Style, text: string): string => (isTerminal ? styleText(name, text) : text);
    stdout.write(`${toText({ columns: Math.min(stdout.columns ?? 100, 120), style })}\n`);
  }

  /** For people who wait; programs that read JSON are not told, nor users who said --quiet. */
  note(text: string): void {
    if (this.isTalkative) this.#streams.stderr.write(`${text}\n`);
  }

  /** What works, and yet should be known. */
  warning(details: { readonly name: string; readonly message: string }): void {
    const { stderr } = this.#streams;
    if (this.isJson) stderr.write(`${JSON.stringify({ warning: details })}\n`);
    else stderr.write(`holdfast: warning: ${details.message}\n`);
  }

  /** Why it did not work. `hint` says what to do. */
  failure(details: object, message: string, hint: string): void {
    const { stderr } = this.#streams;
    if (this.isJson) stderr.write(`${JSON.stringify({ error: details })}\n`);
    else stderr.write(`holdfast: ${message}\n${hint === "" ? "" : `          ${hint}\n`}`);
  }
}

/**
 * Breaks `text` at spaces so that, after an indent of `indent` columns, it fits; the first line is
 * not indented.
 */
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

/**
 * Others have written it: what would move a cursor or turn the text round is shown as its number.
 */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}]/gu, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}
