// The accepted events of a batch before they are written. Later calls are judged as if these were published.
import type { EventBody, EventHead } from "../model/stored-event.ts";
import type { StoredEvent } from "../log/read/event-reader.ts";
import { matchesItem, type Items } from "../model/query.ts";

const none: readonly StoredEvent[] = [];

export class PendingEvents {
  readonly #events: StoredEvent[] = [];
  readonly #byType = new Map<string, StoredEvent[]>();
  readonly #byTag = new Map<string, StoredEvent[]>();
  readonly #byId = new Map<string, StoredEvent>();

  /** `payload`: the JSON of its body. */
  add(position: number, time: string, head: EventHead, payload: string): void {
    const event = new PendingEvent(position, time, head, payload);
    this.#events.push(event);
    push(this.#byType, head.type, event);
    for (const tag of head.tags) push(this.#byTag, tag, event);
    if (head.given === true) this.#byId.set(head.id, event);
  }

  findById(id: string): StoredEvent | undefined {
    return this.#byId.get(id);
  }

  /** True if any pending event matches. Allocates nothing if none does, which is the usual case. */
  hasMatching(items: Items): boolean {
    if (this.#events.length === 0) return false;
    return items.some((item) => this.#candidates(item).some(({ head }) => matchesItem(item, head)));
  }

  /** Returns the matching events, in order. No caller has seen any of them. */
  matching(items: Items): StoredEvent[] {
    if (this.#events.length === 0) return [];
    const found = new Set<StoredEvent>();
    for (const item of items)
      for (const event of this.#candidates(item)) if (matchesItem(item, event.head)) found.add(event);
    return [...found].sort((one, other) => one.position - other.position);
  }

  /**
   * Returns the shortest list that contains all matches. If the query names no tag, several long lists of types may
   * have to be merged.
   */
  #candidates({ types, tags }: Items[number]): readonly StoredEvent[] {
    if (tags.length === 0)
      return types.length === 0 ? this.#events : types.flatMap((type) => this.#byType.get(type) ?? []);
    let shortest: readonly StoredEvent[] = this.#events;
    for (const tag of tags) {
      const list = this.#byTag.get(tag) ?? none;
      if (list.length < shortest.length) shortest = list;
    }
    return shortest;
  }
}

/** An event as a reader gets it. Its body is parsed on demand, because few are needed. */
class PendingEvent implements StoredEvent {
  readonly position: number;
  readonly time: string;
  readonly head: EventHead;
  readonly #payload: string;

  constructor(position: number, time: string, head: EventHead, payload: string) {
    this.position = position;
    this.time = time;
    this.head = head;
    this.#payload = payload;
  }

  get ownTags(): readonly string[] {
    return this.head.tags;
  }

  get body(): EventBody {
    return JSON.parse(this.#payload) as EventBody;
  }
}

function push(map: Map<string, StoredEvent[]>, key: string, event: StoredEvent): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [event]);
  else list.push(event);
}
