// A body on its way into a version: hashed and compared with what was declared; kept in memory when
// it is small, and written to a file of its own when it is not.
import { createHash } from "node:crypto";
import type { Body } from "../../common.ts";
import { parentOf, removeTree, unlinkIfThere } from "../../durable/publish/directory.ts";
import { holdfastError } from "../../errors.ts";
import { orAborted, writeBody } from "../../part/body.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type { BodyPart, Checksum, PartRun } from "../model/entry.ts";
import type { PutOptions } from "../model/object-store.ts";
import type { BodyFiles } from "./body-parts.ts";
import { BodyDigests } from "./digests.ts";

const pieceBytes = 256 * 1024;

/** A body that is durable, or small enough to go with its record. */
export interface StagedBody {
  readonly size: number;
  readonly etag: string;
  readonly checksum?: Checksum;
  /** Of a small body. */
  readonly inline?: Uint8Array;
  readonly sha256?: string;
  /** Of a large one. */
  readonly parts?: readonly BodyPart[];
  /** Of one that was uploaded in many parts: the end of the upload, which names them. */
  readonly partsIn?: string;
  /** Of an upload in parts. */
  readonly partRuns?: readonly PartRun[];
  /** Where the record that names the parts must be staged. */
  readonly temp?: string;
}

export type Declared = Pick<PutOptions, "size" | "md5" | "checksum" | "signal">;

/**
 * BAD_DIGEST when it is not what was declared, DISK_FULL, LOCK_LOST, or what the source fails with. Then
 * nothing is left. `open` is asked for the bucket only when the body needs a file.
 */
export async function stageBody(
  open: () => Promise<OpenBucket>,
  key: string,
  body: Body,
  declared: Declared,
  inlineMax: number,
): Promise<StagedBody> {
  declared.signal?.throwIfAborted();
  const digests = new BodyDigests(declared.checksum?.algorithm);
  const pieces = digested(body, digests)[Symbol.asyncIterator]();
  const { head, isEnd } = await readHead(pieces, inlineMax, declared.signal);
  if (isEnd) {
    const inline = Buffer.concat(head);
    const facts = factsOf(key, digests, declared);
    return { ...facts, inline, sha256: createHash("sha256").update(inline).digest("hex") };
  }
  const { bucket, file, temp } = await newBodyFile(open).catch((error: unknown) => {
    void pieces.return(undefined).catch(() => undefined);
    throw error;
  });
  const written = write({ bucket, key, declared, digests, file }, chained(head, pieces));
  const { sha256, ...facts } = await written.catch(async (error: unknown) => {
    throw hasErrno(error, "ENOENT") ? await whyGone(bucket, file, error) : error;
  });
  return { ...facts, temp, parts: [{ file, size: facts.size, sha256 }] };
}

/** Its directory is of this session: it goes only with its bucket, or when the session is taken for dead. */
async function whyGone(bucket: OpenBucket, file: string, cause: unknown): Promise<unknown> {
  await bucket.mustBeThere(cause);
  const path = bucket.bodyPath(file);
  const message = `${path} was not stored: its directory is gone, so this process was taken for dead meanwhile. Put it again.`;
  return holdfastError("LOCK_LOST", message, { path }, cause);
}

interface BodyFile {
  readonly bucket: OpenBucket;
  readonly file: string;
  readonly temp: string;
}

async function newBodyFile(open: () => Promise<OpenBucket>): Promise<BodyFile> {
  const bucket = await open();
  return { bucket, ...(await bucket.newBodyFile()) };
}

/** The same into a file, whatever the size. */
export async function stageFile(
  bucket: OpenBucket,
  key: string,
  body: Body,
  declared: Declared,
  file: string,
): Promise<WrittenBody> {
  const digests = new BodyDigests(declared.checksum?.algorithm);
  return await write({ bucket, key, declared, digests, file }, digested(body, digests));
}

type WrittenBody = Pick<StagedBody, "size" | "etag" | "checksum"> & { readonly sha256: string };

interface Writing {
  readonly bucket: OpenBucket;
  readonly key: string;
  readonly declared: Declared;
  readonly digests: BodyDigests;
  readonly file: string;
}

