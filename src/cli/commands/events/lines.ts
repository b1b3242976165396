// Lines in and out of `holdfast events`: as much as fits through the pipe, and no more than is
// read.
import { TextDecoder } from "node:util";
import { HoldfastError } from "../../../index.ts";
import type { Pipes, Run } from "../../run.ts";
import { cannotRead, cannotWrite, isNobodyReading } from "../../stream-errors.ts";

/** What a stream has beside `write`, when it is a real one. */
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
  /** The reader has gone (`… | head`): no failure. */
  isUnread = false;

  constructor({ stdout }: Pipes) {
    this.#stdout = stdout;
    this.#stdout.on?.("error", this.#onError);
  }

  /**
   * Resolves when there is room for more. IO_ERROR when something before it could not be written.
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

  /** Resolves when all of it was written, or its reader has gone. IO_ERROR. */
  async end(): Promise<void> {
    if (!this.isUnread && this.#stdout.once !== undefined)
      await new Promise<void>((resolve) => this.#stdout.write("", () => resolve()));
    this.#mustWork();
  }

  #mustWork(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  [Symbol.dispose](): void {
    // An error that is still on its way finds a listener: the process ends soon.
    if (!this.isUnread) setImmediate(() => this.#stdout.off?.("error", this.#onError));
  }
}

export interface InputLine {
  /** Counted from 1. */
  readonly number: number;
  readonly text: string;
}

/** As the limit of the log for one append, and room for what JSON may have in between. */
const lineLengthMax = 32 * 1024 * 1024;

/** What comes in on stdin. Rejects with the signal's reason, also while it waits for more. */
export async function* inputChunks({
  pipes: { stdin },
  signal,
}: Pick<Run, "pipes" | "signal">): AsyncGenerator<Uint8Array | string, void> {
  const chunks = stdin?.[Symbol.asyncIterator]();
  if (chunks === undefined) return;
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

/** Lines that are not empty. */
export async function* inputLines(run: Pick<Run, "pipes" | "signal">): AsyncGenerator<InputLine, void> {
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

/** What went wrong, and where in the input; undefined: it did not come from there. */
export function inInput(lines: LineRange | undefined, what: string): string {
  if (lines === undefined) return what;
  const { first, last } = lines;
  return `${first === last ? `Line ${first}` : `Lines ${first} to ${last}`} of the input: ${what}`;
}

/** Input that fails again however often it is tried. */
export function badInput(line: number, why: string, cause?: unknown): HoldfastError {
  const message = inInput({ first: line, last: line }, `${why}.`);
  return new HoldfastError("EVENT_INVALID", message, { type: "", issues: [why] }, cause);
}
