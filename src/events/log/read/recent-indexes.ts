// Indexes of segments that were just sealed: they serve reads from memory until their index files
// are written.
import type { ActiveIndex } from "../../index/memory/active-index.ts";

/** Each takes a few megabytes. */
const indexesMax = 4;

export class RecentIndexes {
  readonly #indexes = new Map<number, ActiveIndex>();

  get segments(): readonly number[] {
    return [...this.#indexes.keys()];
  }

  has(segment: number): boolean {
    return this.#indexes.has(segment);
  }

  add(segment: number, index: ActiveIndex): void {
    this.#indexes.set(segment, index);
    for (const oldest of this.#indexes.keys()) if (this.#indexes.size > indexesMax) this.#indexes.delete(oldest);
  }

  find(position: number): ActiveIndex | undefined {
    for (const index of this.#indexes.values()) if (position >= index.first && position <= index.last) return index;
    return undefined;
  }

  drop(segments: readonly number[]): void {
    for (const segment of segments) this.#indexes.delete(segment);
  }
}
