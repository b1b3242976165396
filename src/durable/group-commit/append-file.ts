// A file that grows by synced appends, and that is never written again once a write or a sync has failed.
import { holdfastError } from "../../errors.ts";
import type { DiskFile } from "../../ports/disk.ts";
import { Fifo } from "../wait/fifo.ts";

export class AppendFile {
  readonly #file: DiskFile;
  readonly #turn = new Fifo();
  #end: number;
  #failure: { readonly cause: unknown } | undefined;

  /** `end` is where the file ends as far as anybody was told. */
  constructor(file: DiskFile, end: number) {
    this.#file = file;
    this.#end = end;
  }

  get end(): number {
    return this.#end;
  }

  /** Writes and syncs; resolves with the offset. After a failure every further call is refused (CLOSED): that offset is in doubt for ever. */
  async append(bytes: Uint8Array): Promise<number> {
    // One after the other: two that begin at the same end would write over each other, and both be acknowledged.
    await this.#turn.take();
    try {
      return await this.#append(bytes);
    } finally {
      this.#turn.give();
    }
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async #append(bytes: Uint8Array): Promise<number> {
    if (this.#failure !== undefined) throw closed(this.#failure.cause);
    const offset = this.#end;
    try {
      await this.#file.write(offset, bytes);
      // Once only: a sync that is repeated after it failed says "fine" while the data is gone.
      await this.#file.sync();
    } catch (error) {
      this.#failure = { cause: error };
      // The error that counts is the first one.
      await this.#file.close().catch(() => undefined);
      throw error;
    }
    this.#end = offset + bytes.length;
    return offset;
  }
}

function closed(cause: unknown): Error {
  return holdfastError(
    "CLOSED",
    "A write to this file failed, so it is closed. Open a new one: what was acknowledged is there.",
    {},
    cause,
  );
}
