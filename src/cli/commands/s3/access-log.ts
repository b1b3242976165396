// The access log: one line of JSON per request, on stdout. A reader that is slow or gone does not
// block requests: lines that it does not take are counted, not kept.
import type { S3AccessEntry } from "../../../s3/index.ts";
import { messageOf } from "../../failure.ts";
import type { OutputSink } from "../../output.ts";

const pendingMax = 10_000;

export class AccessLog {
  readonly #stdout: OutputSink;
  #pending = 0;
  #dropped = 0;

  constructor(stdout: OutputSink) {
    this.#stdout = stdout;
  }

  add(entry: S3AccessEntry): void {
    if (this.#pending >= pendingMax) return void this.#dropped++;
    if (this.#dropped > 0) this.#write({ at: new Date(), dropped: this.#dropped });
    this.#dropped = 0;
    const { error, durationMs, ...rest } = entry;
    this.#write({
      ...rest,
      durationMs: Math.round(durationMs * 10) / 10,
      ...(error === undefined ? {} : { error: messageOf(error) }),
    });
  }

  #write(line: object): void {
    this.#pending++;
    this.#stdout.write(`${JSON.stringify(line)}\n`, () => this.#pending--);
  }
}
