import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isHoldfastError } from "../errors.ts";
import { makeId } from "./id.ts";
import { checkName, findSlotNumber, slotName, slotNumberMax } from "./name.ts";

function refusalOf(name: string): unknown {
  try {
    checkName(name);
  } catch (error) {
    return error;
  }
  return undefined;
}

describe("checkName", () => {
  it.each(["a", "0", "orders", "till-3", "2026-08-01", "a.b_c-d", "a..b", "console", "com10", "x".repeat(120)])(
    "accepts %s",
    (name) => {
      expect(checkName(name)).toBe(name);
    },
  );

  it("accepts every id", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (random) => {
        expect(refusalOf(makeId(1, random))).toBe(undefined);
      }),
    );
  });

  it.each([
    ["", "no file system has an empty name"],
    [".", "it is the directory itself"],
    ["..", "it is the directory above"],
    [".hidden", "a listing may hide it"],
    ["-rf", "a command line would take it for an option"],
    ["_a", "it must begin with a letter or digit"],
    ["A", "HFS+, NTFS and SMB take it for a"],
    ["ümlaut", "HFS+ changes its bytes"],
    ["ı", "it folds to another letter"],
    ["a/b", "it is two names"],
    ["a\\b", "it is two names on Windows"],
    ["a:b", "it is a stream on NTFS"],
    ["a b", "only the listed characters are allowed"],
    ["a ", "Windows drops it"],
    ["a.", "Windows drops it"],
    ["a*", "Windows refuses it"],
    ["a?", "Windows refuses it"],
    ["a|b", "Windows refuses it"],
    ['a"b', "Windows refuses it"],
    ["a<b", "Windows refuses it"],
    ["a~1", "it may be a short name of another"],
    ["a\nb", "it breaks lines"],
    ["a\n", "it breaks lines"],
    ["a\0", "it ends the name"],
    ["a\u007f", "it is a control character"],
    ["con", "it is a device"],
    ["nul.txt", "it is a device with any extension"],
    ["aux.tar.gz", "it is a device with any extension"],
    ["prn", "it is a device"],
    ["com1", "it is a device"],
    ["lpt9.log", "it is a device"],
    ["x".repeat(121), "eCryptfs allows 143 bytes, and we add suffixes"],
  ])("refuses %j with INVALID_NAME, because %s", (name) => {
    const error = refusalOf(name);
    expect(isHoldfastError(error, "INVALID_NAME")).toBe(true);
    expect(error).toMatchObject({ name, action: "fix-caller" });
  });

  it("says what is wrong, and keeps the message short however long the name is", () => {
    expect((refusalOf("NUL") as Error).message).toContain('"NUL"');
    expect((refusalOf("x".repeat(1_000_000)) as Error).message.length).toBeLessThan(300);
  });

  it("lets through nothing but a plain name, whatever it is given", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (name) => {
        if (refusalOf(name) === undefined) expect(name).toMatch(/^[a-z0-9]([a-z0-9._-]*[a-z0-9_-])?$/);
      }),
    );
  });
});

describe("a slot name", () => {
  const slot = fc.integer({ min: 0, max: slotNumberMax });

  it("sorts as text as its number does, and tells it", () => {
    fc.assert(
      fc.property(slot, slot, (a, b) => {
        expect(slotName(a) < slotName(b)).toBe(a < b);
        expect(findSlotNumber(slotName(a))).toBe(a);
      }),
    );
    expect(slotName(slotNumberMax)).toBe("9999999999");
    expect(slotName(0)).toBe("0000000000");
  });

  it.each([-1, 0.5, NaN, Infinity, slotNumberMax + 1])("is refused for %d", (number) => {
    expect(() => slotName(number)).toThrow(RangeError);
  });

  it.each([
    ...["", "1", "000000001", "00000000001", "0000000001.tmp", ".0000000001", "0000000001 ", "0000000001\n"],
    ...["-000000001", "+000000001", "0x00000001", "1e00000001", "000000000a", "٠٠٠٠٠٠٠٠٠١", "open", "Thumbs.db"],
  ])("is not %j, which is a foreign name", (name) => {
    expect(findSlotNumber(name)).toBe(undefined);
  });

  it("is only what slotName makes", () => {
    const name = fc.oneof(
      fc.string(),
      fc.string({ unit: fc.constantFrom(...Array.from("0123456789. -")), maxLength: 12 }),
    );
    fc.assert(
      fc.property(name, (text) => {
        const number = findSlotNumber(text);
        if (number !== undefined) expect(slotName(number)).toBe(text);
      }),
    );
  });
});
