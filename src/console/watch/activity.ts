// Activity: one entry for each thing that happened in a store, for people and for programs.
import type { HolderInfo } from "../../index.ts";
import type { HeldLock } from "../../locks/index.ts";

/** Something that happened in a store. */
export interface Activity {
  /** When it happened, if the store records that; otherwise when it was noticed. */
  readonly at: Date;
  /** The kind of thing that changed. */
  readonly kind: "process" | "lock" | "event" | "ticket" | "file";
  /** The log or box; empty for the other kinds. */
  readonly part: string;
  /** A verb: `joined`, `died`, `acquired`, `appended`, `claimed`, `failed`, `written` … */
  readonly what: string;
  /** A process, a locked path, the type of an event, the key of a ticket, the path of a file. */
  readonly subject: string;
  /** The process that caused it, if known. */
  readonly by?: string;
  /** More in words: the reason of a failure, the tags of an event. */
  readonly detail?: string;
  /** The position of the event, or the id of the ticket. */
  readonly ref?: string;
}

/** Names a process for people: "till 3, 4711 on shop". */
export function nameOf({ name, pid, host }: Pick<HolderInfo, "pid" | "host"> & { readonly name?: string }): string {
  const place = `${pid} on ${host}`;
  return name === undefined || name === "" ? place : `${name}, ${place}`;
}

/** Compares two lists of holders. */
export function holderActivity(before: readonly HolderInfo[], now: readonly HolderInfo[], at: Date): Activity[] {
  const known = new Map(before.map((holder) => [holder.id, holder]));
  const entry = (holder: HolderInfo, what: string, detail?: string): Activity => ({
    at,
    kind: "process",
    part: "",
    what,
    subject: nameOf(holder),
    ...(detail === undefined ? {} : { detail }),
  });
  const activity: Activity[] = [];
  for (const holder of now) {
    const old = known.get(holder.id);
    known.delete(holder.id);
    if (old === undefined) activity.push(entry(holder, "joined"));
    if (old?.state === holder.state || (old === undefined && holder.state === "alive")) continue;
    if (holder.state === "dead") activity.push(entry(holder, "died", "its locks and tickets pass on"));
    if (holder.state === "silent") activity.push(entry(holder, "fell silent", "its heartbeat is late"));
    if (holder.state === "alive") activity.push(entry(holder, "came back"));
  }
  for (const holder of known.values()) if (holder.state !== "dead") activity.push(entry(holder, "left"));
  return activity;
}

/** Compares two lists of held locks. */
export function lockActivity(before: readonly HeldLock[], now: readonly HeldLock[], at: Date): Activity[] {
  const keyOf = ({ holdId, path }: HeldLock): string => `${holdId} ${path}`;
  const known = new Map(before.map((lock) => [keyOf(lock), lock]));
  const common = ({ path, holder, tag }: HeldLock): Omit<Activity, "at" | "what"> => ({
    kind: "lock",
    part: "",
    subject: path === "" ? "the whole tree" : path,
    by: nameOf(holder),
    ...(tag === undefined ? {} : { detail: tag }),
  });
  const requestOf = ({ path, holder, since }: HeldLock["waiting"][number]): string =>
    `${holder.id} ${since.getTime()} ${path}`;
  const waiters = new Set(before.flatMap(({ waiting }) => waiting.map(requestOf)));
  const activity: Activity[] = [];
  for (const lock of now) {
    const old = known.get(keyOf(lock));
    known.delete(keyOf(lock));
    // `since` is the time of the request: a lock that was waited for was acquired later.
    if (old === undefined)
      activity.push({ ...common(lock), at: waiters.has(requestOf(lock)) ? at : lock.since, what: "acquired" });
    const waited = new Set(old?.waiting.map(requestOf));
    for (const request of lock.waiting)
      if (!waited.has(requestOf(request)))
        activity.push({
          ...common({ ...lock, path: request.path, holder: request.holder }),
          at: request.since,
          what: "waits",
          detail: `for ${nameOf(lock.holder)}`,
        });
  }
  for (const lock of known.values()) activity.push({ ...common(lock), at, what: "released" });
  return activity;
}
