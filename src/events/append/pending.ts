// The events of a batch that are accepted and not yet written: the calls after them are judged as if they were there.
import type { EventBody, EventHead } from "../log/line.ts";
import type { StoredEvent } from "../log/event-reader.ts";
import { matches, type Items } from "../query.ts";

export class PendingEvents {
  readonly #events: StoredEvent[] = [];
  readonly #byType = new Map<string, StoredEvent[]>();
  readonly #byTag = new Map<string, StoredEvent[]>();
  readonly #byId = new Map<string, StoredEvent>();

  add(position: number, time: string, head: EventHead, body: EventBody): void {
    const event: StoredEvent = { position, time, head, body, ownTags: head.tags };
    this.#events.push(event);
    push(this.#byType, head.type, event);
    for (const tag of head.tags) push(this.#byTag, tag, event);
    if (head.given === true) this.#byId.set(head.id, event);
  }

  findById(id: string): StoredEvent | undefined {
    return this.#byId.get(id);
  }

  /** Those that match, in order; all of them are after whatever a caller can have seen. */
  matching(items: Items): StoredEvent[] {
    if (this.#events.length === 0) return [];
    const found = items.flatMap((item) => this.#candidates(item).filter(({ head }) => matches([item], head)));
    return [...new Set(found)].sort((one, other) => one.position - other.position);
  }

  /** The shortest of the lists that all matches must be in. */
  #candidates({ types, tags }: Items[number]): readonly StoredEvent[] {
    const byTags = tags.map((tag) => this.#byTag.get(tag) ?? []);
    if (types.length > 0) byTags.push(types.flatMap((type) => this.#byType.get(type) ?? []));
    return byTags.reduce<readonly StoredEvent[]>(
      (shortest, list) => (list.length < shortest.length ? list : shortest),
      this.#events,
    );
  }
}

function push(map: Map<string, StoredEvent[]>, key: string, event: StoredEvent): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [event]);
  else list.push(event);
}
