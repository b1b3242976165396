// Blobs: bodies that are too large for the row of their version, stored as rows of 1 MiB. They are
// committed before a version or an upload names them. A blob that is not named has a time after
// which a collection removes it.
import { createHash } from "node:crypto";
import type { Body } from "../../common.ts";
import type { BodyFile } from "../../objects/model/entry.ts";
import { RunningDigests } from "../../objects/version/digests.ts";
import type { ByteRange, ObjectContent } from "../../objects/version/read-version.ts";
import { checkedFactsOf, type DeclaredBody, type WrittenBody } from "../../objects/version/stage-body.ts";
import { chunksOf, writeGathered } from "../../part/body.ts";
import type { Database } from "../connection/database.ts";

const chunkBytes = 1024 * 1024;
/**
 * How long an unnamed blob stays after its last chunk. By then its writer is gone, or its write
 * will fail.
 */
const stagedFor = "1 day";

export interface WrittenBlob extends WrittenBody {
  readonly blob: string;
}

export class Blobs {
  readonly #database: Database;
  readonly #part: number;
  readonly #newId: () => string;

  constructor(database: Database, part: number, newId: () => string) {
    this.#database = database;
    this.#part = part;
    this.#newId = newId;
  }

  /**
   * Writes a body. Throws BAD_DIGEST if it differs from the declared one, or the error of its
   * source; in both cases it leaves nothing behind.
   */
  async write(key: string, body: Body, declared: DeclaredBody): Promise<WrittenBlob> {
    const blob = this.#newId();
    const digests = new RunningDigests(declared.checksum?.algorithm);
    const memory = new Uint8Array(chunkBytes);
    let n = 0;
    const sink = {
      buffer: () => memory,
      isBuffered: true,
      update: (bytes: Uint8Array) => digests.update(bytes),
    };
    try {
      await this.#database.query(
        `insert into hf_blob (blob, p, gone_after) values ($1, $2, clock_timestamp() + interval '${stagedFor}')
           on conflict do nothing`,
        [blob, this.#part],
      );
      const write = async (bytes: Uint8Array): Promise<void> => {
        sink.update(bytes);
        await this.#writeChunk(blob, n++, bytes);
      };
      await writeGathered(chunksOf(body), sink, write, declared.signal);
      return { blob, ...(await checkedFactsOf(key, digests, declared)) };
    } catch (error) {
      digests.close();
      await this.discard(blob);
      throw error;
    }
  }

  /** Removes an unnamed blob. If that fails, a collection removes it. */
  async discard(blob: string): Promise<void> {
    await this.#database
      .once(
        `with gone as (delete from hf_blob where blob = $1 and gone_after is not null returning blob)
         delete from hf_chunk where blob in (select blob from gone)`,
        [blob],
      )
      .catch(() => undefined);
  }

  /** Removes expired blobs, and returns how many. */
  async collect(signal: AbortSignal | undefined): Promise<number> {
    for (let count = 0; ;) {
      signal?.throwIfAborted();
      const gone = await this.#database.query(
        `with gone as (
           delete from hf_blob where blob in (
             select blob from hf_blob where p = $1 and gone_after < clock_timestamp() limit 16 for update skip locked)
           returning blob),
         chunks as (delete from hf_chunk where blob in (select blob from gone))
         select blob from gone`,
        [this.#part],
      );
      if (gone.length === 0) return count;
      count += gone.length;
    }
  }

  /** Returns a chunk; undefined if it is missing. */
  async readChunk(blob: string, n: number): Promise<Buffer | undefined> {
    const [row] = await this.#database.query<{ body: Buffer }>("select body from hf_chunk where blob = $1 and n = $2", [
      blob,
      n,
    ]);
    return row?.body;
  }

  /**
   * Inserts a chunk and extends the blob's time in one statement. If the blob was collected
   * meanwhile, no version will name it.
   */
  async #writeChunk(blob: string, n: number, bytes: Uint8Array): Promise<void> {
    await this.#database.query(
      `with kept as (
         update hf_blob set gone_after = clock_timestamp() + interval '${stagedFor}'
           where blob = $1 and gone_after is not null returning blob)
       insert into hf_chunk (blob, n, body) select blob, $2::int, $3::bytea from kept on conflict do nothing`,
      [blob, n, Buffer.from(bytes)],
    );
  }
}

/**
 * Reads the parts of a body one after another. A part that is read whole is verified before its
 * last byte is returned.
 */
export class BlobContent implements ObjectContent {
  readonly #blobs: Blobs;
  readonly #parts: readonly BodyFile[];
  readonly #failure: (blob: string, what: string) => Promise<Error>;

  /** `failure` returns the error for a missing or damaged blob. */
  constructor(blobs: Blobs, parts: readonly BodyFile[], failure: (blob: string, what: string) => Promise<Error>) {
    this.#blobs = blobs;
    this.#parts = parts;
    this.#failure = failure;
  }

  async *stream(range: ByteRange | undefined): AsyncGenerator<Uint8Array> {
    let at = 0;
    for (const part of this.#parts) {
      const from = Math.max((range?.start ?? 0) - at, 0);
      const to = Math.min((range?.end ?? Infinity) - at, part.size - 1);
      at += part.size;
      if (from <= to) yield* this.#streamPart(part, from, to);
    }
  }

  async close(): Promise<void> {
    // Nothing is open.
  }

  async *#streamPart({ file: blob, size, sha256 }: BodyFile, from: number, to: number): AsyncGenerator<Uint8Array> {
    const isWhole = from === 0 && to === size - 1;
    const hash = createHash("sha256");
    for (let n = Math.floor(from / chunkBytes); n * chunkBytes <= to; n++) {
      const chunk = await this.#blobs.readChunk(blob, n);
      const start = n * chunkBytes;
      const expected = Math.min(chunkBytes, size - start);
      if (chunk?.length !== expected)
        throw await this.#failure(blob, chunk === undefined ? "it is missing" : "its size differs");
      if (isWhole) {
        hash.update(chunk);
        if (start + expected === size && hash.digest("hex") !== sha256)
          throw await this.#failure(blob, "its SHA-256 differs");
      }
      yield chunk.subarray(Math.max(from - start, 0), to - start + 1);
    }
  }
}
