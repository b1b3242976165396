// Where everything of a tree lies that is not the tree itself: below `files/` in its ground.
import { findSlotNumber, slotName } from "../../format/name.ts";

/** Changes in one directory: on a share an absence costs a listing of its directory. */
const changesPerBlock = 1000;

export class FilesLayout {
  readonly directory: string;
  /** The change log. */
  readonly changes: string;
  /** What workers extracted, for all processes. */
  readonly documents: string;
  /** Generations of the snapshot that an engine is loaded from. */
  readonly index: string;
  /** A hand-off box: the tickets of indexing, summarising and extraction. */
  readonly queue: string;
  /** By session: its messages and its archives. */
  readonly sessions: string;

  /** `ground`: the directory of the ground. */
  constructor(ground: string) {
    this.directory = `${ground}/files`;
    this.changes = `${this.directory}/changes`;
    this.documents = `${this.directory}/documents`;
    this.index = `${this.directory}/index`;
    this.queue = `${this.directory}/queue`;
    this.sessions = `${this.directory}/sessions`;
  }

  change(number: number): string {
    return `${this.changeBlock(number)}/${slotName(number)}`;
  }

  /** The directory that change `number` is in. */
  changeBlock(number: number): string {
    return `${this.changes}/${slotName(Math.floor(number / changesPerBlock))}`;
  }

  /** The number before the first one of the block with this name; undefined for a foreign name. */
  findNumberBefore(blockName: string): number | undefined {
    const block = findSlotNumber(blockName);
    return block === undefined ? undefined : Math.max(0, block * changesPerBlock - 1);
  }
}

// By these tags a caller tells a lock that Holdfast itself takes in a tree from one of its own.

/** The tag of every lock that an operation takes begins so. */
export const tagPrefix = "files: ";
/** Of a lock that a worker takes by itself: for a moment, or while it indexes what was added. */
export const indexingTag: string = `${tagPrefix}indexing`;
/** Of the lock under which the sidecars of a directory are written. */
export const summaryTag: string = `${tagPrefix}summary`;
