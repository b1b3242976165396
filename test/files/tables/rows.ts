// The failure tables of a tree, row by row: what a process does, where exactly it dies, and what is promised then.
import type { OperationName, WorkName } from "../../../harness/processes/files/works.ts";
import type { Texts } from "../file-sites.ts";

export const before: Texts = { "a/x.md": "wolf x", "a/y.md": "wolf y", "b.md": "wolf b" };
export const incoming: Texts = { "x.md": "new wolf x", "deep/z.md": "wolf z" };
export const messages = ["one", "two"];

const { "a/x.md": x, "a/y.md": y, ...withoutA } = before;
const { "b.md": b, ...withoutB } = before;

/** What the tree has when the work is done. Of what is queued, the preparation tells. */
export const after: Readonly<Record<OperationName, Texts>> = {
  "writes a file": { ...before, "b.md": "new wolf b" },
  "updates a file": { ...before, "b.md": "updated wolf b" },
  "writes a file below directories that are missing": { ...before, "new/deep/c.md": "wolf c" },
  "removes a file": withoutB,
  "removes a directory": withoutA,
  "moves a file": { ...withoutB, "a/b.md": b! },
  "moves a directory": { ...withoutA, "c/x.md": x!, "c/y.md": y! },
  "moves a directory to one that is missing": { ...withoutA, "new/a/x.md": x!, "new/a/y.md": y! },
  "adds a directory": { ...before, "guide/x.md": "new wolf x", "guide/deep/z.md": "wolf z" },
  "adds a new state of a directory": { ...withoutA, "a/x.md": "new wolf x", "a/deep/z.md": "wolf z" },
  "commits a session": { ...before, "memories/1.md": "wolf one,two" },
};

export interface Row {
  readonly table: string;
  /** What the process does that dies. */
  readonly work: WorkName;
  /** The moment, in plain words. */
  readonly dies: string;
  /** The moment, as a point of the disk or of a function. */
  readonly at: string;
  /** At which time that it comes there, from 1. */
  readonly time?: number;
  /** What another process has done before, and has left to a worker. */
  readonly prepared?: OperationName;
  /** "nothing": the tree is as before. "all": as after the work. */
  readonly happened: "nothing" | "all";
  /** Directories without an entry that may be left. */
  readonly leftover?: readonly string[];
  readonly hasSummaries?: boolean;
}

type Moment = Pick<Row, "dies" | "at" | "happened"> & Partial<Row>;

/** What every operation passes through before its commit. */
const untilCommit: readonly Moment[] = [
  { dies: "when it has the lock, before it stages anything", at: "after taking the lock", happened: "nothing" },
  {
    dies: "when all is staged, before the change is announced",
    at: "before announcing the change",
    happened: "nothing",
  },
];
const fromCommit: readonly Moment[] = [
  { dies: "after the commit, before the tree is touched", at: "after committing", happened: "all" },
];
const afterApplying: readonly Moment[] = [
  { dies: "when it is done, before the lock is released", at: "before releasing the lock", happened: "all" },
];
const closing: readonly Moment[] = [
  { dies: "when it is applied, before the step is closed", at: "before closing the step", happened: "all" },
  { dies: "when the step is closed", at: "after closing the step", happened: "all" },
];

const writing: readonly Moment[] = [
  ...untilCommit,
  { dies: "while it stages the content", at: "before staging a file", happened: "nothing" },
  { dies: "when the change is announced, before the commit", at: "before committing", happened: "nothing" },
  ...fromCommit,
  { dies: "when the content is in place", at: "after bringing it in", happened: "all" },
  ...afterApplying,
];

const removing: readonly Moment[] = [
  ...untilCommit,
  {
    dies: "between the index, which has let go of it, and the commit",
    at: "before committing",
    happened: "nothing",
  },
  ...fromCommit,
  {
    dies: "between the two renames: out of the tree, and into the trash",
    at: "after taking it out of the tree",
    happened: "all",
  },
  { dies: "when it is in the trash, before the step is closed", at: "after throwing it away", happened: "all" },
  ...closing,
  ...afterApplying,
];

const moving: readonly Moment[] = [
  ...untilCommit,
  {
    dies: "between the index, which has let go of the old path, and the commit",
    at: "before committing",
    happened: "nothing",
  },
  ...fromCommit,
  { dies: "between the two renames: it is in neither place", at: "after taking it out of the tree", happened: "all" },
  { dies: "when it is in its new place, before the step is closed", at: "after bringing it in", happened: "all" },
  ...closing,
  ...afterApplying,
];

/** The six steps of docs/format/files.md. */
const adding: readonly Moment[] = [
  { dies: "in step 1, when it has the lock", at: "after taking the lock", happened: "nothing" },
  { dies: "in step 2, when one file of several is staged", at: "after staging a file", happened: "nothing" },
  { dies: "after step 2, when all is staged", at: "before announcing the change", happened: "nothing" },
  { dies: "after step 3, when the change is announced", at: "after announcing the change", happened: "nothing" },
  { dies: "after step 4, before the commit", at: "before committing", happened: "nothing" },
  { dies: "in step 5, after the commit, before the tree is touched", at: "after committing", happened: "all" },
  { dies: "in step 5, when the directory is in place", at: "after bringing it in", happened: "all" },
  { dies: "after step 5, when it is done and still locked", at: "before preparing the offer", happened: "all" },
  { dies: "in step 6, before the offer of the lock counts", at: "before offering the lock", happened: "all" },
  {
    dies: "in step 6, when the lock is offered and no ticket has the token",
    at: "after offering the lock",
    happened: "all",
  },
  { dies: "in step 6, between the key and the ticket", at: "before making the ticket", happened: "all" },
  {
    dies: "in step 6, after the ticket, before the transfer is received and the prepared directory is removed",
    at: "after making the ticket",
    happened: "all",
  },
  {
    dies: "after step 6, when half of the prepared directory is removed",
    at: "after removing a prepared file",
    happened: "all",
  },
];

