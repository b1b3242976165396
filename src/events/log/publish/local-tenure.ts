// Writing on one machine: lines, a sync, the head. The gate is asked for at the end, because its lock file may have been deleted meanwhile.
import { outcomeUnknown } from "../../../durable/publish/publish.ts";
import { isHoldfastError } from "../../../errors.ts";
import type { LocalPublisher } from "./local-publisher.ts";
import type { Tenure, WriterGate } from "./publisher.ts";
import type { Tip } from "../format/tip.ts";

export class LocalTenure implements Tenure {
  readonly #publisher: LocalPublisher;
  readonly #gate: WriterGate;
  published: Tip;

  constructor(publisher: LocalPublisher, tip: Tip, gate: WriterGate) {
    this.#publisher = publisher;
    this.#gate = gate;
    this.published = tip;
  }

  get end(): Tip {
    return this.published;
  }

  get isFull(): boolean {
    return this.#publisher.isFull(this.published);
  }

  async publish(lines: Uint8Array, next: Tip, _isLast: boolean, isIdle?: () => boolean): Promise<void> {
    await this.#publisher.write(this.published, lines, isIdle);
    try {
      // Not over the head of another writer, as far as that can be known before.
      await this.#gate.assertHeld();
      await this.#publisher.publishHead(next);
      // A lock file that is there now was there when the head was written: who comes in later has read it.
      await this.#gate.assertHeld();
    } catch (error) {
      if (isHoldfastError(error, "OUTCOME_UNKNOWN")) throw error;
      // The lines are durable and may yet be taken up by the next holder of the gate.
      throw outcomeUnknown(this.#publisher.headPath, error);
    }
    this.published = next;
  }

  async close(): Promise<void> {
    // The segment stays open for the next tenure of this process.
  }
}
