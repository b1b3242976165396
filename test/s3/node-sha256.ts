// The hash that the signer of the SDK asks for, by the platform.
import { createHash, createHmac } from "node:crypto";

export class NodeSha256 {
  #data = Buffer.alloc(0);
  readonly #key: string | Uint8Array | undefined;
  constructor(key?: unknown) {
    this.#key = key as string | Uint8Array | undefined;
  }
  update(data: unknown): void {
    this.#data = Buffer.concat([this.#data, Buffer.from(data as Uint8Array)]);
  }
  async digest(): Promise<Uint8Array> {
    const hash = this.#key === undefined ? createHash("sha256") : createHmac("sha256", this.#key);
    return hash.update(this.#data).digest();
  }
  reset(): void {
    this.#data = Buffer.alloc(0);
  }
}