const replacing: readonly Moment[] = [
  { dies: "in step 5, between the old state and the new one", at: "after throwing it away", happened: "all" },
  { dies: "in step 5, with the old state in neither place", at: "after taking it out of the tree", happened: "all" },
];

const indexing: readonly Moment[] = [
  { dies: "with the ticket in hand, before it receives the lock", at: "after claiming the ticket", happened: "all" },
  { dies: "while it holds what it has received", at: "after receiving the lock", happened: "all" },
  { dies: "while it extracts a file, under the lock", at: "while a file is extracted", happened: "all" },
  { dies: "between a document and the next", at: "after publishing a document", happened: "all" },
  {
    dies: "when all documents are there, before it releases the lock",
    at: "before releasing the lock",
    happened: "all",
  },
  { dies: "after the release, before the outcome", at: "before publishing the outcome", happened: "all" },
  {
    dies: "after the outcome, before the task is noted as done",
    at: "before noting the task as done",
    happened: "all",
  },
  { dies: "when the task is done, before its ticket is archived", at: "before archiving the ticket", happened: "all" },
];

/** By the log: no ticket is made for a write. */
const following: readonly Moment[] = [
  { dies: "while it extracts the file", at: "while a file is extracted", happened: "all" },
  { dies: "when the document is there, before the outcome", at: "after publishing a document", happened: "all" },
];

const summarising: readonly Moment[] = [
  {
    dies: "when the documents are there, before it asks for a summary",
    at: "before noting a version",
    happened: "all",
  },
  { dies: "when it has asked for a summary, before the ticket of that", at: "after noting a version", happened: "all" },
  { dies: "while the directory is summarised", at: 'while "a" is summarised', happened: "all" },
  { dies: "before the first of the two sidecars", at: "before bringing in .abstract.md", happened: "all" },
  { dies: "between the two sidecars", at: "after bringing in .abstract.md", happened: "all" },
  {
    dies: "after both sidecars, before the task is noted as done",
    at: "after bringing in .overview.md",
    happened: "all",
  },
];

const committing: readonly Moment[] = [
  { dies: "during the summary, before the ticket", at: "while the messages are summarised", happened: "nothing" },
  { dies: "before the key of the ticket", at: "before claiming the key of a ticket", happened: "nothing" },
  { dies: "between the key and the ticket", at: "before making the ticket", happened: "all" },
  { dies: "when the ticket is published, before the archive", at: "before archiving the messages", happened: "all" },
  { dies: "when the archive is complete", at: "after archiving the messages", happened: "all" },
];

const remembering: readonly Moment[] = [
  { dies: "with the ticket in hand", at: "after claiming the ticket", happened: "all" },
  { dies: "during the extraction", at: "while memories are extracted", happened: "all" },
  { dies: "when the memory is announced, before its commit", at: "before committing", happened: "all" },
  { dies: "between the commit of the memory and the tree", at: "after committing", happened: "all" },
  {
    dies: "when the memory is written, before the task is noted as done",
    at: "before noting the task as done",
    happened: "all",
  },
  {
    dies: "when the extraction is done, before its ticket is archived",
    at: "after noting the task as done",
    happened: "all",
  },
];

/** Where two ways through the same code differ. */
const around = (moments: readonly Moment[]): Moment[] =>
  moments.filter(({ at }) => !/lock|announcing|closing|ticket|staging/.test(at));

const missingDirectory: readonly Moment[] = [
  { dies: "after the commit of the missing directory", at: "after committing", happened: "nothing" },
  { dies: "when the missing directory is there, before the move", at: "after bringing it in", happened: "nothing" },
  { dies: "after the commit of the move", at: "after committing", time: 2, happened: "all" },
];

export const rows: readonly Row[] = [
  ...table("write", "writes a file", writing),
  ...table("write", "updates a file", around(writing)),
  ...table("write", "writes a file below directories that are missing", around(writing)),
  ...table("delete", "removes a file", removing),
  ...table("delete", "removes a directory", around(removing)),
  ...table("move", "moves a file", moving),
  ...table("move", "moves a directory", around(moving)),
  ...table("move", "moves a directory to one that is missing", missingDirectory, { leftover: ["new/"] }),
  ...table("add, for the first time", "adds a directory", adding),
  ...table("add, incremental", "adds a new state of a directory", [...adding, ...replacing]),
  ...worked("add, the worker", "adds a directory", indexing),
  ...worked("write, the log worker", "writes a file", following),
  ...worked("refresh of summaries", "adds a new state of a directory", summarising, { hasSummaries: true }),
  ...table("session commit", "commits a session", committing),
  ...worked("session commit, the worker", "commits a session", remembering),
];

export function titleOf({ table: name, work, dies, prepared }: Row): string {
  const who = prepared === undefined ? `a process that ${work}` : "a worker";
  return `${name}: ${who} dies ${dies}`;
}

function table(name: string, work: WorkName, moments: readonly Moment[], rest: Partial<Row> = {}): Row[] {
  return moments.map((moment) => ({ table: name, work, ...moment, ...rest }));
}

function worked(name: string, prepared: OperationName, moments: readonly Moment[], rest: Partial<Row> = {}): Row[] {
  return table(name, "works on what is queued", moments, { prepared, ...rest });
}
