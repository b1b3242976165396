// The bed's end of a hand in a guest.
import type { Bed } from "./bed.ts";
import type { Guest } from "./guest.ts";
import type { HandAnswer, HandOperation, HandOrder } from "./guest/hand.ts";
import { within, type Script } from "./script.ts";

const startMsMax = 30_000;
const answerMsMax = 120_000;

export class Hand {
  readonly #script: Script<HandAnswer>;
  readonly #waiting = new Map<number, (answer: HandAnswer) => void>();
  #lastId = 0;

  private constructor(bed: Bed, guest: Guest) {
    this.#script = guest.run<HandAnswer>(bed.module("test/shares/guest/hand.ts"), [], {
      onMessage: (answer) => {
        this.#waiting.get(answer.id)?.(answer);
        this.#waiting.delete(answer.id);
      },
    });
  }

  static async open(bed: Bed, guest: Guest): Promise<Hand> {
    const hand = new Hand(bed, guest);
    // It says so, as an answer to nothing, when it is ready.
    await hand.#answerTo(0, startMsMax);
    return hand;
  }

  /** Tries one operation, and gives its answer, whatever that is. */
  async try(operation: HandOperation, ...args: readonly (string | number)[]): Promise<HandAnswer> {
    const id = ++this.#lastId;
    const answer = this.#answerTo(id, answerMsMax);
    this.#script.send({ id, operation, args } satisfies HandOrder);
    return await answer;
  }

  /** The value; rejects when the operation failed. */
  async do<T = unknown>(operation: HandOperation, ...args: readonly (string | number)[]): Promise<T> {
    const { value, errno } = await this.try(operation, ...args);
    if (errno !== undefined) throw new Error(`${operation} ${args.join(" ")}: ${errno}`);
    return value as T;
  }

  async close(): Promise<void> {
    await this.#script.kill();
  }

  async #answerTo(id: number, msMax: number): Promise<HandAnswer> {
    const answered = new Promise<HandAnswer>((resolve) => this.#waiting.set(id, resolve));
    const ended = this.#script.ended.then(({ stderr }): never => {
      throw new Error(`A hand ended: ${stderr}`);
    });
    // No caller may be waiting any more when it ends.
    ended.catch(() => undefined);
    return await within(msMax, Promise.race([answered, ended]), "an operation");
  }
}
