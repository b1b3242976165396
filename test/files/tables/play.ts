// Playing a row: a tree is made, a process dies at its point, and the next one finds what the table promises.
import { expect } from "vitest";
import type { IndexedFiles } from "../../../src/files/indexed-files.ts";
import { sessionName, summaryOf, works } from "../../../harness/processes/files/works.ts";
import { putFiles, textsIn, type Texts } from "../file-sites.ts";
import { found, locksOf } from "../index/indexed-sites.ts";
import type { Arena } from "./arena.ts";
import { after, before, incoming, messages, type Row } from "./rows.ts";

/** So that a lock that it offers outlives the start of a real process. */
const makerLeaseMs = 60_000;
/** More than a lease. */
const pausesMax = 1_000;
const unfinished = ["staging", "incoming", "delayed", "processing", "error"];

export async function playRow(arena: Arena, row: Row): Promise<void> {
  await prepare(arena, row);
  await arena.killAt(row);
  const { hasSummaries = false } = row;
  const bob = await arena.open("bob", { hasSummaries });
  await mustBeAsPromised(arena, bob, row);
  await bob.close();
}

/** A tree that is indexed, a prepared directory beside it, and messages in a session. */
export async function prepare(
  arena: Arena,
  { prepared, hasSummaries = false }: Pick<Row, "prepared" | "hasSummaries">,
): Promise<void> {
  await putFiles(arena.disk, arena.root, before);
  await putFiles(arena.disk, arena.staged, incoming);
  const maker = await arena.open("maker", { hasSummaries, leaseMs: makerLeaseMs });
  await (await maker.session(sessionName)).append(...messages.map((content) => ({ role: "user", content })));
  await maker.settled();
  await maker.close();
  if (prepared === undefined) return;
  const adder = await arena.open("adder", { hasSummaries, leaseMs: makerLeaseMs, work: false });
  await works[prepared](adder, arena);
  await adder.close();
}

/** The tree, the index, the queue, the locks, the prepared directory and the session, as the row promises. */
async function mustBeAsPromised(arena: Arena, files: IndexedFiles, row: Row): Promise<void> {
  const done = row.prepared ?? row.work;
  const isDone = row.happened === "all" && done !== "works on what is queued";
  await mustBeWhole(arena, files, { expected: isDone ? after[done] : before, ...row });
  if (!isDone) expect(await textsIn(arena.disk, arena.staged)).toEqual(incoming);
  await mustHaveMessages(files, isDone && done === "commits a session");
}

/** The tree has exactly these files, each is found, each task was done once, and no lock and no ticket is left. */
export async function mustBeWhole(
  arena: Arena,
  files: IndexedFiles,
  {
    expected,
    leftover = [],
    hasSummaries = false,
  }: { readonly expected: Texts } & Pick<Row, "leftover" | "hasSummaries">,
): Promise<void> {
  await untilQuiet(arena, files);
  const texts = await textsIn(arena.disk, arena.root);
  expect(withoutSidecars(texts, leftover)).toEqual(expected);
  expect(await found(files, "wolf")).toEqual(Object.keys(expected).sort());
  if (hasSummaries) mustHaveSummaries(texts);
  const locks = await files.locks();
  // What a dead process held ends with its lease.
  await (await locks.acquire("", { mode: "tree", timeoutMs: 60_000 })).release();
  expect(await locksOf(files)).toEqual([]);
  const keys = await findKeysDone(arena);
  expect(keys).toEqual([...new Set(keys)]);
}

async function mustHaveMessages(files: IndexedFiles, isArchived: boolean): Promise<void> {
  const session = await files.session(sessionName);
  const open = (await session.messages()).map(({ content }) => content);
  const archived: string[][] = [];
  for await (const archive of session.archives()) archived.push(archive.messages.map(({ content }) => content));
  expect({ open, archived }).toEqual(
    isArchived ? { open: [], archived: [messages] } : { open: messages, archived: [] },
  );
}

function mustHaveSummaries(texts: Texts): void {
  const paths = Object.keys(texts).filter((path) => !isSidecar(path));
  const directories = new Set(
    paths.flatMap((path) => path.split("/").map((_, index, parts) => parts.slice(0, index).join("/"))),
  );
  for (const directory of directories) {
    const prefix = directory === "" ? "" : `${directory}/`;
    const below = paths
      .filter((path) => path.startsWith(prefix))
      .map((path) => path.slice(prefix.length).split("/")[0]!);
    const { abstract, overview } = summaryOf(directory, [...new Set(below)].sort());
    expect({ abstract: texts[`${prefix}.abstract.md`], overview: texts[`${prefix}.overview.md`] }).toEqual({
      abstract,
      overview,
    });
  }
}

/**
 * Waits until nothing is left to do. `settled` is not enough: the outcome of a change comes before its ticket is done,
 * and a ticket that a dead process had in hand or in preparation comes back when its lease is over.
 */
async function untilQuiet(arena: Arena, files: IndexedFiles): Promise<void> {
  for (let pauses = 0; pauses < pausesMax; pauses++) {
    const changes = await arena.disk.list(`${stateOf(arena)}/changes/0000000000`);
    await files.settled();
    const isQuiet = (await findTickets(arena)).length === 0;
    if (isQuiet && (await arena.disk.list(`${stateOf(arena)}/changes/0000000000`)).length === changes.length) return;
    await arena.pause();
  }
  expect(await findTickets(arena)).toEqual([]);
}

/** Tickets that are not done, or were given up. */
async function findTickets(arena: Arena): Promise<string[]> {
  const names: string[] = [];
  // Twice: one that is tried again goes back to a state that was listed before.
  for (const state of [...unfinished, ...unfinished])
    names.push(...(await namesBelow(arena, `${stateOf(arena)}/queue/${state}`)));
  return names.filter((name) => name.endsWith(".json"));
}

/** By listings alone, because what is listed may be gone a moment later. */
async function namesBelow(arena: Arena, directory: string): Promise<string[]> {
  const names: string[] = [];
  for (const name of await arena.disk.list(directory).catch(() => []))
    if (/^[0-9a-f]{64}$|\.json$/.test(name)) names.push(name);
    else names.push(...(await namesBelow(arena, `${directory}/${name}`)));
  return names;
}

/** Of all tickets that are done. */
async function findKeysDone(arena: Arena): Promise<string[]> {
  const tickets = await textsIn(arena.disk, `${stateOf(arena)}/queue/archive`);
  return Object.values(tickets).map((text) => (JSON.parse(text) as { body: { key: string } }).body.key);
}

/** How many tickets were ever made. */
export async function countKeys(arena: Arena): Promise<number> {
  return (await namesBelow(arena, `${stateOf(arena)}/queue/keys`)).length;
}

function stateOf({ root }: Arena): string {
  return `${root}/.holdfast/files`;
}

function withoutSidecars(texts: Texts, leftover: readonly string[]): Texts {
  return Object.fromEntries(Object.entries(texts).filter(([path]) => !isSidecar(path) && !leftover.includes(path)));
}

function isSidecar(path: string): boolean {
  return /(^|\/)\.(abstract|overview)\.md$/.test(path);
}
