// Describes an answer that an actor received as short text, for the trace and for the hash of its knowledge.
import { messageOf } from "../../errors.ts";
import { hashOfBytes } from "./hash.ts";

export function describeValue(value: unknown): string {
  if (value === undefined) return "ok";
  if (value instanceof Uint8Array) return `${value.length} bytes ${hashOfBytes(value)}`;
  if (Array.isArray(value)) return JSON.stringify(value);
  if (typeof value === "object" && value !== null) return "identity" in value ? JSON.stringify(value) : "ok";
  return JSON.stringify(value);
}

export function describeError(error: unknown): string {
  return messageOf(error);
}
