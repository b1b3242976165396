// The body of a request as the store gets it: decoded, and checked against everything that was said
// about it. What is wrong with it ends the stream with an error, so the store keeps nothing of it.
import { createHash } from "node:crypto";
import { startChecksum, type RunningChecksum } from "../../objects/index.ts";
import { S3Error } from "../http/s3-error.ts";
import { findHeader, type S3Request } from "../http/request.ts";
import { decodeChunks } from "../signature/chunked-body.ts";
import { payloadKind, type PayloadKind } from "../signature/verify.ts";
import { checksumHeader, findExpectedChecksum, type ExpectedChecksum } from "./checksum.ts";

export interface IncomingBody {
  readonly stream: AsyncIterable<Uint8Array>;
  /** Undefined when the client does not say it. */
  readonly size: number | undefined;
  readonly checksum: ExpectedChecksum | undefined;
}

const objectBytesMax = 5 * 1024 ** 4;
const putBytesMax = 5 * 1024 ** 3;

/** MissingContentLength, EntityTooLarge, InvalidDigest before a byte is read. */
export function openBody(request: S3Request): IncomingBody {
  const size = declaredSize(request);
  if (size === undefined) throw new S3Error("MissingContentLength");
  if (size > putBytesMax)
    throw new S3Error("EntityTooLarge", {
      details: { ProposedSize: String(size), MaxSizeAllowed: String(putBytesMax) },
    });
  const checksum = findExpectedChecksum(request);
  const md5 = findMd5(request);
  return { stream: checkedBody(request, size, checksum, md5), size, checksum };
}

/** A small body, whole. MaxMessageLengthExceeded. `isOfBody` is false where a checksum is of something else. */
export async function readSmallBody(
  request: S3Request,
  bytesMax: number,
  { isOfBody = true }: { readonly isOfBody?: boolean } = {},
): Promise<Buffer> {
  const size = declaredSize(request);
  if (size !== undefined && size > bytesMax) throw new S3Error("MaxMessageLengthExceeded");
  const checksum = isOfBody ? findExpectedChecksum(request) : undefined;
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of checkedBody(request, size, checksum, findMd5(request))) {
    length += piece.length;
    if (length > bytesMax) throw new S3Error("MaxMessageLengthExceeded");
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** Also of a request that is not signed: its framing is not a part of the object. */
function payloadOf(request: S3Request): PayloadKind {
  if (request.verified !== undefined) return request.verified.payload;
  const named = findHeader(request, "x-amz-content-sha256");
  return named === undefined ? { kind: "unsigned" } : payloadKind(named);
}

function declaredSize(request: S3Request): number | undefined {
  const isChunked = payloadOf(request).kind === "chunks";
  const text = findHeader(request, isChunked ? "x-amz-decoded-content-length" : "content-length");
  if (text === undefined) return undefined;
  if (!/^[0-9]{1,15}$/.test(text) || Number(text) > objectBytesMax) throw new S3Error("EntityTooLarge");
  return Number(text);
}

/** Base64 of 16 bytes, in its usual form. InvalidDigest. */
export function findMd5(request: S3Request): string | undefined {
  const text = findHeader(request, "content-md5");
  if (text === undefined) return undefined;
  if (!/^[A-Za-z0-9+/]{22}==$/.test(text)) throw new S3Error("InvalidDigest", { details: { "Content-MD5": text } });
  return Buffer.from(text, "base64").toString("base64");
}

async function* checkedBody(
  request: S3Request,
  size: number | undefined,
  checksum: ExpectedChecksum | undefined,
  md5: string | undefined,
): AsyncGenerator<Uint8Array> {
  request.continue();
  const running = checksum === undefined ? undefined : startChecksum(checksum.algorithm);
  const payload = payloadOf(request);
  const sha256 = payload.kind === "hash" ? createHash("sha256") : undefined;
  const md5Hash = md5 === undefined ? undefined : createHash("md5");
  let trailers: ReadonlyMap<string, string> = new Map();
  let length = 0;
  for await (const piece of decoded(request, payload, size, (found) => (trailers = found))) {
    length += piece.length;
    running?.update(piece);
    sha256?.update(piece);
    md5Hash?.update(piece);
    yield piece;
  }
  if (size !== undefined && length !== size) throw new S3Error("IncompleteBody");
  if (payload.kind === "hash" && sha256?.digest("hex") !== payload.sha256)
    throw new S3Error("XAmzContentSHA256Mismatch", { details: { ClientComputedContentSHA256: payload.sha256 } });
  if (md5Hash !== undefined && md5Hash.digest("base64") !== md5) throw new S3Error("BadDigest");
  if (checksum !== undefined && running !== undefined) compareChecksum(checksum, running, trailers);
}

function decoded(
  { incoming, verified, trailerNames }: S3Request,
  payload: PayloadKind,
  size: number | undefined,
  onTrailers: (trailers: ReadonlyMap<string, string>) => void,
): AsyncIterable<Uint8Array> {
  if (payload.kind !== "chunks") return incoming;
  if (size === undefined) throw new S3Error("MissingContentLength");
  return decodeChunks(incoming, {
    payload,
    seed: verified?.seed,
    decodedLength: size,
    declared: trailerNames,
    onTrailers,
  });
}

function compareChecksum(
  { algorithm, value, isInTrailer }: ExpectedChecksum,
  running: RunningChecksum,
  trailers: ReadonlyMap<string, string>,
): void {
  const expected = isInTrailer ? trailers.get(checksumHeader(algorithm)) : value;
  if (expected === undefined || expected === running.value()) return;
  const message = `The ${algorithm} you specified did not match the calculated checksum.`;
  throw new S3Error("BadDigest", { message });
}
