// The metrics of operations and signals. Their attributes have few values: no keys, no paths, no ids.
import type { Attributes, Counter, Histogram, Meter } from "@opentelemetry/api";
import type { SignalMessages, SignalName } from "../telemetry/signals.ts";
import type { Described } from "./conventions.ts";

/** Boundaries in seconds, as the conventions give them. */
const boundaries = [0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

export class OperationMetrics {
  readonly #durations: Readonly<Record<Described["metric"], Histogram>>;
  readonly #sent: Counter;
  readonly #consumed: Counter;
  readonly #signals: Counter;
  readonly #waits: Histogram;

  constructor(meter: Meter) {
    const duration = (name: string, description: string): Histogram =>
      meter.createHistogram(name, { description, unit: "s", advice: { explicitBucketBoundaries: boundaries } });
    this.#durations = {
      "messaging.client.operation.duration": duration("messaging.client.operation.duration", "Duration of a publish, a take or a settlement."),
      "messaging.process.duration": duration("messaging.process.duration", "Duration of a handler."),
      "db.client.operation.duration": duration("db.client.operation.duration", "Duration of an operation on events, objects or files."),
      "holdfast.operation.duration": duration("holdfast.operation.duration", "Duration of any other operation."),
    }; // prettier-ignore
    this.#waits = duration("holdfast.lock.wait.duration", "How long callers waited for locks.");
    const counter = (name: string, description: string, unit: string): Counter =>
      meter.createCounter(name, { description, unit });
    this.#sent = counter("messaging.client.sent.messages", "Tickets that were published.", "{message}");
    this.#consumed = counter(
      "messaging.client.consumed.messages",
      "Tickets and events that handlers got.",
      "{message}",
    );
    this.#signals = counter(
      "holdfast.signals",
      "Signals: what was lost, taken over, retried or recovered.",
      "{signal}",
    );
  }

  addOperation({ metric, attributes }: Described, seconds: number, outcome: Attributes, count: number): void {
    const { "error.type": errorType } = outcome;
    const labels = errorType === undefined ? attributes : { ...attributes, "error.type": errorType };
    this.#durations[metric].record(seconds, labels);
    const { "messaging.operation.type": type } = attributes;
    if (type === "send") this.#sent.add(1, labels);
    else if (type === "process") this.#consumed.add(count, labels);
  }

  addSignal<Name extends SignalName>(name: Name, message: SignalMessages[Name]): void {
    this.#signals.add(1, { "holdfast.signal": name.slice("holdfast:".length) });
    if (name !== "holdfast:lock.waited") return;
    const { waitedMs, acquired } = message as SignalMessages["holdfast:lock.waited"];
    this.#waits.record(waitedMs / 1000, { "holdfast.lock.acquired": acquired });
  }
}
