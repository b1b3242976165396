// Streams a caller's body to a new file: hashed on the way, and durable at the end.
import { createHash } from "node:crypto";
import type { Body, Cancel } from "../common.ts";
import { unlinkIfThere } from "../durable/publish/directory.ts";
import { openUniqueFile } from "../durable/publish/unique-file.ts";
import { onAbort } from "../durable/wait/on-abort.ts";
import type { Disk } from "../ports/disk.ts";

/** Smaller chunks are collected: a source that yields single lines must not cost one write per line. */
const gatheredBytes = 64 * 1024;
/** A larger chunk is hashed and written in pieces, so that the event loop can run in between. */
const pieceBytesMax = 1024 * 1024;
const empty = new Uint8Array();

/** Size and hash of what was written. */
export interface BodyDigest {
  readonly size: number;
  /** SHA-256, 64 lower-case hex digits. */
  readonly sha256: string;
}

/** Receives every byte of a body once and in order, right before it is written. */
export interface BodySink {
  /** Returns memory in which to collect chunks; the sink no longer reads it. */
  buffer(): Uint8Array | Promise<Uint8Array>;
  /** True if `update` accepts only bytes in the last `buffer`. Otherwise large chunks are passed on directly. */
  readonly isBuffered: boolean;
  /** `bytes` stay unchanged until the next call of `buffer`. */
  update(bytes: Uint8Array): void;
}

/** A body in a new file whose content is not durable yet. */
export interface CopiedBody extends BodyDigest {
  /** Syncs and closes the file. Call it once, even if the file is no longer wanted. */
  readonly finish: () => Promise<void>;
}

/**
 * Writes `body` to a new file and syncs its content; the name is durable once the caller has synced
 * the directory. `path` must be a name that no other process makes. The source is read only after
 * its last chunk is written. If the source or the disk fails (DISK_FULL), or on an abort, it
 * rejects with that error and leaves no file; a crash may leave a partial one.
 */
export async function writeBody(disk: Disk, path: string, body: Body, options: Cancel = {}): Promise<BodyDigest> {
  const { finish, ...digest } = await copyBody(disk, path, body, options);
  await finish();
  return digest;
}

/** Like `writeBody`, but the content is durable only after `finish`, which may reject like `writeBody`. */
export async function copyBody(disk: Disk, path: string, body: Body, options: Cancel = {}): Promise<CopiedBody> {
  const hash = createHash("sha256");
  const gathered = typeof body === "string" || body instanceof Uint8Array ? empty : new Uint8Array(gatheredBytes);
  let size = 0;
  const update = (bytes: Uint8Array): void => {
    hash.update(bytes);
    size += bytes.length;
  };
  const sink = { buffer: () => gathered, isBuffered: false, update };
  const finish = await copyThrough(disk, path, body, sink, options);
  return { size, sha256: hash.digest("hex"), finish };
}

/** Like `writeBody`, but `sink` does the hashing. */
export async function writeThrough(
  disk: Disk,
  path: string,
  body: Body,
  sink: BodySink,
  options: Cancel = {},
): Promise<void> {
  const finish = await copyThrough(disk, path, body, sink, options);
  await finish();
}

async function copyThrough(
  disk: Disk,
  path: string,
  body: Body,
  sink: BodySink,
  { signal }: Cancel,
): Promise<() => Promise<void>> {
  signal?.throwIfAborted();
  const file = await openUniqueFile(disk, path);
  const orRemove = async (step: () => Promise<void>): Promise<void> => {
    try {
      await step();
    } catch (error) {
      // The first error is more informative. If the file cannot be removed either, a partial file
      // remains, as after a crash.
      await file.close().catch(() => undefined);
      await unlinkIfThere(disk, path).catch(() => undefined);
      throw error;
    }
  };
  let offset = 0;
  const write = async (piece: Uint8Array): Promise<void> => {
    signal?.throwIfAborted();
    sink.update(piece);
    await file.write(offset, piece);
    offset += piece.length;
  };
  await orRemove(() => writeGathered(chunksOf(body), sink, write, signal));
  return () =>
    orRemove(async () => {
      await file.sync();
      // A share may report a lost write only here.
      await file.close();
    });
}

/**
 * Returns strings and bytes as copied pieces: the caller may modify its bytes meanwhile, and what is hashed must be what
 * is written.
 */
export function chunksOf(body: Body): AsyncIterable<Uint8Array> {
  if (typeof body === "object" && body !== null && Symbol.asyncIterator in body) return body;
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  if (!(bytes instanceof Uint8Array))
    throw new TypeError("A body must be a string, bytes, or an async iterable of bytes.");
  return copiedPieces(bytes);
}

async function* copiedPieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += pieceBytesMax)
    yield new Uint8Array(bytes.subarray(start, start + pieceBytesMax));
}

/** Passes `source` on to `write`, gathered in the memory of `sink`. An abort also ends a wait for the source. */
export async function writeGathered(
  source: AsyncIterable<Uint8Array>,
  sink: BodySink,
  write: (bytes: Uint8Array) => Promise<void>,
  signal: AbortSignal | undefined,
): Promise<void> {
  let gathered = await sink.buffer();
  let length = 0;
  const flush = async (): Promise<void> => {
    if (length === 0) return;
    await write(gathered.subarray(0, length));
    length = 0;
    gathered = await orAborted(Promise.resolve(sink.buffer()), signal);
  };
  for await (const chunk of untilAborted(source, signal)) {
    const isGathered = sink.isBuffered || chunk.length < gathered.length;
    if (!isGathered || (!sink.isBuffered && length + chunk.length > gathered.length)) await flush();
    for (let start = 0; start < chunk.length;) {
      const roomBytes = isGathered ? gathered.length - length : pieceBytesMax;
      const some = chunk.subarray(start, start + roomBytes);
      start += some.length;
      if (!isGathered) {
        await write(some);
        continue;
      }
      // A copy: the source may reuse its buffer.
      gathered.set(some, length);
      length += some.length;
      if (length === gathered.length) await flush();
    }
  }
  await flush();
}

/** Yields the chunks of `source`. An abort also ends a wait for a source that yields nothing more. */
export async function* untilAborted(
  source: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]();
  let isEnded = false;
  let stopListening: (() => void) | undefined;
  try {
    signal?.throwIfAborted();
    // One listener for all chunks.
    let fail: (reason: Error) => void = () => undefined;
    if (signal !== undefined) stopListening = onAbort(signal, () => fail(signal.reason as Error));
    const next = (): Promise<IteratorResult<Uint8Array>> =>
      new Promise((resolve, reject) => {
        fail = reject;
        Promise.resolve(iterator.next()).then(resolve, reject);
      });
    for (;;) {
      signal?.throwIfAborted();
      const { done, value } = await next();
      if (done === true) break;
      if (!(value instanceof Uint8Array)) throw new TypeError("A body must yield bytes: Uint8Array or Buffer.");
      yield value;
    }
    isEnded = true;
  } finally {
    stopListening?.();
    // Do not await it: the `return` of a source that hangs never ends either.
    if (!isEnded) void Promise.resolve(iterator.return?.()).catch(() => undefined);
  }
}

/** Returns the result of `step`. An abort also ends a wait for a step that never ends. */
export async function orAborted<T>(step: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await step;
  signal.throwIfAborted();
  let stopListening = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stopListening = onAbort(signal, () => reject(signal.reason as Error));
  });
  try {
    return await Promise.race([step, aborted]);
  } finally {
    stopListening();
    // After an abort, nobody needs the failure of the step.
    step.catch(() => undefined);
  }
}
