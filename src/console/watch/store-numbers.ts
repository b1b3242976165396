// StoreNumbers: the numbers of the store for Prometheus. Scraping often does not make them expensive.
import { storeMetrics } from "../../index.ts";
import { calm, calmest, Paced } from "./paced.ts";
import type { WatchedStore } from "./watched-store.ts";

export class StoreNumbers {
  readonly #state: Paced<string>;
  /** Lists all objects and files. */
  readonly #counts: Paced<string>;

  constructor(watched: WatchedStore) {
    this.#state = new Paced(async () => await storeMetrics(await watched.store(), { what: "state" }), calm);
    this.#counts = new Paced(async () => await storeMetrics(await watched.store(), { what: "counts" }), calmest);
  }

  async text(): Promise<string> {
    const [state, counts] = [await this.#state.get(), await this.#counts.get()];
    return `${state}${counts}`;
  }
}
