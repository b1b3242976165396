// The conditions of a read, and the range of bytes it asks for.
import type { Bucket, ObjectVersion, ReadOptions } from "../../../objects/index.ts";
import { findHeader, type S3Request } from "../../http/request.ts";
import { S3Error } from "../../http/s3-error.ts";
import { getPartNumber } from "../operation.ts";
import { quoted, unquoted } from "./object-headers.ts";

export interface Range {
  readonly start: number;
  readonly end: number;
}

/** The part that a request asks for by number. */
export interface UploadPart {
  /** The range of its bytes; undefined for an empty part. */
  readonly range: Range | undefined;
  /** How many parts the object has; undefined if it was not uploaded in parts. */
  readonly count: number | undefined;
  /** Checksum of the part alone. Undefined if it has none. */
  readonly checksum: string | undefined;
}

/** Undefined if the request asks for no part. Throws InvalidPartNumber. */
export async function findPart(
  request: S3Request,
  bucket: Bucket,
  { key, versionId, size }: ObjectVersion,
): Promise<UploadPart | undefined> {
  if (!request.query.has("partNumber")) return undefined;
  const number = getPartNumber(request);
  if (findHeader(request, "range") !== undefined)
    throw new S3Error("InvalidRequest", { message: "Cannot specify both Range header and partNumber query parameter" });
  const uploaded = await bucket.parts(key, { versionId });
  const count = uploaded.length === 0 ? undefined : uploaded.length;
  const parts: typeof uploaded = count === undefined ? [{ size }] : uploaded;
  const part = parts[number - 1];
  if (part === undefined)
    throw new S3Error("InvalidPartNumber", {
      details: { ActualPartCount: String(parts.length), PartNumberRequested: String(number) },
    });
  const start = parts.slice(0, number - 1).reduce((sum, each) => sum + each.size, 0);
  const range = part.size === 0 ? undefined : { start, end: start + part.size - 1 };
  return { range, count, checksum: part.checksum };
}

/** Throws NotModified or PreconditionFailed, in the order of RFC 9110. */
export function checkConditions(request: S3Request, { etag, lastModified }: ObjectVersion): void {
  const get = (name: string): string | undefined => findHeader(request, name);
  const [match, noneMatch] = [get("if-match"), get("if-none-match")];
  const stampMs = Math.floor(lastModified.getTime() / 1000) * 1000;
  const failed = (condition: string): Error => new S3Error("PreconditionFailed", { details: { Condition: condition } });
  if (match !== undefined) {
    if (!isListed(match, etag)) throw failed("If-Match");
  } else {
    const sinceMs = dateOf(get("if-unmodified-since"));
    if (sinceMs !== undefined && stampMs > sinceMs) throw failed("If-Unmodified-Since");
  }
  const headers = { etag: quoted(etag), "last-modified": lastModified.toUTCString() };
  if (noneMatch !== undefined) {
    if (isListed(noneMatch, etag)) throw new S3Error("NotModified", { headers });
  } else {
    // Like S3, ignores a time in the future.
    const sinceMs = dateOf(get("if-modified-since"));
    if (sinceMs !== undefined && sinceMs <= Date.now() && stampMs <= sinceMs)
      throw new S3Error("NotModified", { headers });
  }
}

/** True if a list of ETags, in the format of HTTP, contains this one. */
export function isListed(list: string, etag: string): boolean {
  return list.split(",").some((item) => item.trim() === "*" || unquoted(item) === etag);
}

function dateOf(text: string | undefined): number | undefined {
  const atMs = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(atMs) ? undefined : atMs;
}

/** Parses a single range. Any other Range header is ignored. */
export function rangeOf(request: S3Request): ReadOptions["range"] {
  const match = /^bytes=([0-9]*)-([0-9]*)$/.exec(findHeader(request, "range")?.trim() ?? "");
  if (match === null) return undefined;
  const [first = "", last = ""] = match.slice(1);
  const [start, end] = [first, last].map((digits) => Math.min(Number(digits), Number.MAX_SAFE_INTEGER)) as [
    number,
    number,
  ];
  if (first === "") return last === "" ? undefined : { start: end === 0 ? Number.MAX_SAFE_INTEGER : -end };
  if (last === "") return { start };
  return end < start ? undefined : { start, end };
}

export function resolveRange({ start, end }: NonNullable<ReadOptions["range"]>, size: number): Range {
  const first = start < 0 ? Math.max(0, size + start) : start;
  if (first >= size)
    throw new S3Error("InvalidRange", {
      details: { ActualObjectSize: String(size) },
      headers: { "content-range": `bytes */${size}` },
    });
  return { start: first, end: Math.min(end ?? size - 1, size - 1) };
}
