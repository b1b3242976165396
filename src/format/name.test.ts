import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isHoldfastError } from "../errors.ts";
import { makeId } from "./id.ts";
import {
  fileNameOf,
  findNameOf,
  findSlotNumber,
  slotName,
  slotNumberMax,
  findPortableFault,
  findUnportable,
} from "./name.ts";

function refusalOf(name: string): unknown {
  try {
    fileNameOf(name);
  } catch (error) {
    return error;
  }
  return undefined;
}

describe("a file name", () => {
  it.each(["a", "0", "orders", "till-3", "2026-08-01", "a.b_c-d", "a..b", "console", "com10", "x".repeat(120)])(
    "of %s is the name itself",
    (name) => {
      expect(fileNameOf(name)).toBe(name);
    },
  );

  it("equals the id for an id", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (random) => {
        expect(fileNameOf(makeId(1, random))).toBe(makeId(1, random));
      }),
    );
  });

  it.each([
    [".", "=2e", "it is the directory itself"],
    ["..", "=2e=2e", "it is the directory above"],
    [".hidden", "=2ehidden", "a listing may hide it"],
    ["-rf", "=2drf", "a command line would take it for an option"],
    ["_a", "=5fa", "it must begin with a letter or digit"],
    ["sendMails", "send=4dails", "HFS+, NTFS and SMB take it for sendmails"],
    ["ümlaut", "=c3=bcmlaut", "HFS+ changes its bytes"],
    ["ı", "=c4=b1", "it folds to another letter"],
    ["a/b", "a=2fb", "it is two names"],
    ["a\\b", "a=5cb", "it is two names on Windows"],
    ["a:b", "a=3ab", "it is a stream on NTFS"],
    ["a ", "a=20", "Windows drops it"],
    ["a.", "a=2e", "Windows drops it"],
    ["a*", "a=2a", "Windows refuses it"],
    ["a~1", "a=7e1", "it may be a short name of another"],
    ["a=b", "a=3db", "it would look written out"],
    ["a\nb", "a=0ab", "it breaks lines"],
    ["a\0", "a=00", "it ends the name"],
    ["con", "=63on", "it is a device"],
    ["nul.txt", "=6eul.txt", "it is a device with any extension"],
    ["lpt9.log", "=6cpt9.log", "it is a device"],
  ])("of %j is %s, because %s", (name, fileName) => {
    expect(fileNameOf(name)).toBe(fileName);
  });

  it.each(["", "x".repeat(121), "X".repeat(41), "\ud800"])("of %j is refused with INVALID_NAME", (name) => {
    const error = refusalOf(name);
    expect(isHoldfastError(error, "INVALID_NAME")).toBe(true);
    expect(error).toMatchObject({ name: "HoldfastError", invalidName: name, action: "fix-caller" });
  });

  it("that is refused has a short error message, however long the name is", () => {
    expect((refusalOf("x".repeat(1_000_000)) as Error).message.length).toBeLessThan(300);
  });

  it("has only safe characters, and differs for different names", () => {
    const any = fc.string({ unit: "binary", minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(any, any, (one, other) => {
        fc.pre(refusalOf(one) === undefined && refusalOf(other) === undefined);
        expect(fileNameOf(one)).toMatch(/^[a-z0-9=]([a-z0-9._=-]*[a-z0-9_-])?$/);
        expect(fileNameOf(one) === fileNameOf(other)).toBe(one === other);
      }),
    );
  });
});

describe("a slot name", () => {
  const slot = fc.integer({ min: 0, max: slotNumberMax });

  it("sorts as text like its number, and decodes to it", () => {
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

  it("is recognized only if slotName made it", () => {
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

it("a name is found again from its file name, and a foreign file name gives none", () => {
  const name = fc.string({ unit: "binary", minLength: 1, maxLength: 10 });
  fc.assert(fc.property(name, (text) => findNameOf(fileNameOf(text)) === text));
  for (const foreign of ["", "Mail", "=", "=4", "=ff", "a.", "con", "=61", "Z".repeat(100), "=".repeat(60), "ä"])
    expect(findNameOf(foreign)).toBeUndefined();
});

describe("a portable name", () => {
  it.each([
    ...["a?b", "star*", "a:b", "file.txt::$DATA", "a|b", "a<b", "a>b", 'say "hi"', "tab\there", "\u007f", "a\\b"],
    ...["end.", "end ", "...", "file.txt. "],
    ...["CON", "nul", "aux.txt", "Com1.log.gz", "lpt9", "com¹", "prn .txt", "CONIN$", "conout$"],
  ])("is not %j", (name) => expect(findPortableFault(name)).toBeTypeOf("string"));

  it.each([
    ...["a", "a b.txt", ".hidden", "..a", "com", "com10", "console", "auxiliary.txt", "null", "nul-", "LONGNA~1.TXT"],
    ...["Straße", "日本語.md", "a'b,c;d=e+f[g](h){i}~!@#$%^&"],
  ])("is %j", (name) => expect(findPortableFault(name)).toBe(undefined));

  it("is found in a path, where every name counts", () => {
    expect(findUnportable("a/b/c.txt")).toBe(undefined);
    expect(findUnportable("a/nul/c.txt")).toMatchObject({ name: "nul" });
    expect(findUnportable("a./b")).toMatchObject({ name: "a." });
  });
});
