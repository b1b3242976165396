// Computes the checksum of a multipart object from the checksums of its parts, without reading any
// bytes again.
import { startChecksum } from "../../format/running-checksum.ts";
import type { Checksum, ChecksumAlgorithm } from "../model/entry.ts";
import type { JoinedKind, UploadPartRecord } from "./upload-records.ts";

/**
 * Throws TypeError for a hash over the whole object: it cannot be computed from the hashes of the
 * parts.
 */
export function checkJoinable(call: string, { algorithm, type }: Omit<Checksum, "value">): void {
  if (type !== undefined && type !== "full" && type !== "composite")
    throw new TypeError(`${call}: the type of a checksum is "full" or "composite".`);
  if (type === "full" && polynomials[algorithm] === undefined)
    throw new TypeError(
      `${call}: ${algorithm} of the object cannot be computed from that of its parts. Use "composite".`,
    );
}

/** Returns undefined if a part has no checksum of this algorithm. */
export function joinChecksums(
  { algorithm, type }: JoinedKind,
  parts: readonly UploadPartRecord[],
): Checksum | undefined {
  const values: Buffer[] = [];
  for (const { checksum } of parts) {
    if (checksum?.algorithm !== algorithm) return undefined;
    values.push(Buffer.from(checksum.value, "base64"));
  }
  if (type === "composite") return { algorithm, type, value: `${digestOf(algorithm, values)}-${parts.length}` };
  return { algorithm, type, value: joinCrcs(algorithm, values, parts) };
}

/** The caller may pass a composite checksum without the number of parts at its end. */
export function isSameChecksum(one: Checksum, other: Checksum): boolean {
  return (
    one.algorithm === other.algorithm &&
    (one.value === other.value || (other.type === "composite" && one.value === other.value.replace(/-[0-9]+$/, "")))
  );
}

function digestOf(algorithm: ChecksumAlgorithm, values: readonly Uint8Array[]): string {
  const running = startChecksum(algorithm);
  running.update(Buffer.concat(values));
  return running.value();
}

/** The polynomials, in reflected bit order. */
const polynomials: Readonly<Partial<Record<ChecksumAlgorithm, { readonly bits: number; readonly value: bigint }>>> = {
  CRC32: { bits: 32, value: 0xedb88320n },
  CRC32C: { bits: 32, value: 0x82f63b78n },
  CRC64NVME: { bits: 64, value: 0x9a6c9329ac4bc9b5n },
};

/**
 * Combines CRCs: for each part, shifts the CRC of the parts before it by the length of the part,
 * then adds the CRC of the part.
 */
function joinCrcs(algorithm: ChecksumAlgorithm, values: readonly Buffer[], parts: readonly UploadPartRecord[]): string {
  const { bits, value: polynomial } = polynomials[algorithm] ?? { bits: 0, value: 0n };
  const shifts = new CrcShifts(bits, polynomial);
  let joined = 0n;
  for (const [index, value] of values.entries())
    joined = shifts.over(joined, parts[index]?.size ?? 0) ^ BigInt(`0x${value.toString("hex")}`);
  return Buffer.from(joined.toString(16).padStart(bits / 4, "0"), "hex").toString("base64");
}

/** A matrix over GF(2), as columns. */
type Matrix = readonly bigint[];

/**
 * Computes the effect of appending zero bytes to a CRC: one matrix per power of two of their
 * number.
 */
class CrcShifts {
  readonly #powers: Matrix[];

  constructor(bits: number, polynomial: bigint) {
    const oneBit: Matrix = Array.from({ length: bits }, (_, column) =>
      column === 0 ? polynomial : 1n << BigInt(column - 1),
    );
    const oneByte = squared(squared(squared(oneBit)));
    this.#powers = [oneByte];
  }

  over(crc: bigint, bytes: number): bigint {
    let moved = crc;
    for (let left = bytes, power = 0; left > 0; left = Math.floor(left / 2), power++)
      if (left % 2 === 1) moved = applied(this.#power(power), moved);
    return moved;
  }

  #power(index: number): Matrix {
    while (this.#powers.length <= index) this.#powers.push(squared(this.#powers.at(-1) ?? []));
    return this.#powers[index] ?? [];
  }
}

function applied(matrix: Matrix, vector: bigint): bigint {
  let sum = 0n;
  for (let left = vector, column = 0; left > 0n; left >>= 1n, column++) if (left & 1n) sum ^= matrix[column] ?? 0n;
  return sum;
}

function squared(matrix: Matrix): Matrix {
  return matrix.map((column) => applied(matrix, column));
}
