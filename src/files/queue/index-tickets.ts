// The tickets of changes, as one process makes them: with the lock of an add, or in the background.
import { isHoldfastError } from "../../errors.ts";
import type { NewChange } from "../change-log/change-record.ts";
import type { Change } from "../model/file-tree.ts";
import type { TreePlace } from "../tree/tree-place.ts";
import type { TaskQueue } from "./task-queue.ts";

/** Tickets that are made in the background at the same time; then the operations wait for them. */
const publishingMax = 32;
/** Beyond that the dispatcher asks for some tickets again, and finds them. */
const enqueuedMax = 100_000;

export class IndexTickets {
  readonly #place: TreePlace;
  readonly #queue: TaskQueue;
  /** Tickets that are being made. */
  readonly #publishing = new Set<Promise<unknown>>();
  /** Changes whose tickets this process has made. */
  readonly #enqueued = new Set<number>();

  constructor(place: TreePlace, queue: TaskQueue) {
    this.#place = place;
    this.#queue = queue;
  }

  has(change: number): boolean {
    return this.#enqueued.has(change);
  }

  /** Says that this process works on the change, and needs no ticket. */
  note(change: number): void {
    if (this.#enqueued.size >= enqueuedMax) this.#enqueued.clear();
    this.#enqueued.add(change);
  }

  /** Gives the id of the ticket, when there is one. */
  async publish(change: number, token?: string): Promise<string> {
    const task = { task: "index", change, ...(token === undefined ? {} : { token }) } as const;
    const { id, duplicate } = await this.#queue.publish(task);
    this.note(change);
    // The dispatcher was quicker, and its ticket has no token: its worker would wait until the offer lapses.
    if (duplicate && token !== undefined) await this.#takeBack(token);
    return id;
  }

  /** The ticket follows: the operation that made the change need not wait for it. */
  async publishLater({ number }: Change): Promise<void> {
    const publishing = this.publish(number).catch((error: unknown) => {
      // The dispatcher makes it.
      if (!isHoldfastError(error)) throw error;
    });
    this.#publishing.add(publishing);
    void publishing.finally(() => this.#publishing.delete(publishing));
    if (this.#publishing.size >= publishingMax) await Promise.race(this.#publishing);
  }

  /** A change that no operation makes: what is there is to be looked at. */
  async announce(change: NewChange): Promise<void> {
    await this.publishLater(await this.#place.changes.append(change));
  }

  /** Waits for those that are being made. */
  async drain(): Promise<void> {
    await Promise.allSettled([...this.#publishing]);
  }

  async #takeBack(token: string): Promise<void> {
    try {
      await (await (await this.#place.locks()).receive(token)).release();
    } catch (error) {
      // Otherwise it lapses.
      if (!isHoldfastError(error)) throw error;
    }
  }
}
