// Feeds: what happened in one log, one box or the tree of files since the previous call, in bounded
// time.
import type { Change, FileTree } from "../../files/index.ts";
import type { EventStore } from "../../events/index.ts";
import type { Handoff, HandoffStats, TicketInfo, TicketState } from "../../handoff/index.ts";
import { nameOf, type Activity } from "./activity.ts";

/** Of a burst, only this many of the latest are reported one by one; the others are counted. */
const shownMax = 20;
const rememberedMax = 1000;

export class LogFeed {
  #head: number | undefined;

  async readNew(log: EventStore, name: string, head: number): Promise<Activity[]> {
    // On the first call, or after the log was restored, the latest events show what it is about.
    const before = this.#head === undefined || this.#head > head ? Math.max(0, head - shownMax) : this.#head;
    const isFirst = this.#head === undefined;
    this.#head = head;
    const after = Math.max(before, head - shownMax);
    const activity: Activity[] = isFirst ? [] : more("event", name, "appended", "events", after - before);
    if (after >= head) return activity;
    for await (const { type, time, tags, position } of log.read("all", { after, upTo: head }))
      activity.push({
        at: new Date(time),
        kind: "event",
        part: name,
        what: "appended",
        subject: type,
        ref: String(position),
        ...(tags.length === 0 ? {} : { detail: tags.join(" ") }),
      });
    return activity;
  }
}

/** The verb for a ticket that enters a state. */
const wordOf: Readonly<Record<TicketState, string>> = {
  incoming: "published",
  delayed: "delayed",
  processing: "claimed",
  archive: "done",
  error: "failed",
};

export class BoxFeed {
  #stats: HandoffStats | undefined;
  /** State and attempt of each ticket seen recently. */
  readonly #seen = new Map<string, string>();

  async readNew(box: Handoff, name: string, stats: HandoffStats): Promise<Activity[]> {
    const before = this.#stats;
    this.#stats = stats;
    const activity: Activity[] = [];
    for (const state of ["incoming", "delayed", "processing", "error", "archive"] as const) {
      // A claim may pass to another worker without changing the number of claims.
      if (before?.[state] === stats[state] && state !== "processing") continue;
      let found = 0;
      for await (const ticket of box.list(state, { limit: shownMax, backwards: true })) {
        if (!this.#isNew(ticket)) continue;
        found++;
        // On the first call, only failures are reported.
        if (before !== undefined || state === "error") activity.push(entryOf(name, ticket));
      }
      const missed = before === undefined ? 0 : stats[state] - before[state] - found;
      if (state === "archive" || state === "error")
        activity.push(...more("ticket", name, wordOf[state], "tickets", missed));
    }
    if (before !== undefined && before.paused !== stats.paused) {
      const common = { at: new Date(), kind: "ticket", part: name, subject: "the box" } as const;
      const detail = stats.pauseReason === undefined ? {} : { detail: stats.pauseReason };
      activity.push({ ...common, what: stats.paused ? "paused" : "resumed", ...detail });
    }
    return activity;
  }

  #isNew({ id, state, attempt }: TicketInfo): boolean {
    const now = `${state} ${attempt}`;
    if (this.#seen.get(id) === now) return false;
    this.#seen.delete(id);
    this.#seen.set(id, now);
    const [first] = this.#seen.keys();
    if (first !== undefined && this.#seen.size > rememberedMax) this.#seen.delete(first);
    return true;
  }
}

function entryOf(part: string, ticket: TicketInfo): Activity {
  const { id, key, state, holder, createdAt, producer, history } = ticket;
  const last = history.at(-1);
  const hasFailed = last !== undefined && (state === "error" || state === "delayed");
  const by = state === "incoming" ? nameOf(producer) : holder && nameOf(holder);
  return {
    at: hasFailed ? last.at : state === "incoming" ? createdAt : new Date(),
    kind: "ticket",
    part,
    what: wordOf[state],
    subject: key,
    ref: id,
    ...(by === undefined ? {} : { by }),
    ...(hasFailed ? { detail: last.reason } : {}),
  };
}

export class TreeFeed {
  #last: number | undefined;

  async readNew(tree: FileTree, last: number): Promise<Activity[]> {
    const isFirst = this.#last === undefined;
    const before = this.#last ?? Math.max(0, last - shownMax);
    const after = Math.max(before, last - shownMax);
    const changes = (await tree.history({ after, before: last + 1, limit: shownMax })).reverse();
    this.#last = changes.at(-1)?.number ?? before;
    return [...(isFirst ? [] : more("file", "", "changed", "files", after - before)), ...changes.map(entryOfChange)];
  }
}

function entryOfChange({ kind, path, from, by, at, damaged }: Change): Activity {
  const detail = damaged ?? (from === undefined ? undefined : `from ${from}`);
  return {
    at: at ?? new Date(),
    kind: "file",
    part: "",
    what: kind,
    subject: path === "" ? "the whole tree" : path,
    ...(by === undefined ? {} : { by: nameOf(by) }),
    ...(detail === undefined ? {} : { detail }),
  };
}

function more(kind: Activity["kind"], part: string, what: string, unit: string, count: number): Activity[] {
  return count > 0 ? [{ at: new Date(), kind, part, what, subject: `${count} more ${unit}` }] : [];
}
