// Writes the positions of each key as differences, beginning anew in each block so that a reader can begin in any of them.
import type { BlockStream } from "./block-stream.ts";
import { putVarint, varintBytesOf } from "../file/varint.ts";

/** Where the positions of a key are: from `begin` in `firstBlock` to `end` (exclusive) in `lastBlock`, counted from the start of the section. */
export interface PostingPlace {
  readonly firstBlock: number;
  readonly lastBlock: number;
  readonly begin: number;
  readonly end: number;
}

export class PostingWriter {
  readonly #stream: BlockStream;
  readonly #origin: number;
  #begin: { readonly block: number; readonly at: number } | undefined;
  #before = -1;

  constructor(stream: BlockStream) {
    this.#stream = stream;
    this.#origin = stream.number;
  }

  /** More positions of the same key: ascending, each once. */
  add(positions: ArrayLike<number>): void {
    for (let index = 0; index < positions.length; index++) {
      const position = positions[index] as number;
      // The first of a block is said in full, plus one: a zero is the filling at the end of a block.
      const isFirst = this.#begin === undefined || varintBytesOf(position - this.#before) > this.#stream.room;
      const value = isFirst ? position + 1 : position - this.#before;
      const { block, at } = this.#stream.take(varintBytesOf(value));
      putVarint(block, at, value);
      this.#begin ??= { block: this.#stream.number, at };
      this.#before = position;
    }
  }

  /** The end of one key, which has had at least one position. */
  finish(): PostingPlace {
    const { block, at } = this.#begin as { readonly block: number; readonly at: number };
    this.#begin = undefined;
    const lastBlock = this.#stream.number - this.#origin;
    return { firstBlock: block - this.#origin, lastBlock, begin: at, end: this.#stream.used };
  }
}
