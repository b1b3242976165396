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
