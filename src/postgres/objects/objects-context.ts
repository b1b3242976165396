// ObjectsContext: everything that the parts of an open object store in a database share.
import type { BucketConfig } from "../../objects/model/object.ts";
import type { Database } from "../connection/database.ts";
import type { PgPart } from "../parts.ts";
import type { Blobs } from "./blobs.ts";
import type { KeyCalls } from "./key-calls.ts";
import type { Turns } from "./turns.ts";

export interface ObjectsContext {
  readonly database: Database;
  readonly part: PgPart;
  /** The location, for messages. */
  readonly directory: string;
  readonly turns: Turns;
  readonly calls: KeyCalls;
  readonly blobs: Blobs;
  readonly inlineMax: number;
  /** The settings of each bucket when this process last read them. */
  readonly known: Map<string, BucketConfig>;
  readonly newId: () => string;
  /** Returns 16 random bytes. */
  readonly random: () => Uint8Array;
  /** Throws CLOSED if the store is closed, and tracks the call as in progress. */
  readonly run: <T>(work: () => Promise<T>) => Promise<T>;
}
