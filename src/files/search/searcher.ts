// Searcher: the searches of one process. It updates the engine, queries it, and repairs stale
// entries that the results reveal.
import { holdfastError, messageOf } from "../../errors.ts";
import type { DerivedIndex, SearchHit, SearchOptions } from "../model/derived-index.ts";
import type { TaskContext } from "../queue/task-context.ts";
import type { Follower } from "./follower.ts";
import { changeBetween, judgeContent } from "./foreign-changes.ts";
import { verifiedHits } from "./verified-hits.ts";

/**
 * How long a search waits for the newest outcomes of other processes: a missed file is better than
 * a delay.
 */
const freshMs = 25;
/** Beyond this a file may be reported twice. */
const reportedMax = 10_000;

type SearchContext = Pick<TaskContext, "derived" | "functions" | "announce"> & { readonly follower: Follower };

export class Searcher {
  readonly #context: SearchContext;
  /** Contents that this process has reported as those of other programs. */
  readonly #reported = new Set<string>();

  constructor(context: SearchContext) {
    this.#context = context;
  }

  async search(text: string, { limit, signal, ...options }: SearchOptions): Promise<SearchHit[]> {
    const { derived, follower } = this.#context;
    const { path: under } = await derived.tree.locate(options.under ?? "");
    await this.#refresh();
    const vector = text.trim() === "" ? undefined : await this.#embed(text, under, signal);
    const context = {
      // Read each time, because a refresh may load another engine meanwhile.
      search: async (...asked: Parameters<DerivedIndex["search"]>) =>
        (await follower.engine?.index.search(...asked)) ?? [],
      vector,
      findStamp: (path: string) => derived.findStamp(path),
      // A missing file is only omitted: another program may have moved it away for a moment, as a
      // checkout of another branch does. Only a change by Holdfast, or a rebuild, drops its
      // document.
      onStale: async ({ path }: SearchHit, stamp: string | undefined) => {
        if (stamp !== undefined) await this.#indexAgain(path, stamp);
      },
    };
    return await verifiedHits(context, text, { under, limit, signal });
  }

  async #embed(text: string, under: string, signal: AbortSignal | undefined): Promise<readonly number[] | undefined> {
    try {
      return await this.#context.functions.embed(text, signal);
    } catch (cause) {
      signal?.throwIfAborted();
      const why = messageOf(cause);
      const message = `The function \`embed\` returned no vector for the query: ${why} Nothing was changed: try again.`;
      throw holdfastError("INDEX_FAILED", message, { path: under }, cause);
    }
  }

  /** Waits for the first refresh to end; for later ones only a moment. */
  async #refresh(): Promise<void> {
    const { derived, follower } = this.#context;
    const { clock } = derived.tree.ground.ports;
    const refreshing = follower.refresh();
    if (follower.engine === undefined) return await refreshing;
    let stop = (): void => undefined;
    const over = new Promise<void>((resolve) => {
      stop = clock.alarm(freshMs, resolve);
    });
    try {
      await Promise.race([refreshing, over]);
    } finally {
      stop();
      // The next search reports a later failure.
      refreshing.catch(() => undefined);
    }
  }

  /** Announces a content that another program wrote, so that it is indexed. */
  async #indexAgain(path: string, stamp: string): Promise<void> {
    const { derived, follower } = this.#context;
    const { tree } = derived;
    const content = `${stamp}/${path}`;
    if (this.#reported.has(content)) return;
    const { verdict, indexed } = await judgeContent(this.#context, path, stamp, async () =>
      follower.engine?.find(path),
    );
    if (verdict === "explained" || indexed === undefined) return;
    if (this.#reported.size >= reportedMax) this.#reported.clear();
    this.#reported.add(content);
    const { number } = await this.#context.announce({ kind: "written", path });
    // The race for its number has shown changes that no listing of a share had shown yet.
    const isForeign = (await changeBetween(tree.changes, path, indexed.change, number - 1)) === undefined;
    if (verdict === "foreign" && isForeign)
      tree.ground.ports.host.warn(
        `${tree.pathOf(path)} differs from what the last change wrote there: another program changed it without a lock. It is indexed again.`,
      );
  }
}
