import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checksumOf } from "./checksum.ts";

describe("a checksum", () => {
  it("is the common CRC-32, in eight lower-case hex digits", () => {
    // The check value of the catalogue of parametrised CRC algorithms.
    expect(checksumOf("123456789")).toBe("cbf43926");
    expect(checksumOf("")).toBe("00000000");
    expect(checksumOf("a")).toBe("e8b7be43");
  });

  it("of a text is that of its UTF-8 bytes, and has always eight digits", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        expect(checksumOf(text)).toBe(checksumOf(Buffer.from(text)));
        expect(checksumOf(text)).toMatch(/^[0-9a-f]{8}$/);
      }),
    );
  });

  it("changes if any single bit changes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 64 }), fc.nat(), (bytes, at) => {
        const bit = at % (bytes.length * 8);
        const changed = Uint8Array.from(bytes);
        changed[bit >> 3]! ^= 1 << (bit & 7);
        expect(checksumOf(changed)).not.toBe(checksumOf(bytes));
      }),
    );
  });
});
