// The addresses of the lines of a segment, found by position.
import type { LineAddress } from "../keys/indexed-line.ts";
import { Column } from "./column.ts";

const uint32Max = 0xffff_ffff;

export class LineTable {
  readonly #first: number;
  readonly #firsts = new Column();
  readonly #segments = new Column();
  readonly #offsets = new Column();
  readonly #bytes = new Column();
  readonly #segmentNumbers: number[] = [];

  constructor(first: number) {
    this.#first = first;
  }

  get length(): number {
    return this.#firsts.length;
  }

  /**
   * Call it in the order of positions, and only for lines with events: a line without events has the position of the
   * next one.
   */
  add({ first, segment, offset, bytes }: LineAddress): void {
    if (!isUint32(first - this.#first) || !isUint32(offset) || !isUint32(bytes))
      throw new RangeError(
        `A line at byte ${offset} of segment ${segment}, ${bytes} bytes long, is beyond the limits of an index.`,
      );
    if (this.#segmentNumbers.at(-1) !== segment) this.#segmentNumbers.push(segment);
    this.#firsts.push(first - this.#first);
    this.#segments.push(this.#segmentNumbers.length - 1);
    this.#offsets.push(offset);
    this.#bytes.push(bytes);
  }

  at(index: number): LineAddress {
    return {
      segment: this.#segmentNumbers[this.#segments.at(index)] as number,
      offset: this.#offsets.at(index),
      bytes: this.#bytes.at(index),
      first: this.#first + this.#firsts.at(index),
    };
  }

  /** Returns the last line that begins at `position` or before. If any line contains the position, it is this one. */
  getLine(position: number): LineAddress {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#firsts.at(middle) <= position - this.#first) low = middle + 1;
      else high = middle;
    }
    if (low === 0) throw new RangeError(`Position ${position} is before the first line.`);
    return this.at(low - 1);
  }
}

function isUint32(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= uint32Max;
}
