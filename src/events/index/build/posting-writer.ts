// Writes the positions of each key as differences. The first one in each block is absolute, so that
// a reader can begin at any block.
import { putVarint, varintBytesOf, type PostingExtent } from "../file/posting-list.ts";
import type { BlockStream } from "./block-stream.ts";

export class PostingWriter {
  readonly #stream: BlockStream;
  readonly #origin: number;
  #begin: { readonly block: number; readonly at: number } | undefined;
  #before = -1;

  constructor(stream: BlockStream) {
    this.#stream = stream;
    this.#origin = stream.number;
  }

  /** Adds more positions of the same key: ascending, each once. */
  add(positions: ArrayLike<number>): void {
    for (let index = 0; index < positions.length; index++) {
      const position = positions[index] as number;
      // The first position of a block is stored as an absolute number plus one, because zeros pad the end of a block.
      const isFirst = this.#begin === undefined || varintBytesOf(position - this.#before) > this.#stream.room;
      const value = isFirst ? position + 1 : position - this.#before;
      const { block, at } = this.#stream.take(varintBytesOf(value));
      putVarint(block, at, value);
      this.#begin ??= { block: this.#stream.number, at };
      this.#before = position;
    }
  }

  /** Ends the list of one key, which had at least one position. */
  finish(): PostingExtent {
    const { block, at } = this.#begin as { readonly block: number; readonly at: number };
    this.#begin = undefined;
    const lastBlock = this.#stream.number - this.#origin;
    return { firstBlock: block - this.#origin, lastBlock, begin: at, end: this.#stream.used };
  }
}
