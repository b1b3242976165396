// The canonical form of a request, from which its signature is computed.
import { hash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { encodeUri, type RawTarget } from "../http/raw-target.ts";

export interface SignedRequest {
  readonly method: string;
  readonly target: RawTarget;
  /** Names in lower case; repeated headers joined with ", ", as Node does. */
  readonly headers: IncomingHttpHeaders;
}

/**
 * How non-ASCII headers are hashed: as the bytes that arrived, or as the UTF-8 encoding of their
 * Latin-1 text.
 */
export type HeaderBytes = "latin1" | "utf8";

/** Returns the hash of the canonical request. `payload` is the value of x-amz-content-sha256. */
export function canonicalHash(
  request: SignedRequest,
  signedHeaders: readonly string[],
  payload: string,
  headerBytes: HeaderBytes = "latin1",
): string {
  const { method, target, headers } = request;
  const lines = signedHeaders.map((name) => `${name}:${canonicalValue(findHeaderOf(headers, name))}\n`);
  const text = [
    method,
    target.path.split("/").map(encodeUri).join("/"),
    canonicalQuery(target.query),
    lines.join(""),
    signedHeaders.join(";"),
    payload,
  ].join("\n");
  return sha256(Buffer.from(text, headerBytes));
}

/** Ignores inherited properties: the client chooses the name. */
export function findHeaderOf(headers: IncomingHttpHeaders, name: string): string | readonly string[] | undefined {
  return Object.hasOwn(headers, name) ? headers[name] : undefined;
}

/** A presigned URL does not sign its own signature. */
function canonicalQuery(query: RawTarget["query"]): string {
  return query
    .filter(([name]) => name !== "X-Amz-Signature")
    .map(([name, value]) => [encodeUri(name), encodeUri(value)] as const)
    .sort(([name, value], [otherName, otherValue]) => compare(name, otherName) || compare(value, otherValue))
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
}

/** Compares code units, which equal bytes here: encoded text is ASCII. */
function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function canonicalValue(value: string | readonly string[] | undefined): string {
  const text = typeof value === "string" ? value : (value ?? []).join(",");
  return text.trim().replace(/ +/g, " ");
}

export function sha256(data: string | Uint8Array): string {
  return hash("sha256", data);
}
