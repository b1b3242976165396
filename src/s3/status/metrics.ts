// Counts requests, errors, durations and bytes. Metrics contain no names of buckets, keys or key
// pairs, because others may read them than read the objects.
import { metricText, prometheusContentType, type Sample } from "../../format/prometheus-text.ts";
import type { Answer } from "../http/answer.ts";
import type { S3AccessEntry } from "../http/access-entry.ts";

/** Upper bounds of the histogram buckets, in seconds. */
const durationBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export interface Gauges {
  readonly connections: number;
  readonly requestsUnderWay: number;
}

interface Durations {
  /** One count per bound, and one for everything above. */
  readonly counts: number[];
  sumSeconds: number;
}

export class Metrics {
  /** By operation, status and code. */
  readonly #requests = new Map<string, Sample>();
  readonly #durations = new Map<string, Durations>();
  #bytesIn = 0;
  #bytesOut = 0;
  #cutOff = 0;

  add({ operation = "none", status, code = "", durationMs, bytesIn, bytesOut, isWhole }: S3AccessEntry): void {
    const labels = { operation, status: String(status), code };
    const name = Object.values(labels).join(" ");
    this.#requests.set(name, { labels, value: (this.#requests.get(name)?.value ?? 0) + 1 });
    this.#addDuration(operation, durationMs / 1000);
    this.#bytesIn += Number.isFinite(bytesIn) ? bytesIn : 0;
    this.#bytesOut += bytesOut;
    if (!isWhole) this.#cutOff++;
  }

  answer(gauges: Gauges): Answer {
    return { status: 200, headers: { "content-type": prometheusContentType }, body: this.text(gauges) };
  }

  text({ connections, requestsUnderWay }: Gauges): string {
    const one = (value: number): Sample[] => [{ labels: {}, value }];
    const { user, system } = process.cpuUsage();
    return [
      metricText("counter", "holdfast_s3_requests_total", "Completed requests; code is the error code.", [
        ...this.#requests.values(),
      ]),
      metricText(
        "histogram",
        "holdfast_s3_request_duration_seconds",
        "From the head of the request to the end of the response.",
        [...this.#durations].flatMap(([operation, durations]) => histogram(operation, durations)),
      ),
      metricText("counter", "holdfast_s3_received_bytes_total", "Bodies of requests, as declared.", one(this.#bytesIn)),
      metricText("counter", "holdfast_s3_sent_bytes_total", "Bodies of responses.", one(this.#bytesOut)),
      metricText(
        "counter",
        "holdfast_s3_cut_off_total",
        "Requests whose client did not get the whole response.",
        one(this.#cutOff),
      ),
      metricText("gauge", "holdfast_s3_requests_under_way", "Requests in progress.", one(requestsUnderWay)),
      metricText("gauge", "holdfast_s3_connections", "Open connections.", one(connections)),
      metricText("counter", "process_cpu_seconds_total", "User and system time.", one((user + system) / 1e6)),
      metricText("gauge", "process_resident_memory_bytes", "Resident memory.", one(process.memoryUsage.rss())),
    ].join("");
  }

  #addDuration(operation: string, seconds: number): void {
    let durations = this.#durations.get(operation);
    if (durations === undefined) {
      durations = { counts: Array.from({ length: durationBounds.length + 1 }, () => 0), sumSeconds: 0 };
      this.#durations.set(operation, durations);
    }
    const found = durationBounds.findIndex((bound) => seconds <= bound);
    const index = found < 0 ? durationBounds.length : found;
    durations.counts[index] = (durations.counts[index] ?? 0) + 1;
    durations.sumSeconds += seconds;
  }
}

/** The buckets of a histogram are cumulative. */
function histogram(operation: string, { counts, sumSeconds }: Durations): Sample[] {
  let total = 0;
  const buckets = counts.map((count, index) => {
    total += count;
    const le = index < durationBounds.length ? String(durationBounds[index]) : "+Inf";
    return { suffix: "_bucket", labels: { operation, le }, value: total };
  });
  return [
    ...buckets,
    { suffix: "_sum", labels: { operation }, value: sumSeconds },
    { suffix: "_count", labels: { operation }, value: total },
  ];
}
