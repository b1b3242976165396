// The spans of operations. The context of a span is active in the operation, in its continuations and in handlers, and
// it travels with events and tickets.
import { context, propagation, ROOT_CONTEXT, SpanStatusCode, trace } from "@opentelemetry/api";
import type { Context, Link, Span, Tracer } from "@opentelemetry/api";
import { isErrorLike, messageOf } from "../errors.ts";
import { nodeClock } from "../ports/node/clock.ts";
import { findCarrier } from "../telemetry/carrier.ts";
import type { OperationMessage } from "../telemetry/operation.ts";
import { describe, outcomeOf, type Described } from "./conventions.ts";
import type { OperationListener } from "./listen.ts";
import type { OperationMetrics } from "./operation-metrics.ts";

/** As many as SDKs keep. */
const linksMax = 128;

interface Running {
  readonly span: Span;
  readonly described: Described;
  readonly startMs: number;
}

export class OperationSpans implements OperationListener {
  readonly #tracer: Tracer;
  readonly #metrics: OperationMetrics;
  readonly #continueTraces: boolean;
  readonly #running = new WeakMap<OperationMessage, Running>();

  constructor(tracer: Tracer, metrics: OperationMetrics, { continueTraces }: { readonly continueTraces: boolean }) {
    this.#tracer = tracer;
    this.#metrics = metrics;
    this.#continueTraces = continueTraces;
  }

  begin(message: OperationMessage): void {
    const described = describe(message);
    if (described === undefined) return;
    const { name, kind, attributes, details } = described;
    const carried = (message.carried ?? []).slice(0, linksMax).map(contextOf);
    const parent = this.#parentOf(message, carried);
    const links = message.operation === "s3.request" ? [] : carried.flatMap(linkTo);
    const span = this.#tracer.startSpan(name, { kind, links, attributes: { ...attributes, ...details } }, parent);
    const inside = trace.setSpan(parent, span);
    if (message.carrier !== undefined) propagation.inject(inside, message.carrier);
    const { around = (work) => work() } = message;
    message.around = (work) => context.with(inside, () => around(work));
    this.#running.set(message, { span, described, startMs: nodeClock.monotonicMs() });
  }

  end(message: OperationMessage): void {
    const running = this.#running.get(message);
    if (running === undefined) return;
    this.#running.delete(message);
    const { span, described, startMs } = running;
    const { error, count, operation, result, s3Operation } = message;
    const outcome = outcomeOf(message);
    span.setAttributes(outcome);
    if (count !== undefined) span.setAttribute("holdfast.count", count);
    if (s3Operation !== undefined) span.updateName(`S3 ${s3Operation}`);
    // The ticket that a call of `take` returns is known only now.
    if (operation === "handoff.take" || operation === "handoff.takeParked" || operation === "handoff.resumeParked") {
      const { id, meta } = (result ?? {}) as { readonly id?: string; readonly meta?: unknown };
      if (id !== undefined) span.setAttribute("messaging.message.id", id);
      const carrier = findCarrier(meta);
      if (carrier !== undefined) span.addLinks(linkTo(contextOf(carrier)));
    }
    if (operation === "handoff.publish") {
      const { id } = (result ?? {}) as { readonly id?: string };
      if (id !== undefined) span.setAttribute("messaging.message.id", id);
    }
    if (error !== undefined) {
      if (isErrorLike(error)) span.recordException(error);
      span.setStatus({ code: SpanStatusCode.ERROR, message: messageOf(error) });
    }
    span.end();
    const isBatch = operation === "events.handle";
    this.#metrics.addOperation(
      described,
      (nodeClock.monotonicMs() - startMs) / 1000,
      outcome,
      isBatch ? (count ?? 1) : 1,
    );
  }

  /**
   * A delivery does not belong to whatever was active when its consumer was started. A request belongs to the span of
   * an instrumentation of HTTP if there is one, and otherwise to that of the client.
   */
  #parentOf({ operation }: OperationMessage, carried: readonly Context[]): Context {
    const active = context.active();
    const [first = ROOT_CONTEXT] = carried;
    if (operation === "s3.request") return trace.getSpan(active) === undefined && carried.length > 0 ? first : active;
    if (operation !== "handoff.handle" && operation !== "events.handle") return active;
    // Several messages have no common parent.
    return this.#continueTraces && carried.length === 1 ? first : ROOT_CONTEXT;
  }
}

function contextOf(carrier: Readonly<Record<string, string>>): Context {
  return propagation.extract(ROOT_CONTEXT, carrier);
}

function linkTo(from: Context): Link[] {
  const found = trace.getSpanContext(from);
  return found === undefined ? [] : [{ context: found }];
}
