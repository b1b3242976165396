// Verifies who signed a request. This happens before the body is read and before anything is looked
// up: a refused request learns nothing about what exists.
import { S3Error } from "../http/s3-error.ts";
import { algorithm, checkDay, findAuthorization, type Authorization } from "./authorization.ts";
import { canonicalHash, findHeaderOf, type HeaderBytes, type SignedRequest } from "./canonical-request.ts";
import { isOldUrl, verifyOldUrl } from "./old-url.ts";
import { isSame, scopeText, sign, signingKey } from "./signing-key.ts";

/** How the body is protected, according to x-amz-content-sha256. */
export type PayloadKind =
  | { readonly kind: "hash"; readonly sha256: string }
  | { readonly kind: "unsigned" }
  | { readonly kind: "chunks"; readonly isSigned: boolean; readonly hasTrailer: boolean };

export interface VerifiedSignature {
  readonly accessKeyId: string;
  readonly payload: PayloadKind;
  /** When the request was signed; undefined for a version 2 URL, which contains only its expiry. */
  readonly signedAtMs?: number;
  /** The signature that begins the chain of chunk signatures. */
  readonly seed?: ChunkSeed;
  /** Headers that a presigned URL contains. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ChunkSeed {
  readonly signature: string;
  readonly date: string;
  readonly scope: string;
  readonly key: Buffer;
}

export interface Verifier {
  readonly region: string;
  readonly nowMs: number;
  /** The path as signature version 2 signs it. Default: as sent. */
  readonly path?: string;
  /**
   * Query parameters that select the operation. Version 2 must sign them; version 4 signs the whole
   * query.
   */
  readonly subResources?: ReadonlySet<string>;
  findSecret(accessKeyId: string): string | undefined;
}

const skewMs = 15 * 60_000;

/** Returns who signed the request; undefined if nobody did. Throws S3Error for a wrong signature. */
export function verifySignature(request: SignedRequest, verifier: Verifier): VerifiedSignature | undefined {
  const authorization = findAuthorization(request);
  if (authorization === undefined) return isOldUrl(request) ? fromOldUrl(request, verifier) : undefined;
  const { accessKeyId, scope, signedHeaders, signature, date, atMs: signedAtMs } = authorization;
  const isPresigned = authorization.expiresMs !== undefined;
  const secret = verifier.findSecret(accessKeyId);
  if (secret === undefined) throw new S3Error("InvalidAccessKeyId", { details: { AWSAccessKeyId: accessKeyId } });
  checkDay(authorization);
  checkTime(authorization, verifier.nowMs);
  if (scope.region !== verifier.region) throw wrongRegion(scope.region, verifier.region, isPresigned);
  // A URL is signed before its body is known, so the header about the body is not signed.
  const isLater = isPresigned && !signedHeaders.includes(payloadHeader);
  const hash = payloadHash(request, isLater);
  mustSignAmzHeaders(request, isLater ? [...signedHeaders, payloadHeader] : signedHeaders);
  const payload = isLater ? laterPayload(request, hash) : payloadKind(hash);
  const key = signingKey(secret, scope);
  const textOf = (headerBytes?: HeaderBytes): string =>
    [algorithm, date, scopeText(scope), canonicalHash(request, signedHeaders, hash, headerBytes)].join("\n");
  const text = textOf();
  // A client may sign the UTF-8 encoding of a header and send it in Latin-1.
  if (!isSame(sign(key, text), signature) && !isSame(sign(key, textOf("utf8")), signature))
    throw new S3Error("SignatureDoesNotMatch", {
      details: { AWSAccessKeyId: accessKeyId, StringToSign: text, SignatureProvided: signature },
    });
  const headers = isPresigned ? headersOfUrl(request) : {};
  return { accessKeyId, payload, headers, signedAtMs, seed: { signature, date, scope: scopeText(scope), key } };
}

/** Parameters of a presigned URL that do not stand for a header. */
const ownParameters =
  /^x-amz-(algorithm|credential|date|expires|signedheaders|signature|security-token|content-sha256)$/;

/**
 * SDKs move headers into the URL when they presign. Checksums in a URL are ignored, because SDKs
 * put that of an empty body there.
 */
function headersOfUrl({ target: { query } }: SignedRequest): Readonly<Record<string, string>> {
  return Object.fromEntries(
    query
      .map(([name, value]) => [name.toLowerCase(), value] as const)
      .filter(([name]) => name.startsWith("x-amz-") && !ownParameters.test(name) && !name.includes("checksum")),
  );
}

