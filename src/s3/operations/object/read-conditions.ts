// Under which conditions an object is answered, and which of its bytes.
import type { ObjectVersion, ReadOptions } from "../../../objects/index.ts";
import { findHeader, type S3Request } from "../../http/request.ts";
import { S3Error } from "../../http/s3-error.ts";
import { getPartNumber } from "../operation.ts";
import { quoted, unquoted } from "./object-headers.ts";

/** Undefined for all of it. InvalidPartNumber. */
export function partRange(request: S3Request, { partSizes, size }: ObjectVersion): ReadOptions["range"] {
  const number = getPartNumber(request);
  if (findHeader(request, "range") !== undefined)
    throw new S3Error("InvalidRequest", { message: "Cannot specify both Range header and partNumber query parameter" });
  const sizes = partSizes ?? [size];
  const length = sizes[number - 1];
  if (length === undefined)
    throw new S3Error("InvalidPartNumber", {
      details: { ActualPartCount: String(sizes.length), PartNumberRequested: String(number) },
    });
  const start = sizes.slice(0, number - 1).reduce((sum, each) => sum + each, 0);
  return length === 0 ? undefined : { start, end: start + length - 1 };
}

/** NotModified, PreconditionFailed: in the order of RFC 9110. */
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
    // A time that has not come says nothing.
    const sinceMs = dateOf(get("if-modified-since"));
    if (sinceMs !== undefined && sinceMs <= Date.now() && stampMs <= sinceMs)
      throw new S3Error("NotModified", { headers });
  }
}

function isListed(list: string, etag: string): boolean {
  return list.split(",").some((item) => item.trim() === "*" || unquoted(item) === etag);
}

function dateOf(text: string | undefined): number | undefined {
  const atMs = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(atMs) ? undefined : atMs;
}

/** One range; anything else that is not understood is as if it were not there. */
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

export function resolveRange(
  { start, end }: NonNullable<ReadOptions["range"]>,
  size: number,
): { start: number; end: number } {
  const first = start < 0 ? Math.max(0, size + start) : start;
  if (first >= size)
    throw new S3Error("InvalidRange", {
      details: { ActualObjectSize: String(size) },
      headers: { "content-range": `bytes */${size}` },
    });
  return { start: first, end: Math.min(end ?? size - 1, size - 1) };
}
