// The names of the files that workers publish for all processes: documents, outcomes, and the
// record of their index.
import { findSlotNumber, slotName } from "../../format/name.ts";
import { sha256Of } from "../../format/checksum.ts";

/** Outcomes per directory: one listing returns all of them. */
const outcomesPerBlock = 1000;
const documentPattern = /^([0-9a-f]{32})\.([0-9]{10})$/;

export interface DocumentName {
  /** Hash of the path. */
  readonly hash: string;
  readonly change: number;
}

export class DocumentsLayout {
  readonly directory: string;
  /** The record that names the index. Without it there is no index, whatever else exists. */
  readonly record: string;
  readonly outcomes: string;

  constructor(directory: string) {
    this.directory = directory;
    this.record = `${directory}/index.json`;
    this.outcomes = `${directory}/outcomes`;
  }

  /** The 256 shards of the documents. */
  get shards(): string[] {
    return Array.from({ length: 256 }, (_, index) => index.toString(16).padStart(2, "0"));
  }

  shardOf(path: string): string {
    return `${this.directory}/${hashOf(path).slice(0, 2)}`;
  }

  document(path: string, change: number): string {
    return `${this.shardOf(path)}/${hashOf(path)}.${slotName(change)}`;
  }

  outcome(change: number): string {
    return `${this.outcomeBlock(change)}/${slotName(change)}`;
  }

  outcomeBlock(change: number): string {
    return `${this.outcomes}/${slotName(Math.floor(change / outcomesPerBlock))}`;
  }

  /** Returns the blocks of these changes, each once. */
  outcomeBlocks(changes: Iterable<number>): string[] {
    return [...new Set([...changes].map((change) => this.outcomeBlock(change)))];
  }
}

/** Returns 128 bits of a hash, in hex digits. */
export function hashOf(path: string): string {
  return sha256Of(path).slice(0, 32);
}

/** Parses the name of a document; undefined for a foreign file. */
export function findDocumentName(name: string): DocumentName | undefined {
  const [, hash, number = ""] = documentPattern.exec(name) ?? [];
  const change = findSlotNumber(number);
  return hash === undefined || change === undefined ? undefined : { hash, change };
}
