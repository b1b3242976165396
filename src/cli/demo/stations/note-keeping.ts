// Note keeping: workstations write, move and remove notes in one tree of files, and search it
// meanwhile. Every hit must exist, and every note must be found.
import { setTimeout as sleep } from "node:timers/promises";
import { openFiles, type FileTree } from "../../../files/index.ts";
import { isHoldfastError } from "../../../index.ts";
import type { HeldLock, PathLocks } from "../../../locks/index.ts";
import {
  elsewhereMs,
  readNoted,
  type Clerk,
  type Findings,
  type SharedFolder,
  type Receipt,
  type Station,
  type StationKind,
  type WorkId,
  type WorkOptions,
} from "./station.ts";

const station = "notes";
/** The timeout for work that killed workstations left behind. */
const settleMs = 60_000;

export const noteKeeping: StationKind = {
  name: station,
  about:
    "Now and then each writes a note, edits it, moves or removes it, and searches: what is found must be there, whichever of them is killed.",
  pieces: "notes",
  every: 8,
  open: async (folder, clerk) => new NoteStation(await openNotes(folder), clerk),
  audit: auditNotes,
};

class NoteStation implements Station {
  readonly #notes: FileTree;
  readonly #clerk: Clerk;
  #last: WorkId | undefined;

  constructor(notes: FileTree, clerk: Clerk) {
    this.#notes = notes;
    this.#clerk = clerk;
  }

  async work(sequence: number, { signal, forgets }: WorkOptions): Promise<Receipt> {
    const receipt = { station, ...this.#clerk, sequence, what: `note ${sequence}` };
    if (forgets) return receipt;
    const path = firstPathOf(receipt);
    await this.#notes.write(path, `a draft of ${wordOf(receipt)}`, { signal, timeoutMs: Infinity });
    await this.#notes.update(path, () => textOf(receipt), { signal, timeoutMs: Infinity });
    await this.#putAway(receipt, { signal, timeoutMs: Infinity });
    if (this.#last !== undefined) await this.#search(this.#last);
    this.#last = receipt;
    return receipt;
  }

  async close(): Promise<void> {
    await this.#notes.close();
  }

  /** After a remove, the note is written again elsewhere, so that every later audit can count it. */
  async #putAway(note: WorkId, waiting: { signal: AbortSignal; timeoutMs: number }): Promise<void> {
    const [first, last] = [firstPathOf(note), lastPathOf(note)];
    if (wayOf(note) === "move") await this.#notes.move(first, last, waiting);
    if (wayOf(note) !== "remove") return;
    await this.#notes.remove(first, waiting);
    await this.#notes.write(last, textOf(note), waiting);
  }

  /** Only this workstation changes the note, so a hit must have its current path. */
  async #search(note: WorkId): Promise<void> {
    for (const { path } of await this.#notes.search(wordOf(note)))
      if (path !== lastPathOf(note)) throw new Error(`a search for ${wordOf(note)} found ${path}, where it is not`);
  }
}

async function openNotes({ directory }: SharedFolder): Promise<FileTree> {
  return await openFiles(`${directory}/notes`);
}

/** Returns a word that no other note has. */
function wordOf({ session, sequence }: WorkId): string {
  return `note${session}n${sequence}`;
}

function textOf(note: WorkId): string {
  return `This is ${wordOf(note)}.`;
}

function firstPathOf(note: WorkId): string {
  return `desk/${wordOf(note)}.md`;
}

const ways = ["leave", "move", "remove"] as const;

function wayOf({ sequence }: WorkId): (typeof ways)[number] {
  return ways[Math.floor(sequence / noteKeeping.every) % ways.length] ?? "leave";
}

/** The path of a note when its receipt is issued. */
function lastPathOf(note: WorkId): string {
  if (wayOf(note) === "leave") return firstPathOf(note);
  return `${wayOf(note) === "move" ? "shelf" : "archive"}/${note.session}/${wordOf(note)}.md`;
}

/** Indexes the remaining changes like any workstation, then searches for each note. */
async function auditNotes(folder: SharedFolder, receipts: readonly Receipt[]): Promise<Findings> {
  const [lost, disorder]: [string[], string[]] = [[], []];
  let count = 0;
  await readNoted(disorder, async () => {
    await using notes = await openNotes(folder);
    await notes.settled({ signal: AbortSignal.timeout(settleMs) });
    for (const receipt of receipts) lost.push(...(await findFaults(notes, receipt)));
    for await (const { directory } of notes.list("", { deep: true })) if (!directory) count++;
    disorder.push(...(await findLocksLeft(await notes.locks())));
  });
  return {
    acknowledged: receipts.length,
    found: count,
    lost,
    doubled: [],
    disorder,
    shown: "each note is where it was left, is found by its text there and nowhere else, and no lock is left",
  };
}

/** A workstation that joined from elsewhere may still work. It releases its locks after a while. */
async function findLocksLeft(locks: PathLocks): Promise<string[]> {
  const held = async (): Promise<readonly HeldLock[]> =>
    (await locks.list()).filter(({ path }) => !path.startsWith("/"));
  let left = await held();
  for (const untilMs = performance.now() + elsewhereMs; left.length > 0 && performance.now() < untilMs;) {
    await sleep(200);
    const still = new Set((await held()).map(({ holdId }) => holdId));
    left = left.filter(({ holdId }) => still.has(holdId));
  }
  return left.map(({ path, holder }) => `${path} is locked by ${holder.name ?? holder.id}`);
}

async function findFaults(notes: FileTree, receipt: Receipt): Promise<string[]> {
  const expected = lastPathOf(receipt);
  const what = `${receipt.what} of ${receipt.workstation}`;
  const found = (await notes.search(wordOf(receipt))).map(({ path }) => path);
  if (found.join() !== expected) return [`${what}: found at ${found.join() || "no path"}, not at ${expected}`];
  try {
    const text = await notes.readText(expected);
    return text === textOf(receipt) ? [] : [`${what}: ${expected} has another text`];
  } catch (error) {
    if (!isHoldfastError(error, "NO_SUCH_FILE")) throw error;
    return [`${what}: ${expected} is not there`];
  }
}
