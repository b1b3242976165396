// A write session on one machine: lines, a sync, the head.
import { outcomeUnknown } from "../../../durable/publish/publish.ts";
import { isHoldfastError } from "../../../errors.ts";
import type { Tip } from "../format/tip.ts";
import type { LogFiles } from "../log-files.ts";
import type { LogTail } from "./log-tail.ts";
import { WriteSessionLost, type WriterGate, type WriteSession } from "./publisher.ts";

export class LocalSession implements WriteSession {
  readonly #files: LogFiles;
  readonly #tail: LogTail;
  readonly #gate: WriterGate;
  #isOver = false;
  published: Tip;

  constructor(files: LogFiles, tail: LogTail, gate: WriterGate, tip: Tip) {
    this.#files = files;
    this.#tail = tail;
    this.#gate = gate;
    this.published = tip;
  }

  get end(): Tip {
    return this.published;
  }

  get isFull(): boolean {
    return this.#files.isFull(this.published);
  }

  async publish(lines: Uint8Array, next: Tip, isLast: boolean, isIdle?: () => boolean): Promise<void> {
    if (this.#isOver) throw new WriteSessionLost("the session is over");
    // Until it has succeeded: after a failure the log goes on elsewhere.
    this.#isOver = true;
    await this.#tail.write(this.published, lines, isIdle);
    try {
      // Not over the head of a second writer, as far as that can be known before.
      await this.#gate.assertHeld();
      await this.#tail.publishHead(next);
      // If the lock file still exists, it existed when the head was written: a later writer has
      // read that head.
      await this.#gate.assertHeld();
    } catch (error) {
      if (isHoldfastError(error, "OUTCOME_UNKNOWN")) throw error;
      // The lines are durable, and the next holder of the gate may take them up.
      throw outcomeUnknown(`${this.#files.directory}/head`, error);
    }
    this.published = next;
    this.#isOver = isLast;
  }

  async close(): Promise<void> {
    this.#isOver = true;
  }
}
