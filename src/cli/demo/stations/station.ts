// What a workstation of the demo does: a kind of work whose every acknowledged piece can be looked
// for afterwards.
import { directoryOf, openGround, type Disk, type Ground } from "../../../durable/index.ts";
import { isHoldfastError } from "../../../index.ts";

/** What a workstation that has joined from elsewhere may take for the piece of work that it has in hand. */
export const elsewhereMs = 10_000;

/** The shared folder, as one process sees it. */
export interface Place {
  readonly directory: string;
  readonly disk: Disk;
  readonly ground: Ground;
}

/**
 * Makes the folder if it is not there. `name` is shown to other processes. INVALID_PATH for what
 * names no folder.
 */
export async function openPlace(location: string, name: string): Promise<Place> {
  // As the library writes it: absolute, with forward slashes on every platform.
  const directory = directoryOf(location);
  const ground = await openGround(`${directory}/ground`, { name });
  return { directory, disk: ground.ports.disk, ground };
}

/** One process at work. */
export interface Clerk {
  /** For people: "till-03". */
  readonly workstation: string;
  /**
   * Random, new with each start of the process: with the sequence it tells every piece of work from
   * every other.
   */
  readonly session: string;
}

/** What a workstation says when a piece of work is done for good. */
export interface Receipt extends Clerk {
  /** The name of the kind of station. */
  readonly station: string;
  /** Counts from 1 in each session. */
  readonly sequence: number;
  /** For people: "ticket 17". */
  readonly what: string;
}

export interface WorkOptions {
  readonly signal: AbortSignal;
  /** Give a receipt for something that was never written: the audit must find it. */
  readonly forgets: boolean;
}

export interface Station {
  /**
   * One piece of work. Resolves when it is durable, or with undefined when it came too late and
   * nothing of it counts. Rejects with the signal's reason, with OUTCOME_UNKNOWN or LOCK_LOST, or
   * with what went wrong.
   */
  work(sequence: number, options: WorkOptions): Promise<Receipt | undefined>;
  close(): Promise<void>;
}

/** One kind of work, in a file of its own; workstation.ts lists them. */
export interface StationKind {
  readonly name: string;
  /** What its workstations do, in a sentence. */
  readonly about: string;
  /** What `found` and `lost` count: "sales". */
  readonly pieces: string;
  /** Done in every n-th round of a workstation, from the first. */
  readonly every: number;
  readonly open: (place: Place, clerk: Clerk) => Promise<Station>;
  /**
   * Reads the folder anew and looks for everything that a receipt was given for. What is missing or
   * damaged is a finding, and no reason to reject.
   */
  readonly audit: (place: Place, receipts: readonly Receipt[]) => Promise<Findings>;
}

export interface Findings {
  readonly acknowledged: number;
  /**
   * May be more than was acknowledged: a workstation can be killed just before it could say so, and
   * others may have joined.
   */
  readonly found: number;
  /** Each in words. */
  readonly lost: readonly string[];
  readonly doubled: readonly string[];
  /**
   * What happened in an order that should have been impossible, and what cannot be read any more,
   * with its file.
   */
  readonly disorder: readonly string[];
  /** What else the audit has shown, when nothing is wrong. */
  readonly shown: string;
}

/**
 * What `read` gives; undefined when it cannot be read: then `disorder` says so, and the audit goes
 * on.
 */
export async function readNoted<T>(disorder: string[], read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    // What the library says of a failed look names the file.
    if (!isHoldfastError(error)) throw error;
    disorder.push(error.message);
    return undefined;
  }
}
