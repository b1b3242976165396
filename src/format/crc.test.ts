import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { crc32 } from "node:zlib";
import { Crc } from "./crc.ts";

const newCrc32c = (): Crc => new Crc(32, 0x82f6_3b78n);
const newCrc64Nvme = (): Crc => new Crc(64, 0x9a6c_9329_ac4b_c9b5n);

function hexOf(crc: Crc, ...pieces: readonly Uint8Array[]): string {
  for (const piece of pieces) crc.update(piece);
  return Buffer.from(crc.value(), "base64").toString("hex");
}

/** The definition: bit by bit. */
function slowCrc64(bytes: Uint8Array): string {
  let value = 0xffff_ffff_ffff_ffffn;
  for (const byte of bytes) {
    value ^= BigInt(byte);
    for (let bit = 0; bit < 8; bit++) value = value & 1n ? (value >> 1n) ^ 0x9a6c_9329_ac4b_c9b5n : value >> 1n;
  }
  return (value ^ 0xffff_ffff_ffff_ffffn).toString(16).padStart(16, "0");
}

describe("a CRC", () => {
  it("is the one that the catalogue of parametrised CRC algorithms has", () => {
    expect(hexOf(newCrc32c(), Buffer.from("123456789"))).toBe("e3069283");
    expect(hexOf(newCrc64Nvme(), Buffer.from("123456789"))).toBe("ae8b14860a799888");
    expect(hexOf(newCrc32c())).toBe("00000000");
    expect(hexOf(newCrc64Nvme())).toBe("0000000000000000");
  });

  it("of 64 bits is what it is bit by bit, however the bytes are cut", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(100), (bytes, cut) => {
        expect(hexOf(newCrc64Nvme(), bytes.subarray(0, cut), bytes.subarray(cut))).toBe(slowCrc64(bytes));
      }),
    );
  });

  it("of 32 bits is what zlib has for the polynomial of zlib, however the bytes are cut", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(100), (bytes, cut) => {
        const found = hexOf(new Crc(32, 0xedb8_8320n), bytes.subarray(0, cut), bytes.subarray(cut));
        expect(found).toBe(crc32(bytes).toString(16).padStart(8, "0"));
      }),
    );
  });
});
