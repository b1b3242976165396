// Lines in and out of `holdfast events`, with backpressure in both directions.
import { TextDecoder } from "node:util";
import { HoldfastError } from "../../../index.ts";
import type { Pipes, Run } from "../../run.ts";
import { cannotRead, cannotWrite, isNobodyReading } from "../../stream-errors.ts";

/** The members that a real stream has besides `write`. */
interface Emitter {
  once(event: "drain", listener: () => void): unknown;
  on(event: "error", listener: (error: NodeJS.ErrnoException) => void): unknown;
  off(event: "error", listener: (error: NodeJS.ErrnoException) => void): unknown;
}

export class LineWriter implements Disposable {
  readonly #stdout: Pipes["stdout"] & Partial<Emitter>;
  readonly #onError = (error: NodeJS.ErrnoException): void => {
    if (isNobodyReading(error)) this.isUnread = true;
    else this.#failure ??= cannotWrite(error);
    this.#wake();
  };
  #wake: () => void = () => undefined;
  #failure: Error | undefined;
  /** True if the reader is gone (`… | head`), which is not a failure. */
  isUnread = false;

  constructor({ stdout }: Pipes) {
    this.#stdout = stdout;
    this.#stdout.on?.("error", this.#onError);
  }

  /**
   * Writes a line. Resolves when there is room for more. Throws IO_ERROR if an earlier write
   * failed.
   */
  async write(text: string | Uint8Array): Promise<void> {
    this.#mustWork();
    if (this.isUnread) return;
    const hasRoom = this.#stdout.write(text) !== false;
    const { once } = this.#stdout;
    if (hasRoom || once === undefined) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      once.call(this.#stdout, "drain", resolve);
    });
  }

  async writeJson(value: unknown): Promise<void> {
    await this.write(`${JSON.stringify(value)}\n`);
  }

  /** Resolves when everything is written, or the reader is gone. Throws IO_ERROR. */
  async end(): Promise<void> {
    if (!this.isUnread && this.#stdout.once !== undefined)
      await new Promise<void>((resolve) => this.#stdout.write("", () => resolve()));
    this.#mustWork();
  }

  #mustWork(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  [Symbol.dispose](): void {
    // A listener stays for late errors. The process ends soon.
    if (!this.isUnread) setImmediate(() => this.#stdout.off?.("error", this.#onError));
  }
}

export interface InputLine {
  /** Counted from 1. */
  readonly number: number;
  readonly text: string;
}

/** The maximum length of a line: the log's limit for one append, plus room for JSON whitespace. */
const lineLengthMax = 32 * 1024 * 1024;

type InputRun = Pick<Run, "pipes" | "signal" | "output">;

/** Reads stdin. Rejects with the signal's reason, even while it waits for input. */
export async function* inputChunks({
  pipes: { stdin, isStdinTyped = false },
  output,
  signal,
}: InputRun): AsyncGenerator<Uint8Array | string, void> {
  const chunks = stdin?.[Symbol.asyncIterator]();
  if (chunks === undefined) return;
  if (isStdinTyped)
    output.note("holdfast: reading from the terminal; Ctrl-D at the beginning of a line ends the input");
  for (;;) {
    signal.throwIfAborted();
    const { done, value } = await untilAborted(() => chunks.next().catch(cannotRead), signal);
    if (done === true) return;
    yield value;
  }
}

async function untilAborted<T>(wait: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return await new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    signal.addEventListener("abort", abort);
    wait()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener("abort", abort));
  });
}

/** Yields the lines that are not empty. */
export async function* inputLines(run: InputRun): AsyncGenerator<InputLine, void> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let number = 0;
  let rest = "";
  const line = (text: string): InputLine[] => (++number && text.trim() === "" ? [] : [{ number, text }]);
  for await (const chunk of inputChunks(run)) {
    rest += typeof chunk === "string" ? chunk : decode(decoder, chunk, number + 1);
    const texts = rest.split("\n");
    rest = texts.pop() ?? "";
    if (rest.length > lineLengthMax)
      throw badInput(number + texts.length + 1, `it has over ${lineLengthMax} characters`);
    for (const text of texts) yield* line(text);
  }
  yield* line(rest);
}

function decode(decoder: TextDecoder, chunk: Uint8Array, number: number): string {
  try {
    return decoder.decode(chunk, { stream: true });
  } catch (error) {
    throw badInput(number, "it, or a line shortly after it, is not UTF-8", error);
  }
}

/** Counted from 1. */
export interface LineRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Adds the lines of the input to a message. `lines` is undefined if the event did not come from the
 * input.
 */
export function inInput(lines: LineRange | undefined, what: string): string {
  if (lines === undefined) return what;
  const { first, last } = lines;
  return `${first === last ? `Line ${first}` : `Lines ${first} to ${last}`} of the input: ${what}`;
}

/** An error in the input, which a retry cannot mend. */
export function badInput(line: number, why: string, cause?: unknown): HoldfastError {
  const message = inInput({ first: line, last: line }, `${why}.`);
  return new HoldfastError("EVENT_INVALID", message, { type: "", issues: [why] }, cause);
}
