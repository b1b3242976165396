// A route: one page of data, by name. Routes only read; changes are actions.
import type { Download } from "../http/answer.ts";
import type { Query } from "../http/query.ts";
import type { Checks } from "../checks.ts";
import type { Sampler } from "../watch/sampler.ts";
import type { WatchedStore } from "../watch/watched-store.ts";

/** The sources that routes read. */
export interface Sources {
  readonly watched: WatchedStore;
  readonly sampler: Sampler;
  readonly checks: Checks;
}

/** Returns JSON. */
export type Route = (query: Query, sources: Sources) => Promise<unknown>;
/** Returns a file to save. */
export type DownloadRoute = (query: Query, sources: Sources) => Promise<Download>;
