// How an operation appears in OpenTelemetry: the name and kind of its span, and attributes by the semantic conventions
// for messaging and databases.
import { SpanKind, type Attributes } from "@opentelemetry/api";
import type { OperationMessage, OperationName } from "../telemetry/operation.ts";

/** A description of an operation. */
export interface Described {
  readonly name: string;
  readonly kind: SpanKind;
  /** Attributes of span and metrics: a few values each. */
  readonly attributes: Attributes;
  /** Attributes of the span alone. */
  readonly details: Attributes;
  readonly metric: "messaging.client.operation.duration" | "messaging.process.duration" | "db.client.operation.duration" | "holdfast.operation.duration"; // prettier-ignore
}

/** They last as long as a program listens, so a span would say nothing. */
const withoutSpan: ReadonlySet<OperationName> = new Set(["events.subscribe", "files.changes", "handoff.deliveries"]);

const messaging: Readonly<Partial<Record<OperationName, readonly [type: string, kind: SpanKind]>>> = {
  "handoff.publish": ["send", SpanKind.PRODUCER],
  "handoff.take": ["receive", SpanKind.CLIENT],
  "handoff.takeParked": ["receive", SpanKind.CLIENT],
  "handoff.resumeParked": ["receive", SpanKind.CLIENT],
  "handoff.handle": ["process", SpanKind.CONSUMER],
  "events.handle": ["process", SpanKind.CONSUMER],
  "handoff.ack": ["settle", SpanKind.CLIENT],
  "handoff.retry": ["settle", SpanKind.CLIENT],
  "handoff.fail": ["settle", SpanKind.CLIENT],
  "handoff.postpone": ["settle", SpanKind.CLIENT],
};

/** Returns undefined for an operation that has no span and no metric. */
export function describe(message: OperationMessage): Described | undefined {
  const { operation } = message;
  if (withoutSpan.has(operation)) return undefined;
  const [part = "", method = ""] = operation.split(".");
  const details = detailsOf(message);
  const [type, kind = SpanKind.CLIENT] = messaging[operation] ?? [];
  if (type !== undefined) {
    const destination = nameOf(message.location);
    const attributes = {
      "messaging.system": "holdfast",
      "messaging.operation.type": type,
      "messaging.operation.name": method,
      "messaging.destination.name": destination,
      ...optional("messaging.consumer.group.name", message.consumer),
    };
    const metric = type === "process" ? "messaging.process.duration" : "messaging.client.operation.duration";
    const isBatch = part === "events";
    const ofMessage = {
      ...(isBatch ? optional("messaging.batch.message_count", message.count) : optional("messaging.message.id", message.id)), // prettier-ignore
    };
    return { name: `${method} ${destination}`, kind, attributes, details: { ...details, ...ofMessage }, metric };
  }
  if (operation === "s3.request") {
    const attributes = { "holdfast.operation": operation, ...optional("http.request.method", message.method) };
    return { name: "S3", kind: SpanKind.SERVER, attributes, details, metric: "holdfast.operation.duration" };
  }
  if (part === "events" || part === "objects" || part === "upload" || part === "files" || part === "handoff") {
    const collection = message.bucket ?? nameOf(message.location);
    const attributes = {
      "db.system.name": "holdfast",
      "db.operation.name": operation,
      "db.collection.name": collection,
    };
    return { name: `${operation} ${collection}`, kind, attributes, details, metric: "db.client.operation.duration" };
  }
  const attributes = { "holdfast.operation": operation };
  return { name: operation, kind: SpanKind.INTERNAL, attributes, details, metric: "holdfast.operation.duration" };
}

/** Returns what is known when an operation ends. */
export function outcomeOf({ error, status, s3Operation }: OperationMessage): Attributes {
  return {
    ...(error === undefined ? {} : { "error.type": typeOf(error) }),
    ...optional("http.response.status_code", status),
    ...optional("rpc.method", s3Operation),
  };
}

/** Returns the code of a HoldfastError, or the name of another error. */
function typeOf(error: unknown): string {
  if (typeof error !== "object" || error === null) return "_OTHER";
  const { code, name } = error as { readonly code?: unknown; readonly name?: unknown };
  return typeof code === "string" ? code : typeof name === "string" && name !== "" ? name : "_OTHER";
}

function detailsOf({ location, key, path, to, id, attempt, count }: OperationMessage): Attributes {
  return {
    "holdfast.location": location,
    ...optional("holdfast.key", key),
    ...optional("holdfast.path", path),
    ...optional("holdfast.to", to),
    ...optional("holdfast.id", id),
    ...optional("holdfast.attempt", attempt),
    ...optional("holdfast.count", count),
  };
}

function optional(name: string, value: string | number | undefined): Attributes {
  return value === undefined ? {} : { [name]: value };
}

/** Returns the last segment of a path or of a location in a database. */
function nameOf(location: string): string {
  return location.slice(Math.max(location.lastIndexOf("/"), location.lastIndexOf("#")) + 1);
}
