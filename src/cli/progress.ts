// The progress of a long command: for a person at a terminal, on one line that disappears at the
// end.
import type { Run } from "./run.ts";

const everyMs = 100;

export class Progress implements Disposable {
  readonly #stderr: Run["pipes"]["stderr"];
  readonly #isShown: boolean;
  readonly #what: string;
  #saidMs = 0;
  #width = 0;
  #said = "";

  constructor({ pipes: { stderr }, output }: Run, what: string) {
    this.#stderr = stderr;
    this.#isShown = output.isWatched;
    this.#what = what;
  }

  /** `total` is undefined if unknown, as for a pipe. Then only the count so far is shown. */
  readonly tell = (done: number, total?: number): void => {
    const nowMs = Date.now();
    if (!this.#isShown || (nowMs - this.#saidMs < everyMs && done !== total)) return;
    this.#saidMs = nowMs;
    const text = `${this.#what}: ${total === undefined ? done : shareOf(done, total)}`;
    if (text === this.#said) return;
    this.#said = text;
    this.#stderr.write(`\r${text.padEnd(this.#width)}`);
    this.#width = text.length;
  };

  [Symbol.dispose](): void {
    if (this.#width > 0) this.#stderr.write(`\r${" ".repeat(this.#width)}\r`);
  }
}

function shareOf(done: number, total: number): string {
  const percent = total === 0 ? 100 : Math.floor((done / total) * 100);
  return `${percent} % (${done} of ${total})`;
}
