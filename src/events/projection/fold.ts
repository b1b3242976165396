// Folds events into the documents that they change, in memory. A batch loads and returns each document once.
import type { SequencedEvent } from "../../common.ts";
import type { EventSource } from "../follow/process-events.ts";
import { itemsOf, matches, type Items } from "../model/query.ts";
import type { CheckedDefinition } from "./definition.ts";
import type { Document, SeenQuery } from "./document.ts";

/**
 * Limits the queries that a document remembers. Otherwise it would grow forever if each event brought another query.
 */
const seenMax = 1000;

export interface FoldOptions {
  readonly definition: CheckedDefinition;
  readonly source: Pick<EventSource, "read">;
  readonly find: (key: string) => Promise<Document | undefined>;
}

interface Draft {
  /** True if the document exists on disk. */
  readonly wasThere: boolean;
  state: unknown;
  position: number;
  seen: readonly SeenQuery[];
}

export class Fold {
  readonly #options: FoldOptions;
  #drafts = new Map<string, Draft>();

  constructor(options: FoldOptions) {
    this.#options = options;
  }

  /** Number of documents changed since the last `take`. */
  get size(): number {
    return this.#drafts.size;
  }

  async add(events: readonly SequencedEvent[]): Promise<void> {
    const { definition, find } = this.#options;
    for (const event of events)
      for (const key of definition.keysOf(event)) {
        const draft = this.#drafts.get(key) ?? draftOf(await find(key));
        this.#drafts.set(key, draft);
        await applyRelated(draft, event, key, this.#options);
        apply(draft, event, key, this.#options);
        draft.position = event.position;
      }
  }

  /** Returns the changed documents. The fold is empty afterwards. */
  take(): Document[] {
    const { definition } = this.#options;
    const drafts = [...this.#drafts];
    this.#drafts = new Map();
    // A document that was created and deleted since the last `take` is not written.
    return drafts
      .filter(([, { wasThere, state }]) => wasThere || state !== undefined)
      .map(([key, { state, position, seen }]) => {
        if (state === undefined) return { key, position, tags: [], seen: [] };
        // Check once per written document, not per event: states can be large.
        definition.checkState(state, position);
        return { key, position, state, tags: definition.tagsOf(state), seen };
      });
  }
}

function draftOf(document: Document | undefined): Draft {
  const { state, position = 0, seen = [] } = document ?? {};
  return { wasThere: document !== undefined, state, position, seen };
}

function apply(draft: Draft, event: SequencedEvent, key: string, { definition }: FoldOptions): void {
  draft.state = definition.apply(draft.state, event, key);
  // Forget the queries: the result must not depend on whether the tombstone still exists.
  if (draft.state === undefined) draft.seen = [];
}

async function applyRelated(draft: Draft, event: SequencedEvent, key: string, options: FoldOptions): Promise<void> {
  const { definition, source } = options;
  const query = definition.findRelated(event);
  if (query === undefined) return;
  const items = itemsOf(query);
  const before = draft.seen;
  const after = before.find((seen) => areEqual(seen.items, items))?.upTo ?? 0;
  const main = itemsOf(definition.query);
  for await (const related of source.read(query, { after, upTo: event.position - 1 })) {
    if (before.some((seen) => related.position <= seen.upTo && matches(seen.items, related))) continue;
    // The event changes this document directly, so it was applied in its turn.
    if (matches(main, related) && definition.keysOf(related).includes(key)) continue;
    draft.state = definition.apply(draft.state, related, key);
  }
  draft.seen = [...before.filter((seen) => !areEqual(seen.items, items)), { items, upTo: event.position - 1 }];
  if (draft.seen.length > seenMax)
    throw new RangeError(`The document ${key} of ${definition.name} has over ${seenMax} queries of related events.`);
}

function areEqual(one: Items, other: Items): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
