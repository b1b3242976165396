// The tasks of a tree: the content of its queue's tickets, and the keys that make each unique.
import { countOf, objectOf, textOf, wordOf } from "../../format/decoding.ts";
import { hashOf } from "../documents/layout.ts";

/** Makes the index match the current state at the paths of a change. */
export interface IndexTask {
  readonly task: "index";
  readonly change: number;
  /** Id of the change: a change with the same number in a restored log is another one. Absent in older builds. */
  readonly id?: string;
  /** Token of the tree lock that came with it. */
  readonly token?: string;
  /** Attempts on the change before it had a ticket. */
  readonly failures?: number;
  readonly deaths?: number;
}

/** Writes the sidecars of a directory, unless a later version was requested. */
export interface SummaryTask {
  readonly task: "summary";
  readonly directory: string;
  readonly version: number;
  /** Identifies the sequence of version numbers. Absent in older builds. */
  readonly origin?: string;
}

/** Archives a session if its process died before, and extracts memories. */
export interface SessionTask {
  readonly task: "session";
  readonly session: string;
  readonly user?: string;
  readonly archive: number;
  /** Distinguishes the commit from others that competed for the same number. */
  readonly commit: string;
  /** Its last message. */
  readonly upTo: number;
  readonly summary?: string;
}

export type Task = IndexTask | SummaryTask | SessionTask;

/** Returns the key of a task. A second ticket with the same key is ignored. */
export function keyOf(task: Task): string {
  if (task.task === "index") return indexKey(task);
  if (task.task === "summary") {
    const { version, directory, origin } = task;
    return `summary/${version}/${hashOf(directory)}${origin === undefined ? "" : `/${origin}`}`;
  }
  return `session/${task.archive}/${task.commit}`;
}

export function indexKey({ change, id }: Pick<IndexTask, "change" | "id">): string {
  return id === undefined ? `index/${change}` : `index/${change}/${id}`;
}

/** Decodes a ticket; throws if it was not made here. */
export function taskOf(meta: unknown): Task {
  const {
    task,
    change,
    id,
    token,
    failures,
    deaths,
    directory,
    version,
    origin,
    session,
    user,
    archive,
    commit,
    upTo,
    summary,
  } = objectOf(meta);
  const kind = wordOf(task, ["index", "summary", "session"] as const);
  if (kind === "index")
    return {
      task: kind,
      change: countOf(change),
      ...(id === undefined ? {} : { id: textOf(id) }),
      ...(token === undefined ? {} : { token: textOf(token) }),
      ...(failures === undefined ? {} : { failures: countOf(failures) }),
      ...(deaths === undefined ? {} : { deaths: countOf(deaths) }),
    };
  if (kind === "summary")
    return {
      task: kind,
      directory: textOf(directory),
      version: countOf(version),
      ...(origin === undefined ? {} : { origin: textOf(origin) }),
    };
  return {
    task: kind,
    session: textOf(session),
    ...(user === undefined ? {} : { user: textOf(user) }),
    archive: countOf(archive),
    commit: textOf(commit),
    upTo: countOf(upTo),
    ...(summary === undefined ? {} : { summary: textOf(summary) }),
  };
}
