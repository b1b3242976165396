// Stages the body of a version: hashes it and compares it with the declared digests. A small body
// stays in memory; a larger one is written to its own file.
import type { Body } from "../../common.ts";
import { parentOf, removeTree, unlinkIfThere } from "../../durable/publish/directory.ts";
import { holdfastError } from "../../errors.ts";
import { chunksOf, orAborted, writeThrough } from "../../part/body.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import type { BodyFile, Checksum, UploadPartRun } from "../model/entry.ts";
import type { BodyOption, PutOptions } from "../model/object.ts";
import type { BodyFiles } from "./body-files.ts";
import { RunningDigests } from "./digests.ts";

/** A body that is durable, or small enough to be stored with its record. */
export interface StagedBody {
  readonly size: number;
  readonly etag: string;
  readonly checksum?: Checksum;
  /** Content of a small body. */
  readonly inline?: Uint8Array;
  readonly sha256?: string;
  /** Files of a large body. */
  readonly parts?: readonly BodyFile[];
  /** For a body uploaded in many parts: the end of the upload, which names them. */
  readonly partsIn?: string;
  /** Sizes of the parts of an upload. */
  readonly partRuns?: readonly UploadPartRun[];
  /** The session directory in which the record that names the parts must be staged. */
  readonly stageIn?: string;
}

export type DeclaredBody = Pick<PutOptions, BodyOption | "signal">;

/**
 * Stages a body. Throws BAD_DIGEST if the body is not the declared one, DISK_FULL, LOCK_LOST, or
 * the error of the source; then nothing is left behind. `open` is called only if the body needs a
 * file; `holding` is the bucket that has the file.
 */
export async function stageBody(
  open: () => Promise<OpenBucket>,
  key: string,
  body: Body,
  options: DeclaredBody & { readonly inlineMax: number },
): Promise<{ readonly staged: StagedBody; readonly holding?: OpenBucket }> {
  const read = await readSmall(key, body, options);
  if ("staged" in read) return read;
  const { bucket, file, temp } = await newBodyFile(open).catch((error: unknown) => {
    read.abandon();
    throw error;
  });
  const written = stageFile(bucket, key, read.chunks, { ...options, size: read.size }, file);
  const { sha256, ...facts } = await written.catch(async (error: unknown) => {
    throw hasErrno(error, "ENOENT") ? await whyGone(bucket, file, error) : error;
  });
  return { holding: bucket, staged: { ...facts, stageIn: temp, parts: [{ file, size: facts.size, sha256 }] } };
}

/** A body that is too large to be kept in memory: all of its chunks, and its size, if known. */
export interface LargeBody {
  readonly chunks: AsyncIterable<Uint8Array>;
  readonly size: number | undefined;
  /** Closes the source. Call it if the chunks are not read. */
  readonly abandon: () => void;
}

/** Stages a body of at most `inlineMax` bytes, and returns a larger one to be stored by the caller. Throws as `stageBody`. */
export async function readSmall(
  key: string,
  body: Body,
  { inlineMax, ...declared }: DeclaredBody & { readonly inlineMax: number },
): Promise<{ readonly staged: StagedBody } | LargeBody> {
  declared.signal?.throwIfAborted();
  const chunks = chunksOf(body)[Symbol.asyncIterator]();
  const size = declared.size ?? sizeOf(body);
  const isLarge = size !== undefined && size > inlineMax;
  const { head, isEnd } = await readHead(chunks, isLarge ? 0 : inlineMax, declared.signal);
  if (!isEnd) {
    const abandon = (): void => void chunks.return?.().catch(() => undefined);
    return { chunks: chained(head, chunks), size, abandon };
  }
  const inline = head.length === 1 && head[0] !== undefined ? head[0] : Buffer.concat(head);
  const digests = new RunningDigests(declared.checksum?.algorithm);
  digests.update(inline);
  return { staged: { ...(await checkedFactsOf(key, digests, declared)), inline } };
}

/**
 * Returns the reason why the directory of the body is gone. The directory belongs to this session:
 * it disappears only with its bucket, or if the session was judged dead.
 */
async function whyGone(bucket: OpenBucket, file: string, cause: unknown): Promise<unknown> {
  await bucket.mustBeThere(cause);
  const path = bucket.bodyPath(file);
  const message = `${path} was not stored: its directory is gone, so this process was judged dead meanwhile. Put it again.`;
  return holdfastError("LOCK_LOST", message, { path }, cause);
}

interface NewBodyFile {
  readonly bucket: OpenBucket;
  readonly file: string;
  readonly temp: string;
}

