// RunningDigests hashes a body while it streams through, each byte once: MD5 for the ETag, SHA-256
// for the record, and the checksum that the caller requested.
import { createHash } from "node:crypto";
import { startChecksum, type RunningChecksum } from "../../format/running-checksum.ts";
import type { BodySink } from "../../part/body.ts";
import type { Hasher, Hashing } from "../../ports/hasher.ts";
import type { ChecksumAlgorithm } from "../model/entry.ts";
import type { BodyDigests } from "../model/object.ts";

/** Below this size, handing the bytes to another thread costs more than it saves. */
const threadBytesMin = 8 * 1024 * 1024;
const gatheredBytes = 64 * 1024;
const hashes = ["md5", "sha256"] as const;
/**
 * Buffers of earlier bodies, used again: allocating new ones would make V8 collect its whole heap
 * more often.
 */
const spare: Uint8Array[] = [];
const spareMax = 16;

/**
 * Hashes on the caller's thread, or on a thread of `hasher` if the body is large. Call `end` or
 * `close` at the end.
 */
export class RunningDigests implements BodySink {
  readonly #algorithm: ChecksumAlgorithm | undefined;
  readonly #checksum: RunningChecksum | undefined;
  readonly #thread: Hashing | undefined;
  readonly #own = hashes.map((name) => createHash(name));
  #gathered: Uint8Array | undefined;
  #size = 0;

  /** `size` is the size of the body, if known. */
  constructor(algorithm: ChecksumAlgorithm | undefined, size = 0, hasher?: Hasher) {
    this.#algorithm = algorithm;
    if (algorithm !== undefined && algorithm !== "SHA256") this.#checksum = startChecksum(algorithm);
    if (size >= threadBytesMin) this.#thread = hasher?.start(hashes);
  }

  get isBuffered(): boolean {
    return this.#thread !== undefined;
  }

  buffer(): Uint8Array | Promise<Uint8Array> {
    return this.#thread?.block() ?? (this.#gathered ??= spare.pop() ?? new Uint8Array(gatheredBytes));
  }

  update(bytes: Uint8Array): void {
    if (this.#thread === undefined) for (const hash of this.#own) hash.update(bytes);
    else this.#thread.update(bytes.length);
    this.#checksum?.update(bytes);
    this.#size += bytes.length;
  }

  /** Call once, after the last byte. */
  async end(): Promise<BodyDigests> {
    this.#release();
    const found = (await this.#thread?.end()) ?? this.#own.map((hash) => hash.digest("hex"));
    const [md5 = "", sha256 = ""] = found;
    const digests = { size: this.#size, md5, sha256 };
    if (this.#algorithm === undefined) return digests;
    const value = this.#checksum?.value() ?? Buffer.from(sha256, "hex").toString("base64");
    return { ...digests, checksum: { algorithm: this.#algorithm, value, type: "full" } };
  }

  /** Releases the thread of a body that was not read to its end. */
  close(): void {
    this.#thread?.close();
    this.#release();
  }

  #release(): void {
    if (this.#gathered !== undefined && spare.length < spareMax) spare.push(this.#gathered);
    this.#gathered = undefined;
  }
}
