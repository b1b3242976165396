// A station of the demo: a kind of work whose every acknowledged piece can be looked for
// afterwards.
import { directoryOf, openGround, type Disk, type Ground } from "../../../durable/index.ts";
import { isHoldfastError } from "../../../index.ts";

/** How long a workstation that joined from elsewhere may take for its current piece of work. */
export const elsewhereMs = 10_000;

/** The shared folder, as one process sees it. */
export interface SharedFolder {
  readonly directory: string;
  readonly disk: Disk;
  readonly ground: Ground;
}

/**
 * Creates the folder if it does not exist. `name` is shown to other processes. Throws INVALID_PATH
 * if the location names no folder.
 */
export async function openSharedFolder(location: string, name: string): Promise<SharedFolder> {
  // The path in the library's form: absolute, with forward slashes on every platform.
  const directory = directoryOf(location);
  const ground = await openGround(`${directory}/ground`, { name });
  return { directory, disk: ground.ports.disk, ground };
}

/** One working process. */
export interface Clerk {
  /** For people: "till-03". */
  readonly workstation: string;
  /**
   * Random, and new with each start of the process. Together with the sequence, it identifies a
   * piece of work.
   */
  readonly session: string;
}

/** A receipt for a piece of work. A workstation issues it once the piece is durable. */
export interface Receipt extends Clerk {
  /** The name of the kind of station. */
  readonly station: string;
  /** The number of the piece in its session, from 1. */
  readonly sequence: number;
  /** For people: "ticket 17". */
  readonly what: string;
}

/** Identifies one piece of work. */
export type WorkId = Pick<Receipt, "session" | "sequence">;

export interface WorkOptions {
  readonly signal: AbortSignal;
  /** True to issue a receipt for something that was never written, which the audit must find. */
  readonly forgets: boolean;
}

export interface Station {
  /**
   * Does one piece of work. Resolves when it is durable, or with undefined if it was too late and
   * nothing of it counts. Rejects with the signal's reason, with OUTCOME_UNKNOWN or LOCK_LOST, or
   * with the failure.
   */
  work(sequence: number, options: WorkOptions): Promise<Receipt | undefined>;
  close(): Promise<void>;
}

/** One kind of work, in its own file; workstation.ts lists them. */
export interface StationKind {
  readonly name: string;
  /** Describes the work in a sentence. */
  readonly about: string;
  /** Names what `found` and `lost` count: "sales". */
  readonly pieces: string;
  /** A workstation does this work in every n-th round, beginning with the first. */
  readonly every: number;
  readonly open: (folder: SharedFolder, clerk: Clerk) => Promise<Station>;
  /**
   * Reads the folder and searches for everything that has a receipt. Missing or damaged pieces are
   * findings, not rejections.
   */
  readonly audit: (folder: SharedFolder, receipts: readonly Receipt[]) => Promise<Findings>;
}

export interface Findings {
  readonly acknowledged: number;
  /**
   * How many pieces were found. More than were acknowledged is possible: a workstation may be
   * killed just before it acknowledges, and others may have joined.
   */
  readonly found: number;
  /** The lost pieces, in words. */
  readonly lost: readonly string[];
  readonly doubled: readonly string[];
  /** Impossible orders of events, and unreadable files with their paths. */
  readonly disorder: readonly string[];
  /** Further results of the audit, if nothing is wrong. */
  readonly shown: string;
}

/**
 * Returns the result of `read`. If it is unreadable, adds that to `disorder` and returns undefined;
 * the audit continues.
 */
export async function readNoted<T>(disorder: string[], read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    // The message already includes the path.
    if (!isHoldfastError(error)) throw error;
    disorder.push(error.message);
    return undefined;
  }
}
