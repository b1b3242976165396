// Reads one version of an object. The files are opened before the first byte is returned, so that
// the version can be read to the end while newer ones are put or it is deleted. For a large object,
// only the first parts are opened.
import type { Content } from "../../common.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { FileContent, verified } from "../../part/content.ts";
import { orAborted, type BodyDigest } from "../../part/body.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk, DiskFile } from "../../ports/disk.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { openIfThere, readSlot } from "../key/entry-file.ts";
import type { PutEntry } from "../model/entry.ts";
import type { ObjectVersion, ReadOptions, StoredObject } from "../model/object.ts";
import { findBodyFiles, hasBodyFiles } from "./body-files.ts";
import { describe, findVersion, noSuchKey, noSuchVersion, versionIdOf, type FoundVersion } from "./find-version.ts";

/**
 * How often a version is opened again because it disappeared. Beyond that, it is reported as
 * missing.
 */
const attemptsMax = 10;
const chunkBytes = 256 * 1024;
/** How many parts of an upload are open from the start. Later ones are opened when they are reached. */
const openMax = 64;

const entryIds = new WeakMap<StoredObject, string>();

/** Id of the entry that the object was opened from. */
export function entryIdOf(object: StoredObject): string | undefined {
  return entryIds.get(object);
}

/**
 * Throws NO_SUCH_KEY or NO_SUCH_VERSION. Also throws NO_SUCH_KEY for a delete marker, unless
 * `mayBeMarker`.
 */
export async function getVersion(
  bucket: OpenBucket,
  key: string,
  { versionId, mayBeMarker = false }: { readonly versionId?: string | undefined; readonly mayBeMarker?: boolean } = {},
): Promise<FoundVersion> {
  const found = await bucket.useKey(key, (open) => findVersion(open, key, versionId));
  if (found === undefined) {
    await bucket.mustBeThere();
    throw versionId === undefined ? noSuchKey(key) : noSuchVersion(key, versionId);
  }
  if (found.version.entry.kind === "marker" && !mayBeMarker) throw noSuchKey(key, versionIdOf(found.version));
  return found;
}

/** Opens a version. Throws like `getVersion`, and also INVALID_RANGE. */
export async function openObject(
  bucket: OpenBucket,
  key: string,
  { versionId, range, signal }: ReadOptions,
): Promise<StoredObject> {
  let missing: MissingBody | undefined;
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted();
    const found = await getVersion(bucket, key, { versionId });
    const described = describe(found.version, found.isLatest);
    const bytes = rangeOf(described, range);
    const content = await openContent(bucket, key, found, bytes);
    if ("path" in content) {
      // The version was removed or replaced since it was found, so it is searched again. A version
      // is removed before its body: if the same version is found again, its body was lost.
      const { id } = found.version.entry;
      if (missing?.id === id) throw bucket.corrupt(key, content.path, `${content.path} is missing. Restore it.`);
      missing = { path: content.path, id };
      if (attempt < attemptsMax) continue;
      throw noSuchVersion(key, described.versionId);
    }
    return openedObject(found, content, { range: bytes, signal });
  }
}

/** A missing file, and the id of the entry that names it. */
interface MissingBody {
  readonly path: string;
  readonly id: string;
}

