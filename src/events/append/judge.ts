// Judges a batch: each call in the order of the queue, against the published events and the calls
// accepted before it.
import type { SequencedEvent } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import type { Appended } from "../model/event-store.ts";
import type { EventReader, StoredEvent } from "../log/read/event-reader.ts";
import { isSameBody, type EventBody, type EventHead } from "../model/stored-event.ts";
import type { LogView } from "../log/read/view.ts";
import type { AppendCall } from "./call-queue.ts";
import { PendingEvents } from "./pending.ts";

/** Enough for a new decision. A caller that needs all conflicts can read them. */
const conflictsMax = 100;

export type AppendVerdict =
  | { readonly kind: "accepted"; readonly appended: Appended }
  /**
   * `needsBatch`: the verdict depends on an earlier call of this batch. It is reported once the batch is durable, and
   * judged again if that fails.
   */
  | { readonly kind: "repeated"; readonly appended: Appended; readonly needsBatch: boolean }
  | { readonly kind: "refused"; readonly error: unknown; readonly needsBatch: boolean };

export class Judge {
  readonly #view: LogView;
  readonly #reader: EventReader;
  readonly #time: string;
  readonly #pending = new PendingEvents();
  readonly #head: number;
  #position: number;

  /**
   * The view must be at the published tip, and no other writer may publish until the batch is
   * written.
   */
  constructor(view: LogView, reader: EventReader, time: string) {
    this.#view = view;
    this.#reader = reader;
    this.#time = time;
    this.#head = view.tip.position;
    this.#position = this.#head;
  }

  /**
   * Returns undefined if the verdict may need a read; `judge` then gives it. Most calls are judged here, without a
   * promise.
   */
  tryJudge(call: AppendCall): AppendVerdict | undefined {
    const { heads, condition } = call;
    if (heads.some(({ given }) => given === true)) return undefined;
    if (condition !== undefined) {
      if (!this.#view.isClear(condition.items, condition.after)) return undefined;
      if (this.#pending.hasMatching(condition.items)) return undefined;
    }
    return this.#accept(call);
  }

  async judge(call: AppendCall): Promise<AppendVerdict> {
    // Check ids before the condition: a call that is repeated after a lost answer would conflict with its own events.
    const known = await this.#findKnown(call);
    if (known !== undefined) return known;
    const conflicts = await this.#conflictsOf(call);
    if (conflicts.length === 0) return this.#accept(call);
    const decoded: SequencedEvent[] = [];
    for (const event of conflicts.slice(0, conflictsMax)) decoded.push(await this.#reader.decode(event));
    const positions = decoded.map(({ position }) => position);
    const count = conflicts.length > conflictsMax ? `over ${conflictsMax}` : conflicts.length;
    const message = `The append condition failed: ${count} event(s) match it, at position ${positions.slice(0, 5).join(", ")}${positions.length > 5 ? ", …" : ""}. Read again and decide again.`;
    const error = holdfastError("APPEND_CONDITION_FAILED", message, { conflicts: decoded });
    const needsBatch = conflicts.some(({ position }) => position > this.#head);
    return { kind: "refused", error, needsBatch };
  }

  #accept(call: AppendCall): AppendVerdict {
    const first = this.#position + 1;
    for (const [index, head] of call.heads.entries()) {
      const payload = call.payload[index];
      if (payload !== undefined) this.#pending.add(++this.#position, this.#time, head, payload);
    }
    return { kind: "accepted", appended: { first, last: this.#position, repeated: false } };
  }

  /** Returns the verdict on a call whose ids exist already, or undefined if none does. */
  async #findKnown({ heads, payload }: AppendCall): Promise<AppendVerdict | undefined> {
    const found: StoredEvent[] = [];
    for (const [index, head] of heads.entries()) {
      if (head.given !== true) continue;
      const event = this.#pending.findById(head.id) ?? (await this.#findById(head.id));
      if (event === undefined) continue;
      if (!isEqual(event, head, payload[index] ?? "")) return this.#reused(event, "with other content");
      found.push(event);
    }
    const [one] = found;
    if (one === undefined) return undefined;
    const first = Math.min(...found.map(({ position }) => position));
    const inOrder = found.every(({ position }, index) => position === first + index);
    if (found.length !== heads.length || !inOrder) return this.#reused(one, "in another append");
    const appended = { first, last: first + found.length - 1, repeated: true };
    return { kind: "repeated", appended, needsBatch: appended.last > this.#head };
  }

  async #findById(id: string): Promise<StoredEvent | undefined> {
    for await (const position of this.#view.idCandidates(id)) {
      const event = await this.#reader.get(position);
      if (event.head.id === id) return event;
    }
    return undefined;
  }

  async #conflictsOf({ condition }: AppendCall): Promise<StoredEvent[]> {
    if (condition === undefined) return [];
    const { items, after } = condition;
    const conflicts: StoredEvent[] = [];
    if (!this.#view.isClear(items, after))
      for await (const event of this.#reader.read(items, { after, upTo: this.#head }, false))
        if (conflicts.push(event) > conflictsMax) return conflicts;
    return [...conflicts, ...this.#pending.matching(items).filter(({ position }) => position > after)];
  }

  #reused({ head: { id }, position }: StoredEvent, how: string): AppendVerdict {
    const message = `The event id ${JSON.stringify(id)} is at position ${position} already, ${how}. An id names one event for ever.`;
    const error = holdfastError("EVENT_ID_REUSED", message, { id, position });
    return { kind: "refused", error, needsBatch: position > this.#head };
  }
}

function isEqual(event: StoredEvent, head: EventHead, payload: string): boolean {
  return (
    event.head.type === head.type &&
    isSameSet(event.ownTags, head.tags) &&
    isSameBody(event.body, JSON.parse(payload) as EventBody)
  );
}

/** Compares two lists without duplicates as sets. */
function isSameSet(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((each) => other.includes(each));
}
