// Writes the blocks of one section one after the other.
import { blockBytes, payloadBytes, sealBlock } from "../file/block.ts";

/** Where an index is written to, and how its blocks are marked. */
export interface IndexTarget {
  readonly write: (offset: number, bytes: Uint8Array) => Promise<void>;
  readonly headerBytes: number;
  readonly stamp: number;
}

/** So many are written at once: a merge must not hold its result in memory. */
const blocksPerWrite = 64;

export class BlockStream {
  readonly #target: IndexTarget;
  readonly #full: Buffer[] = [];
  #written: number;
  #block = Buffer.alloc(blockBytes);
  #used = 0;

  constructor(target: IndexTarget, firstBlock: number) {
    this.#target = target;
    this.#written = firstBlock;
  }

  /** The number of the block that is being filled. */
  get number(): number {
    return this.#written + this.#full.length;
  }

  get used(): number {
    return this.#used;
  }

  /** What is left of that block. */
  get room(): number {
    return payloadBytes - this.#used;
  }

  /** A place of so many bytes in one block: the next one, if this has not enough room left. */
  take(bytes: number): { readonly block: Buffer; readonly at: number } {
    if (this.#used + bytes > payloadBytes) this.#seal();
    const at = this.#used;
    this.#used += bytes;
    return { block: this.#block, at };
  }

  /** Puts what is full on its way, if it is worth it. */
  async drain(): Promise<void> {
    if (this.#full.length >= blocksPerWrite) await this.#write();
  }

  async end(): Promise<void> {
    if (this.#used > 0) this.#seal();
    await this.#write();
  }

  #seal(): void {
    sealBlock(this.#block, this.number, this.#target.stamp);
    this.#full.push(this.#block);
    this.#block = Buffer.alloc(blockBytes);
    this.#used = 0;
  }

  async #write(): Promise<void> {
    const { headerBytes, write } = this.#target;
    const blocks = this.#full.splice(0);
    if (blocks.length === 0) return;
    await write(headerBytes + this.#written * blockBytes, Buffer.concat(blocks));
    this.#written += blocks.length;
  }
}
