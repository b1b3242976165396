// One append call on its way: what it wants to write, under which condition, and who waits for the answer.
import type { Appended } from "../model/event-store.ts";
import type { EventHead, Retag } from "../log/format/line.ts";
import type { Items } from "../model/query.ts";

export interface AppendRequest {
  /** All of its line that does not depend on its place. */
  readonly content: string;
  readonly heads: readonly EventHead[];
  /** The JSON of each body: what is judged is what will be read, whatever its caller does with the objects. */
  readonly payload: readonly string[];
  readonly condition?: { readonly items: Items; readonly after: number } | undefined;
  readonly retag?: Retag | undefined;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface Call extends AppendRequest {
  /** By the monotonic clock: when it stops waiting for the gate. */
  readonly deadlineMs: number;
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: unknown) => void;
}
