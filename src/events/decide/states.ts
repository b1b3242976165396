// Reads the states of a decision's models at one head: one read for all models, and only the new
// events for the next attempt.
import type { Cancel } from "../../common.ts";
import type { EventStore } from "../model/event-store.ts";
import { mustBeState, findCopy } from "../model/state.ts";
import { accessOf, type LogAccess } from "../log/log-access.ts";
import { itemsOf, matches, type Items, type Query, type QueryItem } from "../model/query.ts";
import type { DecisionModel, Models } from "./model.ts";
import { Snapshot } from "./snapshot.ts";

/** One model, folded up to a position. */
interface Folding {
  readonly name: string;
  readonly model: DecisionModel<unknown>;
  readonly items: Items;
  readonly snapshot: Snapshot | undefined;
  state: unknown;
  /** Everything up to here is in the state. */
  position: number;
  /** Events since the snapshot, or since the start. */
  folded: number;
}

/** Where the next attempt can go on, if the added tags are still those of `tagChecksum`. */
interface Reached {
  readonly states: ReadonlyMap<string, unknown>;
  readonly position: number;
  readonly tagChecksum: string;
}

export interface ReadStates {
  readonly states: Readonly<Record<string, unknown>>;
  readonly head: number;
}

export class StatesReader {
  readonly #store: EventStore;
  readonly #access: LogAccess;
  readonly #foldings: readonly Folding[];
  #reached: Reached | undefined;

  constructor(store: EventStore, models: Models) {
    this.#store = store;
    this.#access = accessOf(store);
    this.#foldings = Object.entries(models).map(([name, model]) => ({
      name,
      model,
      items: itemsOf(model.query),
      snapshot: model.snapshot && new Snapshot(this.#access, model.query, model.snapshot),
      state: undefined,
      position: 0,
      folded: 0,
    }));
  }

  /** The events that the models rest on; undefined without models. */
  get query(): Query | undefined {
    return this.#foldings.length === 0 ? undefined : unionOf(this.#foldings);
  }

  /**
   * The states at the present head. A later call reads only new events, unless tags were added or a
   * state cannot be copied.
   */
  async read({ signal }: Cancel): Promise<ReadStates> {
    // Before the events: an event that comes during the read is beyond this head, and so a
    // conflict.
    const head = await this.#store.head();
    // Before the events, too: if tags are added during the read, the next checksum differs, and the
    // states are read anew.
    const tagChecksum = await this.#access.tagChecksum();
    await this.#begin(head, tagChecksum);
    await this.#foldUpTo(head, signal);
    await this.#keep(tagChecksum);
    this.#remember(head, tagChecksum);
    return { states: Object.fromEntries(this.#foldings.map(({ name, state }) => [name, state])), head };
  }

  async #begin(head: number, tagChecksum: string): Promise<void> {
    const reached = this.#reached;
    if (reached !== undefined && reached.tagChecksum === tagChecksum) {
      for (const folding of this.#foldings) {
        folding.state = reached.states.get(folding.name);
        folding.position = reached.position;
      }
      return;
    }
    for (const folding of this.#foldings) {
      const kept = await folding.snapshot?.find({ head, tagChecksum });
      // A copy: an `apply` may change its state in place.
      folding.state = kept === undefined ? structuredClone(folding.model.initial) : kept.state;
      folding.position = kept?.position ?? 0;
      folding.folded = 0;
    }
  }

  /**
   * One read from each position that a model stands at, so that no model reads again what its
   * snapshot has.
   */
  async #foldUpTo(head: number, signal: AbortSignal | undefined): Promise<void> {
    const starts = [...new Set(this.#foldings.map(({ position }) => position))].sort((one, other) => one - other);
    for (const [index, after] of starts.entries()) {
      const upTo = Math.min(starts[index + 1] ?? head, head);
      if (after >= upTo) continue;
      const active = this.#foldings.filter(({ position }) => position <= after);
      for await (const event of this.#store.read(unionOf(active), { after, upTo, signal }))
        for (const folding of active) {
          if (!matches(folding.items, event)) continue;
          const state = folding.model.fold(folding.state, event);
          folding.state = mustBeState(state, `the model ${folding.name}`, event.position);
          folding.folded++;
        }
      for (const folding of active) folding.position = upTo;
    }
  }

  async #keep(tagChecksum: string): Promise<void> {
    const due = this.#foldings.filter(({ snapshot, folded }) => snapshot?.isDue(folded));
    // Tags that were added during the read are in some of these states and not in others.
    if (due.length === 0 || (await this.#access.tagChecksum()) !== tagChecksum) return;
    for (const folding of due) {
      await folding.snapshot?.keep(folding, tagChecksum);
      folding.folded = 0;
    }
  }

  /** Copies, before the decision gets the states: it may change them. */
  #remember(position: number, tagChecksum: string): void {
    this.#reached = undefined;
    if (tagChecksum === undefined) return;
    const states = new Map<string, unknown>();
    for (const { name, state } of this.#foldings) {
      const copy = findCopy(state);
      // All or none: without a copy this state must be folded from the start again.
      if (copy === undefined) return;
      states.set(name, copy.state);
    }
    this.#reached = { states, position, tagChecksum };
  }
}

function unionOf(foldings: readonly Folding[]): Query {
  const items = new Map<string, QueryItem>();
  for (const item of foldings.flatMap(({ items }) => items)) items.set(JSON.stringify(item), item);
  return [...items.values()];
}