async function write(
  { bucket, key, declared, digests, file }: Writing,
  body: AsyncIterable<Uint8Array>,
): Promise<WrittenBody> {
  const { place } = bucket;
  const path = bucket.bodyPath(file);
  const { sha256 } = await writeBody(place.disk, path, body, { signal: declared.signal });
  try {
    const facts = factsOf(key, digests, declared);
    await place.sync(parentOf(path));
    return { ...facts, sha256 };
  } catch (error) {
    await unlinkIfThere(place.disk, path).catch(() => undefined);
    throw error;
  }
}

/** The files of a body that no version names. */
export async function discardBody(bucket: OpenBucket, { parts = [], partsIn }: BodyFiles): Promise<void> {
  const { disk } = bucket.place;
  const uploads = new Set<string>();
  if (partsIn !== undefined) uploads.add(parentOf(bucket.bodyPath(partsIn)));
  for (const { file } of parts) {
    // What cannot be removed now is found by a collection.
    await unlinkIfThere(disk, bucket.bodyPath(file)).catch(() => undefined);
    if (file.startsWith("uploads/")) uploads.add(parentOf(bucket.bodyPath(file)));
  }
  // The record first: a completer that comes late learns by its absence that it is too late.
  for (const upload of uploads) {
    await unlinkIfThere(disk, `${upload}/upload.json`).catch(() => undefined);
    await removeTree(disk, upload);
  }
}

async function* digested(body: Body, digests: BodyDigests): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunksOf(body)) {
    if (!(chunk instanceof Uint8Array)) throw new TypeError("A body must give bytes: Uint8Array or Buffer.");
    for (let start = 0; start < chunk.length; start += pieceBytes) {
      const piece = chunk.subarray(start, start + pieceBytes);
      digests.update(piece);
      yield piece;
    }
  }
}

async function* chunksOf(body: Body): AsyncGenerator<Uint8Array> {
  if (typeof body === "string") yield Buffer.from(body);
  else if (body instanceof Uint8Array) yield body;
  else if (typeof body === "object" && body !== null && Symbol.asyncIterator in body) yield* body;
  else throw new TypeError("A body is a text, bytes, or an async iterable of bytes.");
}

interface Head {
  readonly head: readonly Uint8Array[];
  readonly isEnd: boolean;
}

/** Until it is known whether the body is small. */
async function readHead(
  pieces: AsyncIterator<Uint8Array>,
  bytesMax: number,
  signal: AbortSignal | undefined,
): Promise<Head> {
  const head: Uint8Array[] = [];
  try {
    for (let size = 0; size <= bytesMax;) {
      const next = await orAborted(pieces.next(), signal);
      if (next.done === true) return { head, isEnd: true };
      // A copy: the source may use its buffer again.
      head.push(new Uint8Array(next.value));
      size += next.value.length;
    }
    return { head, isEnd: false };
  } catch (error) {
    // Not waited for: a source that hangs does not end either.
    void pieces.return?.().catch(() => undefined);
    throw error;
  }
}

async function* chained(head: readonly Uint8Array[], rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* head;
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

function factsOf(
  key: string,
  digests: BodyDigests,
  { size, md5, checksum }: Declared,
): Pick<StagedBody, "size" | "etag" | "checksum"> {
  const found = digests.end();
  const fail = (what: string): never => {
    throw holdfastError("BAD_DIGEST", `The body for ${JSON.stringify(key)} was not stored: ${what}. Send it again.`, {
      key,
    });
  };
  if (size !== undefined && size !== digests.size) fail(`it has ${digests.size} bytes, and ${size} were declared`);
  if (md5 !== undefined && md5 !== found.md5 && md5 !== Buffer.from(found.md5, "hex").toString("base64"))
    fail("its MD5 is not the declared one");
  if (checksum === undefined || found.checksum === undefined) return { size: digests.size, etag: found.md5 };
  if ("value" in checksum && checksum.value !== found.checksum)
    fail(`its ${checksum.algorithm} is ${found.checksum}, and ${checksum.value} was declared`);
  return {
    size: digests.size,
    etag: found.md5,
    checksum: { algorithm: checksum.algorithm, value: found.checksum, type: "full" },
  };
}
