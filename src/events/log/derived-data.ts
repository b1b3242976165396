// Derived data: the results that consumers, read models and decisions store beside a log. All of them can be computed
// from the log again.
import type { Generations, GenerationsState } from "../../part/generations.ts";
import type { Documents } from "../projection/documents.ts";

export interface DerivedData {
  /** Lists the file names of all consumers that have started. */
  listConsumers(): Promise<string[]>;
  /** Lists the file names of all read models that have started. */
  listReadModels(): Promise<string[]>;
  /** Returns which generations a read model has, without opening them. Creates nothing. */
  readGenerations(name: string): Promise<GenerationsState>;
  /** Opens the generations of a read model. `name` is the name of its directory in the log, and of its lease. */
  openGenerations(name: string): Promise<Generations>;
  /** Returns the documents of a generation, by the path of the generation. They are created with its checkpoint. */
  documentsOf(path: string): Documents;
  /** Returns the bytes that `keepSnapshot` stored last. Rejects if there are none or they cannot be read. */
  readSnapshot(model: string, hash: string): Promise<Uint8Array>;
  /** Stores the snapshot of a model with one query. It may be lost at any time. */
  keepSnapshot(model: string, hash: string, bytes: Uint8Array): Promise<void>;
}
