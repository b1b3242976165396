// The body of a request as the store receives it: decoded, and checked against everything that the
// request declared. The store hashes it once, and calls `check` with the digests before it stores
// anything.
import { createHash } from "node:crypto";
import { startChecksum, type BodyDigests } from "../../objects/index.ts";
import { S3Error } from "../http/s3-error.ts";
import { findHeader, type S3Request } from "../http/request.ts";
import { decodeChunks } from "../signature/chunked-body.ts";
import { payloadKind, type PayloadKind } from "../signature/verify.ts";
import { checksumHeader, findExpectedChecksum, type ExpectedChecksum } from "./checksum.ts";

export interface IncomingBody {
  readonly stream: AsyncIterable<Uint8Array>;
  /** Size in bytes; undefined if the client does not declare it. */
  readonly size: number | undefined;
  readonly checksum: ExpectedChecksum | undefined;
  /**
   * Compares the digests that the store computed with the declared ones. Throws
   * XAmzContentSHA256Mismatch or BadDigest.
   */
  readonly check: (found: BodyDigests) => void;
}

const objectBytesMax = 5 * 1024 ** 4;
const putBytesMax = 5 * 1024 ** 3;

/** Throws MissingContentLength, EntityTooLarge or InvalidDigest before a byte is read. */
export function openBody(request: S3Request): IncomingBody {
  const size = declaredSize(request);
  if (size === undefined) throw new S3Error("MissingContentLength");
  if (size > putBytesMax)
    throw new S3Error("EntityTooLarge", {
      details: { ProposedSize: String(size), MaxSizeAllowed: String(putBytesMax) },
    });
  const expected = { checksum: findExpectedChecksum(request), md5: findMd5(request) };
  return { ...receive(request, size, expected), size, checksum: expected.checksum };
}

/**
 * Reads a small body into memory. Throws MaxMessageLengthExceeded. `isOfBody` is false if the
 * checksum header is not of this body.
 */
export async function readSmallBody(
  request: S3Request,
  bytesMax: number,
  { isOfBody = true }: { readonly isOfBody?: boolean } = {},
): Promise<Buffer> {
  const size = declaredSize(request);
  if (size !== undefined && size > bytesMax) throw new S3Error("MaxMessageLengthExceeded");
  const checksum = isOfBody ? findExpectedChecksum(request) : undefined;
  const { stream, check } = receive(request, size, { checksum, md5: findMd5(request) });
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of stream) {
    length += piece.length;
    if (length > bytesMax) throw new S3Error("MaxMessageLengthExceeded");
    pieces.push(piece);
  }
  const body = Buffer.concat(pieces);
  check(digestsOf(body, checksum));
  return body;
}

function digestsOf(body: Buffer, expected: ExpectedChecksum | undefined): BodyDigests {
  const hashOf = (name: string): string => createHash(name).update(body).digest("hex");
  const digests = { size: body.length, md5: hashOf("md5"), sha256: hashOf("sha256") };
  if (expected === undefined) return digests;
  const running = startChecksum(expected.algorithm);
  running.update(body);
  return { ...digests, checksum: { algorithm: expected.algorithm, value: running.value(), type: "full" } };
}

/** The body of an unsigned request may be aws-chunked too: the framing is not part of the object. */
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

/** Accepts the canonical Base64 of 16 bytes. Throws InvalidDigest. */
export function findMd5(request: S3Request): string | undefined {
  const text = findHeader(request, "content-md5");
  if (text === undefined) return undefined;
  if (!/^[A-Za-z0-9+/]{22}==$/.test(text)) throw new S3Error("InvalidDigest", { details: { "Content-MD5": text } });
  return Buffer.from(text, "base64").toString("base64");
}

interface Expected {
  readonly checksum: ExpectedChecksum | undefined;
  readonly md5: string | undefined;
}

function receive(
  request: S3Request,
  size: number | undefined,
  { checksum, md5 }: Expected,
): Pick<IncomingBody, "stream" | "check"> {
  const payload = payloadOf(request);
  let trailers: ReadonlyMap<string, string> = new Map();
  const check = (found: BodyDigests): void => {
    if (payload.kind === "hash" && found.sha256 !== payload.sha256)
      throw new S3Error("XAmzContentSHA256Mismatch", { details: { ClientComputedContentSHA256: payload.sha256 } });
    if (md5 !== undefined && Buffer.from(found.md5, "hex").toString("base64") !== md5) throw new S3Error("BadDigest");
    if (checksum !== undefined) compareChecksum(checksum, found, trailers);
  };
  return { stream: counted(request, payload, size, (found) => (trailers = found)), check };
}

/** Throws IncompleteBody. */
async function* counted(
  request: S3Request,
  payload: PayloadKind,
  size: number | undefined,
  onTrailers: (trailers: ReadonlyMap<string, string>) => void,
): AsyncGenerator<Uint8Array> {
  request.continue();
  let length = 0;
  for await (const piece of decoded(request, payload, size, onTrailers)) {
    length += piece.length;
    yield piece;
  }
  if (size !== undefined && length !== size) throw new S3Error("IncompleteBody");
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
  found: BodyDigests,
  trailers: ReadonlyMap<string, string>,
): void {
  const expected = isInTrailer ? trailers.get(checksumHeader(algorithm)) : value;
  if (expected === undefined || expected === found.checksum?.value) return;
  const message = `The ${algorithm} you specified did not match the calculated checksum.`;
  throw new S3Error("BadDigest", { message });
}
