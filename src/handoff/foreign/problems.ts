// Entries of a foreign folder that cannot be adopted: each is reported once. A note in the box lets
// `verify` report it until an adopter finds the problem solved.
import { createHash } from "node:crypto";
import type { Problem } from "../../common.ts";
import { isHoldfastError, messageOf } from "../../errors.ts";
import { objectOf, textOf } from "../../format/decoding.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { isOutage } from "../../ports/disk-error.ts";
import { unlinkIfThere } from "../../durable/publish/directory.ts";
import { putIfAbsent } from "../../durable/publish/publish.ts";
import { findRecord, isUnreadable } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";

/**
 * A problem that a producer may be about to correct is reported only after this time: an unfinished
 * file looks like a damaged one.
 */
export const patienceMs = 10_000;
/** An entry that failed is not retried for this long. */
export const restMs = 60_000;
/** Maximum number of notes per folder. */
const notesMax = 100;
/** Maximum number of entries remembered. */
const knownMax = 10_000;

export interface FolderFault {
  /** Name of the entry in the folder. */
  readonly name: string;
  readonly what: string;
  readonly remedy: string;
  /** True if the producer may be about to correct it: it is reported only if it persists. */
  readonly mayPass?: boolean | undefined;
}

interface KnownProblem {
  readonly what: string;
  readonly sinceMs: number;
  isReported: boolean;
}

interface NotedProblem {
  readonly folder: string;
  readonly name: string;
  readonly what: string;
  readonly remedy: string;
  readonly host: string;
}

const problemKind: RecordKind<NotedProblem> = {
  kind: "adopt-problem",
  decode: (value) => {
    const { folder, name, what, remedy, host } = objectOf(value);
    return {
      folder: textOf(folder),
      name: textOf(name),
      what: textOf(what),
      remedy: textOf(remedy),
      host: textOf(host),
    };
  },
};

export interface ProblemOptions {
  readonly onProblem?: ((problem: Problem) => void) | undefined;
  /**
   * True if there is only one pass: then a problem is reported at once, even if its producer may be
   * about to correct it.
   */
  readonly isSinglePass?: boolean | undefined;
}

export class FolderProblems {
  readonly #box: Box;
  readonly #folder: string;
  readonly #options: ProblemOptions;
  readonly #known = new Map<string, KnownProblem>();
  /** Paths of this folder's notes, by entry and fault; undefined before the first pass. */
  #notes: Map<string, string> | undefined;
  readonly #seen = new Set<string>();

  constructor(box: Box, folder: string, options: ProblemOptions = {}) {
    this.#box = box;
    this.#folder = folder;
    this.#options = options;
  }

  /** Called in each pass for each faulty entry. */
  async report({ name, what, remedy, mayPass = false }: FolderFault): Promise<void> {
    const nowMs = this.#box.ground.ports.clock.monotonicMs();
    this.#seen.add(name);
    let known = this.#known.get(name);
    if (known?.what !== what) {
      if (known === undefined && this.#known.size >= knownMax) return;
      known = { what, sinceMs: nowMs, isReported: false };
      this.#known.set(name, known);
    }
    const isLasting = !mayPass || this.#options.isSinglePass === true || nowMs - known.sinceMs >= patienceMs;
    if (known.isReported || !isLasting) return;
    known.isReported = true;
    await this.#note({ name, what, remedy });
    this.#options.onProblem?.({ severity: "note", path: `${this.#folder}/${name}`, what, remedy, repaired: false });
  }

  /** Call it at the end of a pass over all entries: forgets the problems that no longer exist. */
  async endPass(): Promise<void> {
    for (const name of this.#known.keys()) if (!this.#seen.has(name)) this.#known.delete(name);
    this.#seen.clear();
    const notes = (this.#notes ??= await this.#readNotes());
    const current = new Set([...this.#known].map(([name, { what }]) => noteName(this.#folder, name, what)));
    for (const [text, path] of notes)
      if (!current.has(text)) {
        await unlinkIfThere(this.#box.disk, path);
        notes.delete(text);
      }
  }

  async #note(fault: Omit<NotedProblem, "folder" | "host">): Promise<void> {
    const box = this.#box;
    const notes = (this.#notes ??= await this.#readNotes());
    const text = noteName(this.#folder, fault.name, fault.what);
    if (notes.has(text) || notes.size >= notesMax) return;
    const directory = notesDirectory(box);
    const path = `${directory}/${text}`;
    const body: NotedProblem = { folder: this.#folder, ...fault, host: box.ground.ports.host.name };
    try {
      await box.ensure(directory);
      await putIfAbsent(box.ground.staging, path, encodeRecord(problemKind, body), { sync: false });
      notes.set(text, path);
    } catch (error) {
      // If the box cannot be written, the problem is still reported.
      if (!isHoldfastError(error)) throw error;
    }
  }

  async #readNotes(): Promise<Map<string, string>> {
    const notes = new Map<string, string>();
    for (const { path, noted } of await listNotedProblems(this.#box))
      if (noted?.folder === this.#folder) notes.set(path.slice(path.lastIndexOf("/") + 1), path);
    return notes;
  }
}

export interface ListedProblem {
  readonly path: string;
  /** Returns undefined if the note cannot be read. */
  readonly noted?: NotedProblem | undefined;
}

/** Lists the notes of adopters of all folders. */
export async function listNotedProblems(box: Box): Promise<ListedProblem[]> {
  const listed: ListedProblem[] = [];
  for (const text of (await box.names(notesDirectory(box))).sort()) {
    const path = `${notesDirectory(box)}/${text}`;
    try {
      const noted = await findRecord(box.disk, problemKind, path);
      if (noted !== undefined) listed.push({ path, noted });
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      listed.push({ path });
    }
  }
  return listed;
}

export const problemsName = "problems";

/** The notes are beside the claims, under a name that no holder has. */
function notesDirectory({ layout }: Box): string {
  return `${layout.directory}/adopting/${problemsName}`;
}

function noteName(folder: string, name: string, what: string): string {
  const hash = createHash("sha256")
    .update(JSON.stringify([folder, name, what]))
    .digest("hex");
  return `${hash.slice(0, 32)}.json`;
}

/**
 * True if a failure does not concern the entry at which it happened: the box is full, closed or
 * gone, this process was judged dead, the server does not respond, or the caller's own function
 * failed.
 */
export function isBeyondEntry(error: unknown): boolean {
  return (
    !isHoldfastError(error) ||
    isHoldfastError(error, "RESOURCE_BUSY", "LOCK_LOST", "CLOSED", "DISK_FULL", "OUTCOME_UNKNOWN") ||
    isHoldfastError(error, "NOT_A_STORE", "WRONG_STORE", "NEWER_FORMAT", "UNSUPPORTED_DISK") ||
    isOutage(error)
  );
}

/** Describes a failure as a fault of an entry. */
export function faultOf(name: string, error: unknown): FolderFault {
  const why = messageOf(error);
  const remedy = isHoldfastError(error, "INVALID_NAME")
    ? "Rename it: its producer has to give it another name."
    : isHoldfastError(error, "NO_PERMISSION")
      ? "Give the user of the adopter the right to read and move it. It is tried again at each pass."
      : "Correct or remove it. It is tried again at each pass.";
  return { name, what: `${JSON.stringify(name)} cannot be adopted: ${why.replace(/\.$/, "")}.`, remedy };
}
