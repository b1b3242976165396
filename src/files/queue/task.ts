// The tasks of a tree: what the tickets of its queue ask for, and the keys that make each of them one.
import { countOf, objectOf, textOf, wordOf } from "../../format/decoding.ts";
import { hashOf } from "../documents/layout.ts";

/** Makes the index agree with what is at the paths of a change. */
export interface IndexTask {
  readonly task: "index";
  readonly change: number;
  /** Of the tree lock that came with it. */
  readonly token?: string;
}

/** Writes the sidecars of a directory, unless a later version was asked for. */
export interface SummaryTask {
  readonly task: "summary";
  readonly directory: string;
  readonly version: number;
}

/** Archives a session if its process died before, and extracts memories. */
export interface SessionTask {
  readonly task: "session";
  readonly session: string;
  readonly user?: string;
  readonly archive: number;
  /** Tells the commit from others that wanted the same number. */
  readonly commit: string;
  /** The last message of it. */
  readonly upTo: number;
  readonly summary?: string;
}

export type Task = IndexTask | SummaryTask | SessionTask;

/** A second ticket with the same key is none. */
export function keyOf(task: Task): string {
  if (task.task === "index") return indexKey(task.change);
  if (task.task === "summary") return `summary/${task.version}/${hashOf(task.directory)}`;
  return `session/${task.archive}/${task.commit}`;
}

export function indexKey(change: number): string {
  return `index/${change}`;
}

/** What a ticket says; throws for one that was not made here. */
export function taskOf(meta: unknown): Task {
  const { task, change, token, directory, version, session, user, archive, commit, upTo, summary } = objectOf(meta);
  const kind = wordOf(task, ["index", "summary", "session"] as const);
  if (kind === "index")
    return { task: kind, change: countOf(change), ...(token === undefined ? {} : { token: textOf(token) }) };
  if (kind === "summary") return { task: kind, directory: textOf(directory), version: countOf(version) };
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