/** Returns the path of a missing file if the version was removed meanwhile. */
async function openContent(
  bucket: OpenBucket,
  key: string,
  { head, version }: FoundVersion,
  range: ByteRange | undefined,
): Promise<ObjectContent | Pick<MissingBody, "path">> {
  const entry = version.entry as PutEntry;
  const { disk } = bucket.storage;
  const mismatchOf =
    (path: string) =>
    (what: string): Error =>
      bucket.corrupt(key, path, `${path} does not contain what was written: ${what}. Restore it from a backup.`);
  if (hasBodyFiles(entry)) {
    const parts = await findBodyFiles(bucket, entry);
    if (parts === undefined) return { path: bucket.bodyPath(entry.partsIn ?? "") };
    const pieces = parts.map(({ file, size, sha256 }) => {
      const path = bucket.bodyPath(file);
      return { path, digest: { size, sha256 }, mismatch: mismatchOf(path) };
    });
    return await LargeContent.open(disk, pieces, range, () => noSuchVersion(key, versionIdOf(version)));
  }
  const path = await bucket.useKey(key, async ({ chain }) => chain.names.slotPath(head.incarnation, version.slot));
  const file = await openIfThere(disk, path);
  if (file === undefined) return { path };
  try {
    const slot = await readSlot(file, path).catch((error: unknown) => {
      throw isHoldfastError(error, "CORRUPT") ? bucket.corrupt(key, path, error.message, error) : error;
    });
    // A stub has replaced the slot.
    if (slot.entry.kind !== "put" || slot.entry.id !== entry.id) return { path };
    const digest = { size: entry.size, sha256: entry.sha256 ?? "" };
    const mismatch = mismatchOf(path);
    // Most small bodies arrived with the record and need no second read.
    if (slot.file !== undefined) return new SmallContent(verified(slot.file.subarray(slot.bodyAt), digest, mismatch));
    const content = new FileContent({ path, digest, offset: slot.bodyAt, open: async () => file, mismatch });
    return new SmallContent(await content.bytes());
  } finally {
    await file.close();
  }
}

/** Returns an open version to its caller. */
export function openedObject(
  { version, isLatest }: Pick<FoundVersion, "version" | "isLatest">,
  content: ObjectContent,
  reading: VersionReader,
): StoredObject {
  const object = new OpenObject(describe(version, isLatest), content, reading) as StoredObject & OpenObject;
  entryIds.set(object, version.entry.id);
  return object;
}

export interface ObjectContent {
  stream(range: ByteRange | undefined): AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

/** Read and verified when the object was opened. */
export class SmallContent implements ObjectContent {
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  async *stream(range: ByteRange | undefined): AsyncGenerator<Uint8Array> {
    // A copy, because a caller may modify it and read again.
    if (this.#bytes.length > 0) yield this.#bytes.slice(range?.start ?? 0, range && range.end + 1);
  }

  async close(): Promise<void> {
    // No file is open.
  }
}

interface BodyPiece {
  readonly path: string;
  readonly digest: BodyDigest;
  readonly mismatch: (what: string) => Error;
}

/**
 * Reads files one after another. The first ones are opened at the start and stay open until they
 * were read once: an open file stays readable even if its name is removed.
 */
class LargeContent implements ObjectContent {
  readonly #disk: Disk;
  readonly #pieces: readonly BodyPiece[];
  readonly #open: Map<BodyPiece, DiskFile>;
  readonly #gone: () => Error;

  private constructor(disk: Disk, pieces: readonly BodyPiece[], open: Map<BodyPiece, DiskFile>, gone: () => Error) {
    this.#disk = disk;
    this.#pieces = pieces;
    this.#open = open;
    this.#gone = gone;
  }

