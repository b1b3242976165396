// Writes the blocks of one section of an index, one after the other.
import { blockBytes, payloadBytes, sealBlock, type WriteAt } from "../file/index-layout.ts";

/** The destination of an index, and the stamp of its blocks. */
export interface IndexTarget {
  readonly write: WriteAt;
  readonly headerBytes: number;
  readonly stamp: number;
}

/** Blocks per write. Limits memory: a merge must not hold its whole result. */
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

  /** The number of the block being filled. */
  get number(): number {
    return this.#written + this.#full.length;
  }

  get used(): number {
    return this.#used;
  }

  /** Free bytes in that block. */
  get room(): number {
    return payloadBytes - this.#used;
  }

  /** Reserves this many bytes in one block, and begins the next block if the current one has too little space. */
  take(bytes: number): { readonly block: Buffer; readonly at: number } {
    if (this.#used + bytes > payloadBytes) this.#seal();
    const at = this.#used;
    this.#used += bytes;
    return { block: this.#block, at };
  }

  /** Writes the full blocks if there are enough for one write. */
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