async function newBodyFile(open: () => Promise<OpenBucket>): Promise<NewBodyFile> {
  const bucket = await open();
  return { bucket, ...(await bucket.newBodyFile()) };
}

export type WrittenBody = Pick<StagedBody, "size" | "etag" | "checksum"> & { readonly sha256: string };

/** Writes the body to a file, whatever its size. */
export async function stageFile(
  bucket: OpenBucket,
  key: string,
  body: Body,
  declared: DeclaredBody,
  file: string,
): Promise<WrittenBody> {
  const { storage } = bucket;
  const path = bucket.bodyPath(file);
  const { size = sizeOf(body), checksum, signal } = declared;
  const digests = new RunningDigests(checksum?.algorithm, size, storage.ground.ports.hasher);
  try {
    await writeThrough(storage.disk, path, body, digests, { signal });
  } catch (error) {
    digests.close();
    throw error;
  }
  try {
    const facts = await checkedFactsOf(key, digests, declared);
    await storage.sync(parentOf(path));
    return facts;
  } catch (error) {
    await unlinkIfThere(storage.disk, path).catch(() => undefined);
    throw error;
  }
}

function sizeOf(body: Body): number | undefined {
  if (typeof body === "string") return Buffer.byteLength(body);
  return body instanceof Uint8Array ? body.length : undefined;
}

/** Removes the files of a body that no version names. */
export async function discardBody(bucket: OpenBucket, { parts = [], partsIn }: BodyFiles): Promise<void> {
  const { disk } = bucket.storage;
  const uploads = new Set<string>();
  if (partsIn !== undefined) uploads.add(parentOf(bucket.bodyPath(partsIn)));
  for (const { file } of parts) {
    // An error is ignored: the next collection removes the file.
    await unlinkIfThere(disk, bucket.bodyPath(file)).catch(() => undefined);
    if (file.startsWith("uploads/")) uploads.add(parentOf(bucket.bodyPath(file)));
  }
  // The record of an upload is removed first: a late completer that does not find it knows that it
  // is too late.
  for (const upload of uploads) {
    await unlinkIfThere(disk, `${upload}/upload.json`).catch(() => undefined);
    await removeTree(disk, upload);
  }
}

interface Head {
  readonly head: readonly Uint8Array[];
  readonly isEnd: boolean;
}

/** Reads until the body has more than `bytesMax` bytes, or has ended. */
async function readHead(
  chunks: AsyncIterator<Uint8Array>,
  bytesMax: number,
  signal: AbortSignal | undefined,
): Promise<Head> {
  const head: Uint8Array[] = [];
  try {
    for (let size = 0; size <= bytesMax;) {
      const next = await orAborted(chunks.next(), signal);
      if (next.done === true) return { head, isEnd: true };
      if (!(next.value instanceof Uint8Array)) throw new TypeError("A body must yield bytes: Uint8Array or Buffer.");
      size += next.value.length;
      // Copied if the source is asked for more: it may reuse its buffer.
      head.push(size <= bytesMax ? new Uint8Array(next.value) : next.value);
    }
    return { head, isEnd: false };
  } catch (error) {
    // Not awaited: a source that hangs does not return either.
    void chunks.return?.().catch(() => undefined);
    throw error;
  }
}

async function* chained(head: readonly Uint8Array[], rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  let isEnded = false;
  try {
    yield* head;
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
    isEnded = true;
  } finally {
    if (!isEnded) await rest.return?.();
  }
}

/** Returns the facts of a complete body. Throws BAD_DIGEST if it is not the declared one. */
export async function checkedFactsOf(
  key: string,
  digests: RunningDigests,
  { size: declaredSize, md5: declaredMd5, checksum: declared, check }: DeclaredBody,
): Promise<WrittenBody> {
  const found = await digests.end();
  const { size, md5, sha256, checksum } = found;
  const fail = (what: string): never => {
    throw holdfastError("BAD_DIGEST", `The body for ${JSON.stringify(key)} was not stored: ${what}. Send it again.`, {
      key,
    });
  };
  if (declaredSize !== undefined && declaredSize !== size)
    fail(`it has ${size} bytes, but ${declaredSize} were declared`);
  if (declaredMd5 !== undefined && declaredMd5 !== md5 && declaredMd5 !== Buffer.from(md5, "hex").toString("base64"))
    fail("its MD5 is not the declared one");
  if (declared !== undefined && "value" in declared && declared.value !== checksum?.value)
    fail(`its ${declared.algorithm} is ${checksum?.value}, but ${declared.value} was declared`);
  check?.(found);
  return { size, etag: md5, sha256, ...(checksum === undefined ? {} : { checksum }) };
}
