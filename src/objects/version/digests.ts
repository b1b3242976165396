// Digests of a body that are made while it passes: MD5 for the ETag, and the checksum that a caller
// asks for.
import { createHash } from "node:crypto";
import { startChecksum, type RunningChecksum } from "../../format/running-checksum.ts";
import type { ChecksumAlgorithm } from "../model/entry.ts";

/** What is known about a body when all of it has passed. */
export class BodyDigests {
  readonly #md5 = createHash("md5");
  readonly #checksum: RunningChecksum | undefined;
  #size = 0;

  constructor(algorithm: ChecksumAlgorithm | undefined) {
    this.#checksum = algorithm === undefined ? undefined : startChecksum(algorithm);
  }

  update(bytes: Uint8Array): void {
    this.#md5.update(bytes);
    this.#checksum?.update(bytes);
    this.#size += bytes.length;
  }

  get size(): number {
    return this.#size;
  }

  /** Called once, at the end. `md5` is in hex. */
  end(): { readonly md5: string; readonly checksum: string | undefined } {
    return { md5: this.#md5.digest("hex"), checksum: this.#checksum?.value() };
  }
}
