// Reads the states of a decision's models at one head: one read for all models. The next attempt reads only new
// events.
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
  /** The state includes all events up to this position. */
  position: number;
  /** Number of events folded since the snapshot, or since the start of the log. */
  folded: number;
}

/** The point from which the next attempt continues, unless tags were added since (`tagChecksum`). */
interface ResumePoint {
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
  #reached: ResumePoint | undefined;

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

  /** The events that the models depend on; undefined without models. */
  get query(): Query | undefined {
    return this.#foldings.length === 0 ? undefined : unionOf(this.#foldings);
  }

  /**
   * Returns the states at the current head. A later call reads only new events, unless tags were
   * added or a state cannot be copied.
   */
  async read({ signal }: Cancel): Promise<ReadStates> {
    // Read before the events: an event that is appended during the read is beyond this head, and so
    // a conflict.
    const head = await this.#store.head();
    // Also read before the events: if tags are added during the read, the next checksum differs,
    // and the states are read again.
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
      // A copy: an `apply` may mutate its state.
      folding.state = kept === undefined ? structuredClone(folding.model.initial) : kept.state;
      folding.position = kept?.position ?? 0;
      folding.folded = 0;
    }
  }

  /**
   * Starts one read at each position that a model has reached, so that no model reads again what its snapshot
   * contains.
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
    // Tags were added during the read: some of these states reflect them and others do not.
    if (due.length === 0 || (await this.#access.tagChecksum()) !== tagChecksum) return;
    for (const folding of due) {
      await folding.snapshot?.keep(folding, tagChecksum);
      folding.folded = 0;
    }
  }

  /** Copies the states before the decision gets them: it may change them. */
  #remember(position: number, tagChecksum: string): void {
    this.#reached = undefined;
    if (tagChecksum === undefined) return;
    const states = new Map<string, unknown>();
    for (const { name, state } of this.#foldings) {
      const copy = findCopy(state);
      // All or none: if one state cannot be copied, all must be folded from the start again.
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
