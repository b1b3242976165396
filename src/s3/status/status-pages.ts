// The gateway's own pages for load balancers and monitoring: `/-/health` and `/-/metrics`. No
// bucket can be named `-`. The pages need no signature and reveal nothing about the stored data.
import type { ObjectStore } from "../../objects/index.ts";
import type { Answer } from "../http/answer.ts";
import type { S3AccessEntry } from "../http/access-entry.ts";
import type { Exchange } from "../http/exchange.ts";
import { S3Error } from "../http/s3-error.ts";
import { Health } from "./health.ts";
import { Metrics, type Gauges } from "./metrics.ts";

/** Stands in the path where other requests have a bucket. */
export const statusBucket = "-";

export class StatusPages {
  readonly #health: Health;
  readonly #metrics: Metrics | undefined;

  constructor(objects: Pick<ObjectStore, "findBucket">, { hasMetrics }: { readonly hasMetrics: boolean }) {
    this.#health = new Health(objects);
    this.#metrics = hasMetrics ? new Metrics() : undefined;
  }

  add(entry: S3AccessEntry): void {
    this.#metrics?.add(entry);
  }

  /** Undefined if there is no such page. Throws MethodNotAllowed. */
  async find(
    page: string,
    { incoming: { method = "" }, note }: Exchange,
    server: Gauges & { readonly isClosing: boolean },
  ): Promise<Answer | undefined> {
    if (page !== "health" && (page !== "metrics" || this.#metrics === undefined)) return undefined;
    note({ operation: page === "health" ? "Health" : "Metrics" });
    if (method !== "GET" && method !== "HEAD") throw new S3Error("MethodNotAllowed", { details: { Method: method } });
    return page === "health" ? await this.#health.answer(server.isClosing) : this.#metrics?.answer(server);
  }
}
