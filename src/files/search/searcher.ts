// Searches of one process: brings its engine up to date, asks it, and sees to what the answers show to be wrong.
import { holdfastError } from "../../errors.ts";
import type { DerivedIndex, SearchHit, SearchOptions } from "../model/derived-index.ts";
import type { NewChange } from "../change-log/change-record.ts";
import type { Documents } from "../documents/documents.ts";
import type { UserFunctions } from "../queue/user-functions.ts";
import type { Stamps } from "../tree/stamps.ts";
import type { TreePlace } from "../tree/tree-place.ts";
import { findStamp } from "./found-file.ts";
import type { Follower } from "./follower.ts";
import { findWaiting } from "./waiting-work.ts";
import { search } from "./search.ts";

/** So long a search waits for what other processes have indexed: a miss is better than a delay. */
const freshMs = 25;
/** Beyond that a file may be reported twice. */
const reportedMax = 10_000;

export interface SearcherParts {
  readonly place: TreePlace;
  readonly stamps: Stamps;
  readonly follower: Follower;
  readonly documents: Documents;
  readonly functions: UserFunctions;
  /** Announces a change of its own, and queues it. */
  readonly announce: (change: NewChange) => Promise<void>;
}

export class Searcher {
  readonly #parts: SearcherParts;
  /** Contents that this process has reported as those of other programs. */
  readonly #reported = new Set<string>();

  constructor(parts: SearcherParts) {
    this.#parts = parts;
  }

  async search(text: string, { limit, signal, ...options }: SearchOptions): Promise<SearchHit[]> {
    const { place, follower } = this.#parts;
    const { path: under } = await place.locate(options.under ?? "");
    await this.#refresh();
    const vector = text.trim() === "" ? undefined : await this.#embed(text, under, signal);
    const parts = {
      // Asked for each time: a refresh may load another engine meanwhile.
      search: async (...asked: Parameters<DerivedIndex["search"]>) =>
        (await follower.engine?.index.search(...asked)) ?? [],
      vector,
      findStamp: (path: string) => this.findStamp(path),
      onStale: async ({ path }: SearchHit, stamp: string | undefined) => {
        if (stamp === undefined) await this.#removeOrphan(path);
        else await this.#reportForeign(path, stamp);
      },
    };
    return await search(parts, text, { under, limit, signal });
  }

  /** Of the file as it is in the tree at this moment. */
  protected async findStamp(path: string): Promise<string | undefined> {
    return await findStamp(this.#parts.place, this.#parts.stamps, path);
  }

  async #embed(text: string, under: string, signal: AbortSignal | undefined): Promise<readonly number[] | undefined> {
    try {
      return await this.#parts.functions.embed(text, signal);
    } catch (cause) {
      signal?.throwIfAborted();
      const why = cause instanceof Error ? cause.message : String(cause);
      const message = `The function \`embed\` gave no vector of what is searched for: ${why} Nothing was changed: try again.`;
      throw holdfastError("INDEX_FAILED", message, { path: under }, cause);
    }
  }

  /** The first time it is waited for; later only for a moment. */
  async #refresh(): Promise<void> {
    const { follower, place } = this.#parts;
    const refreshing = follower.refresh();
    if (follower.engine === undefined) return await refreshing;
    let stop = (): void => undefined;
    const over = new Promise<void>((resolve) => {
      stop = place.ground.ports.clock.alarm(freshMs, resolve);
    });
    try {
      await Promise.race([refreshing, over]);
    } finally {
      stop();
      // A failure that comes later is told by the next search.
      refreshing.catch(() => undefined);
    }
  }

  /** What the index still has of a file that is gone. */
  async #removeOrphan(path: string): Promise<void> {
    const { engine } = this.#parts.follower;
    const known = engine?.find(path);
    if (engine === undefined || known === undefined) return;
    await engine.drop(path, known.change + 1);
    // If the file comes back, that is another change, with a document of its own.
    await this.#parts.documents.removeUpTo(path, known.change).catch(() => undefined);
  }

  /** A content that no change has announced was written by another program. */
  async #reportForeign(path: string, stamp: string): Promise<void> {
    const { place, follower, announce } = this.#parts;
    const content = `${stamp}/${path}`;
    if (this.#reported.has(content) || (await findWaiting(place.changes, follower))(path)) return;
    if (this.#reported.size >= reportedMax) this.#reported.clear();
    this.#reported.add(content);
    place.ground.ports.host.warn(
      `${place.pathOf(path)} has another content than the last change has written there: another program has changed it, without a lock. It is indexed again.`,
    );
    await announce({ kind: "written", path });
  }
}
