// Who has signed a request. Decided before the body is read, and before anything is looked up: a
// request that is refused learns nothing about what exists.
import { S3Error } from "../http/s3-error.ts";
import { algorithm, checkDay, findAuthorization, type Authorization } from "./authorization.ts";
import { canonicalHash, findHeaderOf, type HeaderBytes, type SignedRequest } from "./canonical-request.ts";
import { isOldUrl, verifyOldUrl } from "./old-url.ts";
import { isSame, scopeText, sign, signingKey } from "./signing-key.ts";

/** How the body is protected, as x-amz-content-sha256 says. */
export type PayloadKind =
  | { readonly kind: "hash"; readonly sha256: string }
  | { readonly kind: "unsigned" }
  | { readonly kind: "chunks"; readonly isSigned: boolean; readonly hasTrailer: boolean };

export interface Verified {
  readonly accessKeyId: string;
  readonly payload: PayloadKind;
  /** What the signatures of chunks build on. */
  readonly seed?: ChunkSeed;
  /** What a URL says in the place of headers. */
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
  /** As version 2 of the signature signs it. Default: as it was sent. */
  readonly path?: string;
  findSecret(accessKeyId: string): string | undefined;
}

const skewMs = 15 * 60_000;

/** Undefined for a request that is not signed. S3Error for one that is not signed rightly. */
export function verifySignature(request: SignedRequest, verifier: Verifier): Verified | undefined {
  const authorization = findAuthorization(request);
  if (authorization === undefined) return isOldUrl(request) ? fromOldUrl(request, verifier) : undefined;
  const { accessKeyId, scope, signedHeaders, signature, date } = authorization;
  const isPresigned = authorization.expiresMs !== undefined;
  const secret = verifier.findSecret(accessKeyId);
  if (secret === undefined) throw new S3Error("InvalidAccessKeyId", { details: { AWSAccessKeyId: accessKeyId } });
  checkDay(authorization);
  checkTime(authorization, verifier.nowMs);
  if (scope.region !== verifier.region) throw wrongRegion(scope.region, verifier.region, isPresigned);
  // A URL is signed before its body is known: what the header says of the body comes later.
  const isLater = isPresigned && !signedHeaders.includes(payloadHeader);
  const hash = payloadHash(request, isLater);
  mustSignAmzHeaders(request, isLater ? [...signedHeaders, payloadHeader] : signedHeaders);
  const payload = isLater ? laterPayload(request, hash) : payloadKind(hash);
  const key = signingKey(secret, scope);
  const textOf = (headerBytes?: HeaderBytes): string =>
    [algorithm, date, scopeText(scope), canonicalHash(request, signedHeaders, hash, headerBytes)].join("\n");
  const text = textOf();
  // A client may sign the UTF-8 of a header, and send it in Latin-1.
  if (!isSame(sign(key, text), signature) && !isSame(sign(key, textOf("utf8")), signature))
    throw new S3Error("SignatureDoesNotMatch", {
      details: { AWSAccessKeyId: accessKeyId, StringToSign: text, SignatureProvided: signature },
    });
  return { accessKeyId, payload, seed: { signature, date, scope: scopeText(scope), key } };
}

function fromOldUrl(request: SignedRequest, verifier: Verifier): Verified {
  const { accessKeyId, headers } = verifyOldUrl(request, {
    nowMs: verifier.nowMs,
    path: verifier.path ?? request.target.path,
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

/** A header that a stranger could add on the way must not change what is done. */
function mustSignAmzHeaders({ headers }: SignedRequest, signedHeaders: readonly string[]): void {
  const unsigned = Object.keys(headers).filter((name) => name.startsWith("x-amz-") && !signedHeaders.includes(name));
  const missing = signedHeaders.filter((name) => findHeaderOf(headers, name) === undefined && name !== payloadHeader);
  if (unsigned.length === 0 && missing.length === 0) return;
  if (missing.length > 0) throw new S3Error("SignatureDoesNotMatch");
  const message = "There were headers present in the request which were not signed";
  throw new S3Error("AccessDenied", { message, details: { HeadersNotSigned: unsigned.join(", ") } });
}

const payloadHeader = "x-amz-content-sha256";

/** What the signature says of the body. */
function payloadHash({ headers, target }: SignedRequest, isLater: boolean): string {
  if (isLater) return new Map(target.query).get("X-Amz-Content-Sha256") ?? "UNSIGNED-PAYLOAD";
  const header = headers[payloadHeader];
  if (typeof header === "string") return header;
  const message = "Missing required header for this request: x-amz-content-sha256";
  throw new S3Error("InvalidRequest", { message });
}

/** A hash that no body has is a mismatch, whatever the body is. */
function laterPayload({ headers }: SignedRequest, hash: string): PayloadKind {
  const header = headers[payloadHeader];
  if (typeof header !== "string") return payloadKind(hash);
  try {
    return payloadKind(header);
  } catch (cause) {
    throw new S3Error("XAmzContentSHA256Mismatch", { details: { ClientComputedContentSHA256: header }, cause });
  }
}

/** InvalidArgument, NotImplemented. */
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
