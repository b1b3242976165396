// The subpath "holdfast/otel": spans and metrics of OpenTelemetry for what Holdfast does.
import { metrics, trace, type MeterProvider, type TracerProvider } from "@opentelemetry/api";
import { checkOptions } from "../format/known-options.ts";
import { packageVersion } from "../format/version.ts";
import { OperationMetrics } from "./operation-metrics.ts";
import { OperationSpans } from "./operation-spans.ts";
import { listenToOperations, listenToSignals } from "./listen.ts";

/** Options of `startTelemetry`. */
export interface TelemetryOptions {
  /** Default: the global provider of `@opentelemetry/api`. */
  tracerProvider?: TracerProvider | undefined;
  /** Default: the global provider of `@opentelemetry/api`. */
  meterProvider?: MeterProvider | undefined;
  /**
   * True to make the span of a handler a child of the publish or append that caused it, so that one trace has both.
   * Default false: a trace of its own with a link, as the conventions recommend.
   */
  continueTraces?: boolean | undefined;
}

/** Running telemetry. */
export interface Telemetry extends Disposable {
  /** Stops listening. Spans in progress still end. */
  stop(): void;
}

/**
 * Starts spans and metrics for the operations of every store in this process, and metrics for its signals. The trace
 * is stored with events and tickets, so that their delivery in another process is linked to it.
 *
 * Register your SDK first. Needs `@opentelemetry/api`.
 *
 * @example
 * ```ts
 * new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] }).register();
 * startTelemetry();
 * ```
 */
export function startTelemetry(options: TelemetryOptions = {}): Telemetry {
  checkOptions("startTelemetry", options, { tracerProvider: true, meterProvider: true, continueTraces: true });
  const { continueTraces = false } = options;
  const tracer = (options.tracerProvider ?? trace.getTracerProvider()).getTracer("holdfast", packageVersion);
  const meter = (options.meterProvider ?? metrics.getMeterProvider()).getMeter("holdfast", packageVersion);
  const measured = new OperationMetrics(meter);
  const stops = [
    listenToOperations(new OperationSpans(tracer, measured, { continueTraces })),
    listenToSignals((name, message) => measured.addSignal(name, message)),
  ];
  const stop = (): void => {
    for (const each of stops.splice(0)) each();
  };
  return { stop, [Symbol.dispose]: stop };
}
