// The paths of a tree's metadata: below `files/` in its ground.
import { findSlotNumber, slotName } from "../../format/name.ts";

/**
 * Changes per directory. On a share, each check for a missing file costs a listing of its
 * directory.
 */
const changesPerBlockDefault = 1000;

export class FilesLayout {
  readonly directory: string;
  /** The change log. */
  readonly changes: string;
  /** The texts that workers extracted, for all processes. */
  readonly documents: string;
  /** Generations of the snapshot from which an engine is loaded. */
  readonly index: string;
  /** A hand-off box: the tickets of indexing, summaries and extraction. */
  readonly queue: string;
  /** The messages and archives of each session. */
  readonly sessions: string;
  /** Disk space that is kept for removals and moves. */
  readonly reserve: string;

  readonly #changesPerBlock: number;

  /** `ground`: the directory of the ground. */
  constructor(
    ground: string,
    { changesPerBlock = changesPerBlockDefault }: { readonly changesPerBlock?: number | undefined } = {},
  ) {
    this.#changesPerBlock = changesPerBlock;
    this.directory = `${ground}/files`;
    this.changes = `${this.directory}/changes`;
    this.documents = `${this.directory}/documents`;
    this.index = `${this.directory}/index`;
    this.queue = `${this.directory}/queue`;
    this.sessions = `${this.directory}/sessions`;
    this.reserve = `${this.directory}/reserve`;
  }

  change(number: number): string {
    return `${this.changeBlock(number)}/${slotName(number)}`;
  }

  /** The directory of change `number`. */
  changeBlock(number: number): string {
    return `${this.changes}/${slotName(this.blockOf(number))}`;
  }

  /** The file with all changes of a folded block. */
  changeSegment(number: number): string {
    return `${this.changeBlock(number)}.log`;
  }

  blockOf(number: number): number {
    return Math.floor(number / this.#changesPerBlock);
  }

  /** Returns the numbers of the changes of a full block. */
  numbersOf(block: number): { readonly first: number; readonly last: number } {
    const from = block * this.#changesPerBlock;
    return { first: Math.max(1, from), last: from + this.#changesPerBlock - 1 };
  }

  /** Returns the number before the first one of the block with this name; undefined for a foreign name. */
  findNumberBefore(blockName: string): number | undefined {
    const block = findSlotNumber(blockName);
    return block === undefined ? undefined : this.numbersOf(block).first - 1;
  }
}

// These tags distinguish locks that Holdfast itself takes in a tree from those of the caller.

/** The tag of every lock that an operation takes begins with this. */
export const tagPrefix = "files: ";
/** The tag of a lock that a worker takes: for a moment, or while it indexes added files. */
export const indexingTag: string = `${tagPrefix}indexing`;
/** The tag of the lock under which the sidecars of a directory are written. */
export const summaryTag: string = `${tagPrefix}summary`;
