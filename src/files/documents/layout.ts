// The names of what workers publish for all processes: documents, outcomes, and the record of the index that they form.
import { createHash } from "node:crypto";
import { findSlotNumber, slotName } from "../../format/name.ts";

/** Outcomes in one directory: one listing tells all of them. */
const outcomesPerBlock = 1000;
const documentPattern = /^([0-9a-f]{32})\.([0-9]{10})$/;

export interface DocumentName {
  /** Of the path. */
  readonly hash: string;
  readonly change: number;
}

export class DocumentsLayout {
  readonly directory: string;
  /** Names the index. Without it there is none, whatever else is there. */
  readonly record: string;
  readonly outcomes: string;

  constructor(directory: string) {
    this.directory = directory;
    this.record = `${directory}/index.json`;
    this.outcomes = `${directory}/outcomes`;
  }

  /** 256 of them. */
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

  /** The blocks of these changes, each once. */
  outcomeBlocks(changes: Iterable<number>): string[] {
    return [...new Set([...changes].map((change) => this.outcomeBlock(change)))];
  }
}

/** 128 bits. */
export function hashOf(path: string): string {
  return createHash("sha256").update(path).digest("hex").slice(0, 32);
}

/** Undefined for a foreign file. */
export function findDocumentName(name: string): DocumentName | undefined {
  const [, hash, number = ""] = documentPattern.exec(name) ?? [];
  const change = findSlotNumber(number);
  return hash === undefined || change === undefined ? undefined : { hash, change };
}
