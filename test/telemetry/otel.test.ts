// OpenTelemetry with its real SDK: spans, links and metrics without unbounded attributes.
import { metrics, SpanKind, SpanStatusCode } from "@opentelemetry/api";
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics"; // prettier-ignore
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { memoryEvents } from "../../src/events/index.ts";
import { openHandoff } from "../../src/handoff/index.ts";
import { openPathLocks } from "../../src/locks/index.ts";
import { openObjects } from "../../src/objects/index.ts";
import { startTelemetry, type Telemetry } from "../../src/otel/index.ts";
import { startS3Gateway } from "../../src/s3/index.ts";

const exporter = new InMemorySpanExporter();
const measured = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter: measured, exportIntervalMillis: 2 ** 30 });
let telemetry: Telemetry;

beforeAll(() => {
  new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
  telemetry = startTelemetry();
});
beforeEach(() => exporter.reset());
afterAll(() => telemetry.stop());

test("a take is linked to its publish; with continueTraces a handler is in the trace of its publish", async () => {
  await using box = await openHandoff("memory:");
  await box.publish({ a: "1" });
  await (await box.take())?.ack();
  const named = (method: string) =>
    exporter.getFinishedSpans().find(({ attributes }) => attributes["messaging.operation.name"] === method);
  const published = named("publish")?.spanContext();
  expect(published).toBeDefined();
  expect(named("take")?.links).toMatchObject([{ context: { spanId: published?.spanId } }]);
  telemetry.stop();
  using _other = startTelemetry({ continueTraces: true });
  exporter.reset();
  // `meta` that is not an object cannot carry anything.
  for (const meta of [{ user: "ada" }, "text"]) await box.publish({ a: "1" }, { meta });
  const metas: unknown[] = [];
  await box.consume(async ({ meta }) => void metas.push(meta), { idleMs: 0 }).done;
  telemetry = startTelemetry();
  const first = named("publish")?.spanContext();
  expect(named("handle")).toMatchObject({ parentSpanContext: { spanId: first?.spanId } });
  expect(named("handle")?.spanContext().traceId).toBe(first?.traceId);
  expect(metas).toEqual([{ user: "ada", trace: { traceparent: `00-${first?.traceId}-${first?.spanId}-01` } }, "text"]);
});

test("a failed operation is an error by its code, an iteration is one span, a subscription is none", async () => {
  await using events = memoryEvents();
  await events.append({ type: "A", data: 1 });
  await events.append({ type: "A", data: 1 }, { condition: { failIfEventsMatch: "all" } }).catch(() => undefined);
  for await (const _event of events.read());
  for await (const _event of events.subscribe()) break;
  const spans = exporter.getFinishedSpans();
  const failed = spans.find(({ status }) => status.code === SpanStatusCode.ERROR);
  expect(failed).toMatchObject({ attributes: { "error.type": "APPEND_CONDITION_FAILED" } });
  expect(failed?.events.map(({ name }) => name)).toEqual(["exception"]);
  const names = spans.map(({ attributes }) => attributes["db.operation.name"]);
  expect(names).not.toContain("events.subscribe");
  const reads = spans.filter(({ attributes }) => attributes["db.operation.name"] === "events.read");
  expect(reads.map(({ attributes }) => attributes["holdfast.count"])).toContain(1);
});

test("a request to the gateway continues the trace of its client, and its object operations lie in it", async () => {
  await using objects = await openObjects("memory:");
  await objects.createBucket("photos");
  await using gateway = await startS3Gateway(objects, {
    credentials: [{ accessKeyId: "a", secretAccessKey: "s" }],
    port: 0,
  });
  exporter.reset();
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const response = await fetch(`${gateway.url}/photos/key`, { headers: { traceparent } });
  expect(response.status).toBe(403);
  await response.arrayBuffer();
  const spans = exporter.getFinishedSpans();
  const request = spans.find(({ kind }) => kind === SpanKind.SERVER);
  expect(request?.parentSpanContext?.spanId).toBe("b7ad6b7169203331");
  expect(request?.attributes).toMatchObject({ "http.response.status_code": 403 });
  const inner = spans.filter(({ parentSpanContext }) => parentSpanContext?.spanId === request?.spanContext().spanId);
  expect(inner.map(({ attributes }) => attributes["db.operation.name"])).toContain("objects.findBucket");
});

test("metrics count what happened, with no key, path or id among their attributes", async () => {
  await using box = await openHandoff("memory:");
  await box.publish({ a: "1" }, { key: "a secret key" });
  await box.consume(async () => undefined, { idleMs: 0 }).done;
  await using locks = await openPathLocks("memory:");
  await using _hold = await locks.acquire("a/secret/path");
  await expect(locks.acquire("a/secret/path", { timeoutMs: 200 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
  await reader.forceFlush();
  const found =
    measured
      .getMetrics()
      .at(-1)
      ?.scopeMetrics.flatMap((scope) => scope.metrics) ?? [];
  expect(found.map(({ descriptor }) => descriptor.name)).toEqual(
    expect.arrayContaining([
      "messaging.client.operation.duration",
      "messaging.process.duration",
      "messaging.client.sent.messages",
      "messaging.client.consumed.messages",
      "db.client.operation.duration",
      "holdfast.operation.duration",
      "holdfast.lock.wait.duration",
      "holdfast.signals",
    ]),
  );
  expect(JSON.stringify(found)).not.toContain("secret");
});

test("after stop nothing is recorded, and nothing is carried", async () => {
  telemetry.stop();
  await using events = memoryEvents();
  await events.append({ type: "A", data: 1 });
  expect((await events.last())?.metadata).toEqual({});
  expect(exporter.getFinishedSpans()).toEqual([]);
  telemetry = startTelemetry();
});
