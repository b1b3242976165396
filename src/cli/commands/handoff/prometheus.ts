// The numbers of a box in the text format of Prometheus.
import { metricText, type Sample } from "../../../format/prometheus-text.ts";
import type { HandoffStats } from "../../../handoff/index.ts";

const states = ["incoming", "delayed", "processing", "archive", "error"] as const;

/** Times are in seconds, as Prometheus expects. */
export function prometheusText(box: string, stats: HandoffStats): string {
  const { oldestIncomingMs, holders, paused } = stats;
  const one = (value: number): Sample[] => [{ labels: { box }, value }];
  return [
    metricText(
      "gauge",
      "holdfast_handoff_tickets",
      "Tickets of the box by state.",
      states.map((state) => ({ labels: { box, state }, value: stats[state] })),
    ),
    metricText(
      "gauge",
      "holdfast_handoff_oldest_incoming_seconds",
      "How long the oldest ticket that can be claimed waits; 0 without one.",
      one((oldestIncomingMs ?? 0) / 1000),
    ),
    metricText("gauge", "holdfast_handoff_holders", "Processes that work on tickets of the box.", one(holders)),
    metricText("gauge", "holdfast_handoff_paused", "Whether the box is paused.", one(paused ? 1 : 0)),
  ].join("");
}
