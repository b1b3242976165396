// The content of a file as a caller reads it, verified against the digest recorded when it was
// written.
import { createHash, hash } from "node:crypto";
import type { Content } from "../common.ts";
import { holdfastError } from "../errors.ts";
import type { DiskFile } from "../ports/disk.ts";
import type { BodyDigest } from "./body.ts";

/** One read of the disk. */
const chunkBytes = 256 * 1024;

export interface ContentOptions {
  readonly path: string;
  /** Called at the first read. The content owns the file from then on. */
  readonly open: () => Promise<DiskFile>;
  /** Where the content begins in the file; it extends to the end. Default 0. */
  readonly offset?: number | undefined;
  readonly digest: BodyDigest;
  /** Creates the error for content that differs from the recorded one. Default: CORRUPT. */
  readonly mismatch?: ((what: string) => Error) | undefined;
}

/** Returns content that is in memory, if it is the recorded one. */
export function verified(bytes: Uint8Array, digest: BodyDigest, mismatch: (what: string) => Error): Uint8Array {
  if (bytes.length !== digest.size) throw mismatch(sizeDiffers(bytes.length, digest));
  if (hash("sha256", bytes) !== digest.sha256) throw mismatch(hashDiffers);
  return bytes;
}

const hashDiffers = "its SHA-256 differs";

function sizeDiffers(size: number, digest: BodyDigest): string {
  return `it has ${Math.max(size, 0)} bytes, not ${digest.size}`;
}

/**
 * Can be read any number of times, also concurrently, through one handle: a file that is removed
 * meanwhile is still read to its end.
 */
export class FileContent implements Content, AsyncDisposable {
  readonly #options: ContentOptions;
  #opening: Promise<DiskFile> | undefined;
  #isClosed = false;

  constructor(options: ContentOptions) {
    this.#options = options;
  }

  /** Throws for different content before it yields the last chunk, so no reader gets all of it unverified. */
  async *stream(): AsyncGenerator<Uint8Array> {
    const { offset = 0, digest } = this.#options;
    const file = await this.#file();
    const size = (await file.stat()).size - offset;
    if (size !== digest.size) throw this.#mismatch(sizeDiffers(size, digest));
    const running = createHash("sha256");
    const mustMatch = (): void => {
      if (running.digest("hex") !== digest.sha256) throw this.#mismatch(hashDiffers);
    };
    if (size === 0) mustMatch();
    for (let done = 0; done < size;) {
      const chunk = await file.read(offset + done, Math.min(chunkBytes, size - done));
      if (chunk.length === 0) throw this.#mismatch(`it ends after ${done} of ${size} bytes`);
      running.update(chunk);
      done += chunk.length;
      if (done === size) mustMatch();
      yield chunk;
    }
  }

  async bytes(): Promise<Uint8Array> {
    let bytes = new Uint8Array();
    let length = 0;
    for await (const chunk of this.stream()) {
      // Allocate only after the size of the file has been checked.
      if (length === 0) bytes = new Uint8Array(this.#options.digest.size);
      bytes.set(chunk, length);
      length += chunk.length;
    }
    return bytes;
  }

  /** Reads everything as UTF-8. */
  async text(): Promise<string> {
    return Buffer.from(await this.bytes()).toString();
  }

  /** Verifies everything without keeping it. */
  async verify(): Promise<void> {
    for await (const _ of this.stream());
  }

  /** Idempotent. Reads in progress fail. */
  async close(): Promise<void> {
    this.#isClosed = true;
    // A file that could not be opened needs no close.
    const file = await this.#opening?.catch(() => undefined);
    await file?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #file(): Promise<DiskFile> {
    if (this.#isClosed) throw holdfastError("CLOSED", `${this.#options.path} was closed. Get it again.`, {});
    this.#opening ??= this.#options.open();
    try {
      return await this.#opening;
    } catch (error) {
      // The next read tries again.
      this.#opening = undefined;
      throw error;
    }
  }

  #mismatch(what: string): Error {
    const { path, mismatch } = this.#options;
    if (mismatch !== undefined) return mismatch(what);
    const message = `${path} is not what was written there: ${what}. Restore it from a backup.`;
    return holdfastError("CORRUPT", message, { path });
  }
}