function fromOldUrl(request: SignedRequest, verifier: Verifier): VerifiedSignature {
  const { accessKeyId, headers } = verifyOldUrl(request, {
    nowMs: verifier.nowMs,
    path: verifier.path ?? request.target.path,
    subResources: verifier.subResources ?? new Set(),
    findSecret: (id) => verifier.findSecret(id),
  });
  return { accessKeyId, headers, payload: laterPayload(request, "UNSIGNED-PAYLOAD") };
}

function checkTime({ atMs, date, expiresMs }: Authorization, nowMs: number): void {
  const serverTime = (): string => new Date(nowMs).toISOString();
  if (expiresMs === undefined) {
    if (Math.abs(nowMs - atMs) <= skewMs) return;
    const details = { RequestTime: date, ServerTime: serverTime(), MaxAllowedSkewMilliseconds: String(skewMs) };
    throw new S3Error("RequestTimeTooSkewed", { details });
  }
  if (atMs - nowMs > skewMs) throw new S3Error("AccessDenied", { message: "Request is not valid yet" });
  if (nowMs - atMs <= expiresMs) return;
  const details = { Expires: new Date(atMs + expiresMs).toISOString(), ServerTime: serverTime() };
  throw new S3Error("AccessDenied", { message: "Request has expired", details });
}

function wrongRegion(given: string, region: string, isPresigned: boolean): Error {
  const code = isPresigned ? "AuthorizationQueryParametersError" : "AuthorizationHeaderMalformed";
  const what = isPresigned ? "Error parsing the X-Amz-Credential parameter" : "The authorization header is malformed";
  const message = `${what}; the region '${given}' is wrong; expecting '${region}'`;
  return new S3Error(code, { message, details: { Region: region } });
}

/**
 * All `x-amz-` headers must be signed: otherwise a third party could add one in transit that
 * changes the operation.
 */
function mustSignAmzHeaders({ headers }: SignedRequest, signedHeaders: readonly string[]): void {
  const unsigned = Object.keys(headers).filter((name) => name.startsWith("x-amz-") && !signedHeaders.includes(name));
  const missing = signedHeaders.filter((name) => findHeaderOf(headers, name) === undefined && name !== payloadHeader);
  if (unsigned.length === 0 && missing.length === 0) return;
  if (missing.length > 0) throw new S3Error("SignatureDoesNotMatch");
  const message = "There were headers present in the request which were not signed";
  throw new S3Error("AccessDenied", { message, details: { HeadersNotSigned: unsigned.join(", ") } });
}

const payloadHeader = "x-amz-content-sha256";

/** Returns the payload hash that is part of the signature. */
function payloadHash({ headers, target }: SignedRequest, isLater: boolean): string {
  if (isLater) return target.query.find(([name]) => name.toLowerCase() === payloadHeader)?.[1] ?? "UNSIGNED-PAYLOAD";
  const header = headers[payloadHeader];
  if (typeof header === "string") return header;
  const message = "Missing required header for this request: x-amz-content-sha256";
  throw new S3Error("InvalidRequest", { message });
}

/** An invalid hash, or one that differs from that in the URL, can match no body. */
function laterPayload({ headers }: SignedRequest, hash: string): PayloadKind {
  const header = headers[payloadHeader];
  if (typeof header !== "string") return payloadKind(hash);
  const mismatch = (cause?: unknown): Error =>
    new S3Error("XAmzContentSHA256Mismatch", { details: { ClientComputedContentSHA256: header }, cause });
  if (hash !== "UNSIGNED-PAYLOAD" && header.toLowerCase() !== hash.toLowerCase()) throw mismatch();
  try {
    return payloadKind(header);
  } catch (cause) {
    throw mismatch(cause);
  }
}

/** Throws InvalidArgument or NotImplemented. */
export function payloadKind(value: string): PayloadKind {
  switch (value) {
    case "UNSIGNED-PAYLOAD":
      return { kind: "unsigned" };
    case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD":
      return { kind: "chunks", isSigned: true, hasTrailer: false };
    case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER":
      return { kind: "chunks", isSigned: true, hasTrailer: true };
    case "STREAMING-UNSIGNED-PAYLOAD-TRAILER":
      return { kind: "chunks", isSigned: false, hasTrailer: true };
  }
  if (value.startsWith("STREAMING-AWS4-ECDSA-P256"))
    throw new S3Error("NotImplemented", { message: `The payload ${value} is not implemented.` });
  if (/^[0-9a-f]{64}$/i.test(value)) return { kind: "hash", sha256: value.toLowerCase() };
  const message =
    "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER, STREAMING-AWS4-HMAC-SHA256-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER or a valid sha256 value.";
  throw new S3Error("InvalidArgument", {
    message,
    details: { ArgumentName: "x-amz-content-sha256", ArgumentValue: value },
  });
}