  /** Returns the path of a file if it is missing. */
  static async open(
    disk: Disk,
    pieces: readonly BodyPiece[],
    range: ByteRange | undefined,
    gone: () => Error,
  ): Promise<LargeContent | Pick<MissingBody, "path">> {
    const content = new LargeContent(disk, pieces, new Map(), gone);
    const wanted = [...content.#piecesIn(range)].slice(0, openMax).map(({ piece }) => piece);
    const opened = await Promise.allSettled(wanted.map((piece) => openIfThere(disk, piece.path, { isBulk: true })));
    const files = opened.map((each) => (each.status === "fulfilled" ? each.value : undefined));
    for (const [index, piece] of wanted.entries()) {
      const file = files[index];
      if (file !== undefined) content.#open.set(piece, file);
    }
    const missing = wanted.find((_piece, index) => files[index] === undefined);
    if (missing === undefined) return content;
    await content.close();
    for (const each of opened) if (each.status === "rejected") throw each.reason;
    return { path: missing.path };
  }

  async *stream(range: ByteRange | undefined): AsyncGenerator<Uint8Array> {
    for (const { piece, from, to } of this.#piecesIn(range)) {
      const file = await this.#take(piece);
      try {
        if (from === 0 && to === piece.digest.size - 1)
          yield* new FileContent({ ...piece, open: async () => file }).stream();
        else yield* readRange(file, piece, from, to);
      } catch (error) {
        // On a share, another machine removed the file after it was opened.
        throw hasErrno(error, "ESTALE") ? this.#gone() : error;
      } finally {
        await file.close();
      }
    }
  }

  async close(): Promise<void> {
    const files = [...this.#open.values()];
    this.#open.clear();
    for (const file of files) await file.close();
  }

  *#piecesIn(range: ByteRange | undefined): Generator<{ piece: BodyPiece; from: number; to: number }> {
    let at = 0;
    for (const piece of this.#pieces) {
      const from = Math.max((range?.start ?? 0) - at, 0);
      const to = Math.min((range?.end ?? Infinity) - at, piece.digest.size - 1);
      at += piece.digest.size;
      if (from <= to || piece.digest.size === 0) yield { piece, from, to };
    }
  }

  async #take(piece: BodyPiece): Promise<DiskFile> {
    const file = this.#open.get(piece) ?? (await openIfThere(this.#disk, piece.path, { isBulk: true }));
    this.#open.delete(piece);
    if (file === undefined) throw this.#gone();
    return file;
  }
}

async function* readRange(
  file: DiskFile,
  { mismatch }: BodyPiece,
  from: number,
  to: number,
): AsyncGenerator<Uint8Array> {
  for (let at = from; at <= to;) {
    const chunk = await file.read(at, Math.min(chunkBytes, to - at + 1));
    if (chunk.length === 0) throw mismatch(`it ends after ${at} bytes`);
    yield chunk;
    at += chunk.length;
  }
}

export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** Throws INVALID_RANGE. */
export function rangeOf({ key, size }: ObjectVersion, range: ReadOptions["range"]): ByteRange | undefined {
  if (range === undefined) return undefined;
  const start = range.start < 0 ? Math.max(size + range.start, 0) : range.start;
  const end = Math.min(range.end ?? size - 1, size - 1);
  if (start <= end && start < size) return { start, end };
  const message = `The object ${JSON.stringify(key)} has ${size} bytes, none of which is in the range. Correct the range.`;
  throw holdfastError("INVALID_RANGE", message, { size });
}

export interface VersionReader {
  readonly range: ByteRange | undefined;
  readonly signal: AbortSignal | undefined;
}

class OpenObject implements Content, AsyncDisposable {
  readonly #content: ObjectContent;
  readonly #range: ByteRange | undefined;
  readonly #signal: AbortSignal | undefined;

  constructor(version: ObjectVersion, content: ObjectContent, { range, signal }: VersionReader) {
    Object.assign(this, version, range === undefined ? {} : { range });
    this.#content = content;
    this.#range = range;
    this.#signal = signal;
  }

  async *stream(): AsyncGenerator<Uint8Array> {
    const chunks = this.#content.stream(this.#range)[Symbol.asyncIterator]();
    try {
      // Rejects on an abort even if the read never returns.
      for (;;) {
        const { done, value } = await orAborted(chunks.next(), this.#signal);
        if (done === true) return;
        yield value;
      }
    } finally {
      const closing = Promise.resolve(chunks.return?.());
      if (this.#signal?.aborted === true) void closing.catch(() => undefined);
      else await closing;
    }
  }

  async bytes(): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of this.stream()) chunks.push(chunk);
    return Buffer.concat(chunks);
  }

  /** Decodes the bytes as UTF-8. */
  async text(): Promise<string> {
    return Buffer.from(await this.bytes()).toString();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#content.close();
  }
}
