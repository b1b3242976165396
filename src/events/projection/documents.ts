// The documents of one generation of a read model, as readers and its worker use them.
import type { Checkpoint } from "../../part/progress/checkpoint.ts";
import type { Checkpoints, LeasedWork } from "../../part/progress/checkpoints.ts";
import type { Document, DocumentName } from "./document.ts";

/** Returned if the document was replaced during the read. */
export const documentReplaced: unique symbol = Symbol("again");

export interface Documents {
  /**
   * Returns the document that counts at `checkpoint`. If there is none, the caller tries again in case the checkpoint
   * has changed.
   */
  find(hash: string, checkpoint: Checkpoint): Promise<Document | typeof documentReplaced | undefined>;
  /** Returns the document of this name; undefined if it was replaced or removed. */
  read(name: DocumentName): Promise<Document | undefined>;
  /** Lists the names of all documents that count. */
  list(checkpoints: Pick<Checkpoints, "read">): Promise<DocumentName[]>;
  openWriter(leased: LeasedWork): DocumentsWriter;
}

/** Writes documents under one lease. */
export interface DocumentsWriter {
  find(key: string): Promise<Document | undefined>;
  /**
   * Makes these documents, and everything up to `position`, count at once. Returns false if another
   * process took over: then none of them counts.
   */
  commit(documents: readonly Document[], position: number): Promise<boolean>;
  /** Marks the checkpoint as complete, unless a commit failed or is in progress: no more documents follow. */
  end(): Promise<void>;
}
