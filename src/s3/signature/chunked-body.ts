// The body of `aws-chunked` requests: chunks with their sizes, optionally signed, followed by
// trailers. Bytes are passed on as they arrive. A wrong signature ends the stream with an error, so
// the store does not store the object.
import { createHash, type Hash } from "node:crypto";
import { S3Error } from "../http/s3-error.ts";
import { sha256 } from "./canonical-request.ts";
import { isSame, sign } from "./signing-key.ts";
import type { ChunkSeed, PayloadKind } from "./verify.ts";

export interface ChunkedOptions {
  readonly payload: Extract<PayloadKind, { kind: "chunks" }>;
  /** The value of x-amz-decoded-content-length. */
  readonly decodedLength: number;
  /** Undefined for an unsigned request. */
  readonly seed?: ChunkSeed | undefined;
  /** Names that x-amz-trailer declares, in lower case. */
  readonly declared: readonly string[];
  /** Called once with the trailers, before the stream ends. If it throws, the stream fails. */
  readonly onTrailers?: ((trailers: ReadonlyMap<string, string>) => void) | undefined;
}

const lineBytesMax = 1024;
const trailerLinesMax = 16;
/** The minimum size of a chunk except the last: a smaller one costs more to check than it carries. */
const signedChunkBytesMin = 8192;
const emptyHash = sha256("");

export async function* decodeChunks(
  source: AsyncIterable<Uint8Array>,
  options: ChunkedOptions,
): AsyncGenerator<Uint8Array> {
  const { payload, decodedLength } = options;
  const input = new ByteReader(source);
  const signatures = payload.isSigned ? new ChunkSignatures(seedOf(options)) : undefined;
  let left = decodedLength;
  let wasSmall = false;
  for (;;) {
    const { size, signature } = parseHead(await input.line(), payload.isSigned);
    if (size === 0) {
      signatures?.checkChunk(emptyHash, signature);
      break;
    }
    if (wasSmall) throw new S3Error("InvalidChunkSizeError");
    if (size > left) throw incomplete();
    wasSmall = payload.isSigned && size < signedChunkBytesMin;
    const hash = signatures === undefined ? undefined : createHash("sha256");
    yield* passThrough(input, size, hash);
    signatures?.checkChunk(hash?.digest("hex") ?? "", signature);
    await input.lineEnd();
    left -= size;
  }
  if (left > 0) throw incomplete();
  const trailers = payload.hasTrailer ? await readTrailers(input, options, signatures) : await noTrailers(input);
  await input.end();
  options.onTrailers?.(trailers);
}

async function* passThrough(input: ByteReader, size: number, hash: Hash | undefined): AsyncGenerator<Uint8Array> {
  for (let left = size; left > 0;) {
    const piece = await input.some(left);
    left -= piece.length;
    hash?.update(piece);
    yield piece;
  }
}

function parseHead(line: string, isSigned: boolean): { readonly size: number; readonly signature: string } {
  const match = /^([0-9a-f]{1,12})(?:;chunk-signature=([0-9a-f]{64}))?$/i.exec(line);
  if (match === null || (isSigned && match[2] === undefined)) throw incomplete();
  return { size: Number.parseInt(match[1] ?? "", 16), signature: match[2] ?? "" };
}

async function noTrailers(input: ByteReader): Promise<ReadonlyMap<string, string>> {
  // Some clients omit the empty line after the last chunk.
  await input.lineEnd({ mayBeEnd: true });
  return new Map();
}

async function readTrailers(
  input: ByteReader,
  { declared }: ChunkedOptions,
  signatures: ChunkSignatures | undefined,
): Promise<ReadonlyMap<string, string>> {
  const trailers = new Map<string, string>();
  let signature: string | undefined;
  for (let count = 0; ; count++) {
    const line = await input.line({ mayBeEnd: true });
    if (line === "") break;
    const colon = line.indexOf(":");
    if (colon < 1 || count >= trailerLinesMax) throw new S3Error("MalformedTrailerError");
    const [name, value] = [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()];
    if (name === "x-amz-trailer-signature") signature = value;
    else if (!declared.includes(name) || trailers.has(name)) throw new S3Error("MalformedTrailerError");
    else trailers.set(name, value);
  }
  for (const name of declared) if (!trailers.has(name)) throw new S3Error("MalformedTrailerError");
  if (signatures !== undefined) signatures.checkTrailers(trailers, signature);
  return trailers;
}

/** Each signature covers the previous one, so no chunk can be omitted, repeated or moved. */
class ChunkSignatures {
  readonly #seed: ChunkSeed;
  #previous: string;

  constructor(seed: ChunkSeed) {
    this.#seed = seed;
    this.#previous = seed.signature;
  }

  checkChunk(hash: string, signature: string): void {
    const { date, scope, key } = this.#seed;
    const text = ["AWS4-HMAC-SHA256-PAYLOAD", date, scope, this.#previous, emptyHash, hash].join("\n");
    this.#advance(sign(key, text), signature);
  }

  checkTrailers(trailers: ReadonlyMap<string, string>, signature: string | undefined): void {
    const { date, scope, key } = this.#seed;
    const lines = [...trailers].map(([name, value]) => `${name}:${value}\n`).join("");
    const text = ["AWS4-HMAC-SHA256-TRAILER", date, scope, this.#previous, sha256(lines)].join("\n");
    if (signature === undefined) throw new S3Error("MalformedTrailerError");
    this.#advance(sign(key, text), signature);
  }

  #advance(right: string, given: string): void {
    if (!isSame(right, given)) throw new S3Error("SignatureDoesNotMatch");
    this.#previous = right;
  }
}

function seedOf({ seed }: ChunkedOptions): ChunkSeed {
  if (seed === undefined) throw new S3Error("AccessDenied");
  return seed;
}

function incomplete(): Error {
  return new S3Error("IncompleteBody");
}

/** Reads lines and chunks of a stream. Holds at most the last chunk and one line. */
class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();
  #isOver = false;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Returns a line without its line end; "" at the end of the stream, if that is allowed. */
  async line({ mayBeEnd = false } = {}): Promise<string> {
    const pieces: Uint8Array[] = [];
    for (let length = 0; length <= lineBytesMax;) {
      if (!(await this.#fill())) {
        if (mayBeEnd && length === 0) return "";
        throw incomplete();
      }
      const end = this.#rest.indexOf(10);
      const piece = end < 0 ? this.#rest : this.#rest.subarray(0, end);
      pieces.push(piece);
      length += piece.length;
      this.#rest = this.#rest.subarray(end < 0 ? piece.length : end + 1);
      if (end < 0) continue;
      const line = Buffer.concat(pieces).toString("latin1");
      if (!line.endsWith("\r") || line.length > lineBytesMax) throw incomplete();
      return line.slice(0, -1);
    }
    throw incomplete();
  }

  async lineEnd(options: { readonly mayBeEnd?: boolean } = {}): Promise<void> {
    if ((await this.line(options)) !== "") throw incomplete();
  }

  /** Returns at least one byte and at most `count`. */
  async some(count: number): Promise<Uint8Array> {
    if (!(await this.#fill())) throw incomplete();
    const piece = this.#rest.subarray(0, count);
    this.#rest = this.#rest.subarray(piece.length);
    return piece;
  }

  /** Throws if more data follows. */
  async end(): Promise<void> {
    if (await this.#fill()) throw incomplete();
  }

  async #fill(): Promise<boolean> {
    while (this.#rest.length === 0 && !this.#isOver) {
      const next = await this.#source.next();
      if (next.done === true) this.#isOver = true;
      else this.#rest = next.value;
    }
    return this.#rest.length > 0;
  }
}
