// A process of its own with the SDK of OpenTelemetry: `publish`, `take` or `consume` on the store in argv, then its
// spans as JSON.
import { context, trace } from "@opentelemetry/api";
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { openStore } from "holdfast";
import { startTelemetry } from "holdfast/otel";

const [what, directory] = process.argv.slice(2);
const exporter = new InMemorySpanExporter();
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
startTelemetry({ continueTraces: what === "continue" });

const tracer = trace.getTracer("test");
const store = await openStore(directory);
const box = await store.handoff("orders");
const events = await store.events("main");

/** Runs work in a span of the program, as a web framework does. */
async function inSpan(name, work) {
  const span = tracer.startSpan(name);
  try {
    return await context.with(trace.setSpan(context.active(), span), work);
  } finally {
    span.end();
  }
}

if (what === "publish")
  await inSpan("checkout", async () => {
    await box.publish({ a: "1" }, { key: "order-1" });
    await events.append([
      { type: "Sold", data: 1 },
      { type: "Sold", data: 2 },
    ]);
  });
else if (what === "take") await (await box.take()).ack();
else {
  await inSpan("startup", async () => {
    const consumer = events.consume("mail", "all", () => inSpan("mailing", async () => undefined), { batch: 2 });
    await consumer.waitUntilProcessed(2);
    await consumer.stop();
    await box.consume(() => inSpan("packing", async () => await events.head()), { idleMs: 0 }).done;
  });
}
await store.close();

const spans = exporter.getFinishedSpans().map((span) => ({
  name: span.name,
  kind: span.kind,
  attributes: span.attributes,
  id: span.spanContext().spanId,
  trace: span.spanContext().traceId,
  parent: span.parentSpanContext?.spanId,
  links: span.links.map((link) => link.context.spanId),
}));
console.log(JSON.stringify(spans));
