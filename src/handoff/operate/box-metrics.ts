// The metrics of hand-off boxes, the same for a store and for a box alone.
import { metricText } from "../../format/prometheus-text.ts";
import type { HandoffStats } from "../model/handoff.ts";

const states = ["incoming", "delayed", "processing", "archive", "error"] as const;

/** Times are in seconds, as Prometheus expects. */
export function boxMetrics(boxes: readonly { readonly box: string; readonly stats: HandoffStats }[]): string {
  const gauge = (name: string, help: string, valueOf: (stats: HandoffStats) => number): string =>
    metricText(
      "gauge",
      name,
      help,
      boxes.map(({ box, stats }) => ({ labels: { box }, value: valueOf(stats) })),
    );
  return [
    metricText(
      "gauge",
      "holdfast_handoff_tickets",
      "Tickets of the box by state.",
      boxes.flatMap(({ box, stats }) => states.map((state) => ({ labels: { box, state }, value: stats[state] }))),
    ),
    gauge(
      "holdfast_handoff_oldest_incoming_seconds",
      "How long the oldest ticket that can be claimed waits; 0 without one.",
      ({ oldestIncomingMs }) => (oldestIncomingMs ?? 0) / 1000,
    ),
    gauge("holdfast_handoff_holders", "Processes that work on tickets of the box.", ({ holders }) => holders),
    gauge("holdfast_handoff_paused", "Whether the box is paused.", ({ paused }) => (paused ? 1 : 0)),
  ].join("");
}
