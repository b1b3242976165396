// Crc: a reflected cyclic redundancy check of 32 or 64 bits (CRC32C, CRC64NVME) over a body that
// arrives in pieces.
//
// WebAssembly computes it, because JavaScript has no fast 64-bit integers: sixteen bytes at a time, with
// one table for each of the sixteen positions ("slicing by sixteen"). All Crcs of a polynomial share one instance: each
// call receives the state and returns the new one, so pieces of several bodies may arrive in any order.

const positions = 16;
const tableBytes = 256 * 8;
const piecesAt = positions * tableBytes;
const pieceBytesMax = 64 * 1024;

/** Continues the check `state` over the bytes from `at` up to `end` in memory. */
type Advance = (state: bigint, at: number, end: number) => bigint;

interface Engine {
  readonly advance: Advance;
  /** The part of the memory into which pieces are copied. */
  readonly piece: Uint8Array;
}

const engines = new Map<bigint, Engine>();

/** The part of `WebAssembly` that this file uses: Node's types leave it to those of the browser. */
interface Assembly {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => {
    readonly exports: { readonly memory: { readonly buffer: ArrayBuffer }; readonly advance: Advance };
  };
}

export class Crc {
  readonly #bits: 32 | 64;
  readonly #engine: Engine;
  #state: bigint;

  /** `polynomial` is reflected: its lowest term is the highest bit. */
  constructor(bits: 32 | 64, polynomial: bigint) {
    this.#bits = bits;
    this.#engine = getEngine(polynomial);
    this.#state = BigInt.asUintN(bits, -1n);
  }

  update(bytes: Uint8Array): void {
    const { advance, piece } = this.#engine;
    for (let at = 0; at < bytes.length; at += pieceBytesMax) {
      const some = bytes.subarray(at, at + pieceBytesMax);
      piece.set(some);
      this.#state = advance(this.#state, piecesAt, piecesAt + some.length);
    }
  }

  /** Returns the bytes in Base64, most significant first, as S3 writes them. */
  value(): string {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64BE(BigInt.asUintN(this.#bits, ~this.#state));
    return bytes.toString("base64", 8 - this.#bits / 8);
  }
}

function getEngine(polynomial: bigint): Engine {
  const found = engines.get(polynomial);
  if (found !== undefined) return found;
  const { Module, Instance } = (globalThis as unknown as { readonly WebAssembly: Assembly }).WebAssembly;
  const { memory, advance } = new Instance(new Module(assemble())).exports;
  fillTables(new BigUint64Array(memory.buffer, 0, positions * 256), polynomial);
  const engine = { advance, piece: new Uint8Array(memory.buffer, piecesAt, pieceBytesMax) };
  engines.set(polynomial, engine);
  return engine;
}

/** Table k holds the contribution of a byte that is followed by k more bytes. */
function fillTables(tables: BigUint64Array, polynomial: bigint): void {
  for (let byte = 0; byte < 256; byte++) {
    let value = BigInt(byte);
    for (let bit = 0; bit < 8; bit++) value = value & 1n ? (value >> 1n) ^ polynomial : value >> 1n;
    tables[byte] = value;
  }
  for (let at = 256; at < tables.length; at++) {
    const before = tables[at - 256]!;
    tables[at] = (before >> 8n) ^ tables[Number(before & 0xffn)]!;
  }
}

// The few instructions needed, by their names in the specification.
const i32 = 0x7f;
const i64 = 0x7e;
const block = [0x02, 0x40];
const loop = [0x03, 0x40];
const end = [0x0b];
const repeat = [0x0c, 0];
const leaveIf = [0x0d, 1];
const i32Add = [0x6a];
const i32GreaterUnsigned = [0x4b];
const i32GreaterOrEqualUnsigned = [0x4f];
const i64Xor = [0x85];
const i64ShiftRightUnsigned = [0x88];
const i64Load = (offset: number): number[] => [0x29, 3, ...unsigned(offset)];
const i64LoadByte = [0x31, 0, 0];
const i32Const = (value: number): number[] => [0x41, ...signed(value)];
const i64Const = (value: number): number[] => [0x42, ...signed(value)];
const get = (local: number): number[] => [0x20, local];
const set = (local: number): number[] => [0x21, local];

/** Numbers are written in groups of seven bits, the lowest first (LEB128). */
function unsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
}

/** The same for a signed number that is not negative: its sign bit must be 0. */
function signed(value: number): number[] {
  return value < 0x40 ? [value] : [(value & 0x7f) | 0x80, ...signed(value >>> 7)];
}

/** Returns a module with one function, `advance`, and a memory of two pages: the tables, then a piece. */
function assemble(): Uint8Array {
  const [state, at, last, word, next] = [0, 1, 2, 3, 4];
  /** Loads the entry of table k for the byte at bit `shift` of the 64-bit value on the stack. */
  const look = (shift: number, k: number): number[] => [
    ...i64Const(shift),
    ...i64ShiftRightUnsigned,
    // i32.wrap_i64, then i32.and and i32.shl: the low byte, times eight.
    ...[0xa7, ...i32Const(0xff), 0x71, ...i32Const(3), 0x74],
    ...i64Load(k * tableBytes),
  ];
  /** Combines the entries for the eight bytes of `local`; `k` is the table of the first of them. */
  const lookAll = (local: number, k: number): number[] =>
    Array.from({ length: 8 }, (_, index) => [
      ...[...get(local), ...look(index * 8, k - index)],
      ...(index > 0 ? i64Xor : []),
    ]).flat();
  const code = [
    // While sixteen bytes are left: word = state ^ the first eight, next = the others; state = the entries for all of them.
    ...[...block, ...loop, ...get(at), ...i32Const(16), ...i32Add, ...get(last), ...i32GreaterUnsigned, ...leaveIf],
    ...[...get(state), ...get(at), ...i64Load(0), ...i64Xor, ...set(word), ...get(at), ...i64Load(8), ...set(next)],
    ...[...lookAll(next, 7), ...lookAll(word, 15), ...i64Xor],
    ...[...set(state), ...get(at), ...i32Const(16), ...i32Add, ...set(at), ...repeat, ...end, ...end],
    // The remaining bytes, one at a time: state = entry for (state ^ byte) ^ (state >> 8).
    ...[...block, ...loop, ...get(at), ...get(last), ...i32GreaterOrEqualUnsigned, ...leaveIf],
    ...[...get(state), ...get(at), ...i64LoadByte, ...i64Xor, ...look(0, 0)],
    ...[...get(state), ...i64Const(8), ...i64ShiftRightUnsigned, ...i64Xor, ...set(state)],
    ...[...get(at), ...i32Const(1), ...i32Add, ...set(at), ...repeat, ...end, ...end],
    ...[...get(state), ...end],
  ];
  const sized = (bytes: readonly number[]): number[] => [...unsigned(bytes.length), ...bytes];
  const name = (text: string): number[] => sized([...Buffer.from(text)]);
  const section = (id: number, ...entries: readonly number[][]): number[] => [
    id,
    ...sized([...unsigned(entries.length), ...entries.flat()]),
  ];
  return Uint8Array.from([
    ...[0x00, ...Buffer.from("asm"), 1, 0, 0, 0],
    ...section(1, [0x60, ...sized([i64, i32, i32]), ...sized([i64])]),
    ...section(3, [0]),
    ...section(5, [0, 2]),
    ...section(7, [...name("memory"), 2, 0], [...name("advance"), 0, 0]),
    ...section(10, sized([1, 2, i64, ...code])),
  ]);
}
