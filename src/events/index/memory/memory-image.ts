// Index files that could not be written, as bytes in memory: a cache of limited size. A dropped image is built again
// when it is read.
import type { IndexSource } from "../file/index-blocks.ts";

export class MemoryImages {
  readonly #bytesMax: number;
  // In order of use; the most recent is last.
  readonly #images = new Map<MemoryImage, Uint8Array>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  find(image: MemoryImage): Uint8Array | undefined {
    const bytes = this.#images.get(image);
    if (bytes === undefined) return undefined;
    this.#images.delete(image);
    this.#images.set(image, bytes);
    return bytes;
  }

  keep(image: MemoryImage, bytes: Uint8Array): void {
    this.drop(image);
    this.#images.set(image, bytes);
    this.#bytes += bytes.length;
    for (const oldest of [...this.#images.keys()]) {
      if (this.#bytes <= this.#bytesMax || oldest === image) return;
      this.drop(oldest);
    }
  }

  drop(image: MemoryImage): void {
    this.#bytes -= this.#images.get(image)?.length ?? 0;
    this.#images.delete(image);
  }
}

export class MemoryImage implements IndexSource {
  readonly #images: MemoryImages;
  readonly #make: () => Promise<Uint8Array>;

  constructor(images: MemoryImages, bytes: Uint8Array, make: () => Promise<Uint8Array>) {
    this.#images = images;
    this.#make = make;
    images.keep(this, bytes);
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    let bytes = this.#images.find(this);
    if (bytes === undefined) {
      bytes = await this.#make();
      this.#images.keep(this, bytes);
    }
    // A copy: a view would keep the whole image in memory.
    return bytes.slice(offset, offset + length);
  }

  async close(): Promise<void> {
    this.#images.drop(this);
  }
}
