// The response headers that describe an object.
import type { Checksum, ContentHeaders, ObjectVersion } from "../../../objects/index.ts";
import { checksumHeader } from "../../body/checksum.ts";
import { S3Error } from "../../http/s3-error.ts";

export const contentHeaders: Readonly<Record<keyof ContentHeaders, string>> = {
  contentType: "content-type",
  contentEncoding: "content-encoding",
  contentDisposition: "content-disposition",
  contentLanguage: "content-language",
  cacheControl: "cache-control",
  expires: "expires",
};

export const defaultContentType = "binary/octet-stream";

export function unquoted(etag: string): string {
  return etag
    .trim()
    .replace(/^W\//, "")
    .replace(/^"(.*)"$/, "$1");
}

export function quoted(etag: string): string {
  return `"${etag}"`;
}

export function notImplemented(what: string): Error {
  return new S3Error("NotImplemented", { message: `${what} is not implemented.`, details: { Header: what } });
}

/** `checksum` is the checksum of the bytes that are sent. */
export function headersOf(version: ObjectVersion, checksum: Checksum | undefined): Record<string, string | undefined> {
  const { etag, lastModified, metadata, headers, retention, legalHold, tagCount } = version;
  const own: Record<string, string | undefined> = {
    etag: quoted(etag),
    "last-modified": lastModified.toUTCString(),
    "accept-ranges": "bytes",
    "content-type": defaultContentType,
    ...versionHeader(version),
  };
  for (const [option, value] of Object.entries(headers) as [keyof ContentHeaders, string][])
    own[contentHeaders[option]] = findHeaderValue(value) ?? own[contentHeaders[option]];
  if (tagCount !== undefined) own["x-amz-tagging-count"] = String(tagCount);
  Object.assign(own, metadataHeaders(metadata));
  if (retention !== undefined) {
    own["x-amz-object-lock-mode"] = retention.mode.toUpperCase();
    own["x-amz-object-lock-retain-until-date"] = retention.until.toISOString();
  }
  if (legalHold !== undefined) own["x-amz-object-lock-legal-hold"] = legalHold ? "ON" : "OFF";
  return checksum === undefined ? own : { ...own, ...checksumHeaders(checksum) };
}

/** A program that uses the store directly may have stored metadata with any names and values. */
function metadataHeaders(metadata: Readonly<Record<string, string>>): Record<string, string> {
  const headers: Record<string, string> = {};
  let missing = 0;
  for (const [name, text] of Object.entries(metadata)) {
    const value = findHeaderValue(text);
    if (isHeaderName(name) && value !== undefined) headers[`x-amz-meta-${name}`] = value;
    else missing++;
  }
  // The header with which S3 reports metadata that headers cannot carry.
  return missing === 0 ? headers : { ...headers, "x-amz-missing-meta": String(missing) };
}

export function isHeaderName(text: string): boolean {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(text);
}

/**
 * Encodes a text for a header: as Latin-1, because clients read headers so, or as UTF-8 if it has
 * other characters. Returns undefined for a text with control characters, which no header can
 * carry.
 */
export function findHeaderValue(text: string): string | undefined {
  // eslint-disable-next-line no-control-regex -- these are what is looked for
  if (/[\0-\x08\x0a-\x1f\x7f]/.test(text)) return undefined;
  return /^[\p{ASCII}\x80-\xff]*$/u.test(text) ? text : Buffer.from(text).toString("latin1");
}

/** A bucket that never had versioning shows no version ids. */
export function versionHeader({ versionId }: Pick<ObjectVersion, "versionId">): Record<string, string> {
  return versionId === "null" ? {} : { "x-amz-version-id": versionId };
}

export function checksumAsXml({ algorithm, value, type }: Checksum): Record<string, string> {
  return {
    [`Checksum${algorithm}`]: value,
    ChecksumType: type === "composite" ? "COMPOSITE" : "FULL_OBJECT",
  };
}

export function checksumHeaders({ algorithm, value, type }: Checksum): Record<string, string> {
  return {
    [checksumHeader(algorithm)]: value,
    "x-amz-checksum-type": type === "composite" ? "COMPOSITE" : "FULL_OBJECT",
  };
}
