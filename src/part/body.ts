// A body from a caller, streamed to a new file: hashed and counted on the way, and durable at the end.
import { createHash } from "node:crypto";
import type { Body, Cancel } from "../common.ts";
import { unlinkIfThere } from "../durable/publish/directory.ts";
import { openUniqueFile } from "../durable/publish/unique-file.ts";
import { onAbort } from "../durable/wait/on-abort.ts";
import type { Disk, DiskFile } from "../ports/disk.ts";

/** Chunks below this are gathered: a source that gives single lines must not cost a write for each. */
const gatheredBytes = 64 * 1024;
/** A larger chunk is hashed and written in pieces, so that the event loop goes on in between. */
const pieceBytesMax = 1024 * 1024;

/** What was written, as it can be told from any other content. */
export interface BodyDigest {
  readonly size: number;
  /** SHA-256, 64 lower-case hex digits. */
  readonly sha256: string;
}

/**
 * Writes `body` to a new file and syncs its content; the name is durable when the caller has synced the directory.
 * `path` must be a name that no other process makes. The source is asked for more only when what it gave is written.
 * A failure of the source, of the disk (DISK_FULL) or an abort rejects with that, and leaves no file; a crash may leave
 * a part of it.
 */
export async function writeBody(disk: Disk, path: string, body: Body, options: Cancel = {}): Promise<BodyDigest> {
  options.signal?.throwIfAborted();
  const file = await openUniqueFile(disk, path);
  try {
    let digest: BodyDigest;
    try {
      digest = await copyBody(file, 0, body, options);
      await file.sync();
    } catch (error) {
      // The first error tells more.
      await file.close().catch(() => undefined);
      throw error;
    }
    // On a share a lost write may be reported only here.
    await file.close();
    return digest;
  } catch (error) {
    // If it cannot be removed either, a part stays, as after a crash.
    await unlinkIfThere(disk, path).catch(() => undefined);
    throw error;
  }
}

/** Writes `body` to an open file from `offset` on, without a sync. Rejects as `writeBody` does. */
export async function copyBody(
  file: DiskFile,
  offset: number,
  body: Body,
  { signal }: Cancel = {},
): Promise<BodyDigest> {
  const hash = createHash("sha256");
  let size = 0;
  const write = async (bytes: Uint8Array): Promise<void> => {
    for (let start = 0; start < bytes.length; start += pieceBytesMax) {
      signal?.throwIfAborted();
      const piece = bytes.subarray(start, start + pieceBytesMax);
      hash.update(piece);
      await file.write(offset + size, piece);
      size += piece.length;
    }
  };
  if (typeof body === "string") await write(Buffer.from(body));
  else if (body instanceof Uint8Array) await writeCopied(body, write);
  else await writeGathered(body, write, signal);
  return { size, sha256: hash.digest("hex") };
}

/** Piece by piece from a copy: the caller may change its bytes meanwhile, and what is hashed must be what is written. */
async function writeCopied(bytes: Uint8Array, write: (bytes: Uint8Array) => Promise<void>): Promise<void> {
  for (let start = 0; start < bytes.length; start += pieceBytesMax)
    await write(new Uint8Array(bytes.subarray(start, start + pieceBytesMax)));
}

async function writeGathered(
  source: AsyncIterable<Uint8Array>,
  write: (bytes: Uint8Array) => Promise<void>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const gathered = new Uint8Array(gatheredBytes);
  let length = 0;
  const flush = async (): Promise<void> => {
    const full = gathered.subarray(0, length);
    length = 0;
    await write(full);
  };
  for await (const chunk of untilAborted(source, signal)) {
    if (length + chunk.length > gatheredBytes) await flush();
    if (chunk.length >= gatheredBytes) await write(chunk);
    else {
      // A copy: the source may use its buffer again.
      gathered.set(chunk, length);
      length += chunk.length;
    }
  }
  await flush();
}

/** The chunks of `source`; an abort ends also a wait for a source that gives nothing more. */
export async function* untilAborted(
  source: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]();
  let isEnded = false;
  try {
    for (;;) {
      const { done, value } = await orAborted(iterator.next(), signal);
      if (done === true) break;
      if (!(value instanceof Uint8Array)) throw new TypeError("A body must give bytes: Uint8Array or Buffer.");
      yield value;
    }
    isEnded = true;
  } finally {
    // Not waited for: a source that hangs does not end either.
    if (!isEnded) void Promise.resolve(iterator.return?.()).catch(() => undefined);
  }
}

/** What `step` gives; an abort ends also a wait for a step that never ends. */
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
    // Its failure, after an abort, is not an answer to anybody.
    step.catch(() => undefined);
  }
}
