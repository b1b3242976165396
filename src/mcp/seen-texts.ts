// The texts that a connection has read or written, so that a conflict can be answered with what has
// changed since.

const bytesMax = 16 * 1024 * 1024;

export class SeenTexts {
  /** The oldest first. */
  readonly #texts = new Map<string, string>();
  #size = 0;

  remember(path: string, stamp: string, text: string): void {
    const key = keyOf(path, stamp);
    this.#forget(key);
    this.#texts.set(key, text);
    this.#size += text.length;
    for (const oldest of this.#texts.keys()) {
      if (this.#size <= bytesMax) return;
      this.#forget(oldest);
    }
  }

  find(path: string, stamp: string): string | undefined {
    return this.#texts.get(keyOf(path, stamp));
  }

  #forget(key: string): void {
    this.#size -= this.#texts.get(key)?.length ?? 0;
    this.#texts.delete(key);
  }
}

function keyOf(path: string, stamp: string): string {
  return `${stamp} ${path}`;
}
