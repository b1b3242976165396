import * as fc from "fast-check";
import { posix, win32 } from "node:path";
import { describe, expect, it } from "vitest";
import { isHoldfastError } from "../errors.ts";
import { isWithin, pathKey } from "./path-key.ts";

const sensitive = { caseSensitive: true };
const insensitive = { caseSensitive: false };
const both = [sensitive, insensitive];

/** Undefined if the path is refused, which must be with INVALID_PATH. */
function findKey(path: string, options = sensitive): string | undefined {
  try {
    return pathKey(path, options);
  } catch (error) {
    expect(isHoldfastError(error, "INVALID_PATH")).toBe(true);
    expect(error).toMatchObject({ path, action: "fix-caller" });
    return undefined;
  }
}

// Letters with two cases, two spellings or a longer fold, and the characters of paths.
const letter = fc.constantFrom(
  ...Array.from(
    "aAbzZ019 .-_:/\\ßẞſsSKÅåéÉİıiIΣσςΑαΐϴθǅǆŉﬃÖ\u0301\u0307\u0308\u0323\u0345ᾳᾼ가각가字😀\u212a\u212b\u0958",
  ),
);
const segment = fc.oneof(
  fc.string({ unit: letter, maxLength: 12 }),
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.constantFrom(".", "..", "", "c:", "C:x", "\u212a:"),
);
const path = fc
  .array(segment, { maxLength: 6 })
  .chain((segments) => fc.constantFrom("/", "\\", "//", "/./").map((between) => segments.join(between)));

describe("a path key", () => {
  it("is its own key", () => {
    fc.assert(
      fc.property(path, fc.constantFrom(...both), (spelled, options) => {
        const key = findKey(spelled, options);
        if (key !== undefined) expect(pathKey(key, options)).toBe(key);
      }),
      { numRuns: 2000 },
    );
  });

  it("never leaves the root on any platform", () => {
    fc.assert(
      fc.property(path, fc.constantFrom(...both), (spelled, options) => {
        const key = findKey(spelled, options);
        if (key === undefined) return;
        expect(isWithin(posix.resolve("/root", key), "/root")).toBe(true);
        expect(win32.relative("D:\\root", win32.resolve("D:\\root", key))).not.toMatch(/^\.\.($|\\)|^[A-Z]:/i);
        expect(key.split("/")).not.toContain("..");
        expect(key).not.toMatch(/^\/|\/$|\/\/|\0/);
      }),
      { numRuns: 2000 },
    );
  });

  it("is the same for the composed and the decomposed form of a name", () => {
    fc.assert(
      fc.property(path, fc.constantFrom(...both), (spelled, options) => {
        const key = findKey(spelled, options);
        if (key === undefined) return;
        expect(pathKey(spelled.normalize("NFD"), options)).toBe(key);
        expect(pathKey(spelled.normalize("NFC"), options)).toBe(key);
      }),
      { numRuns: 2000 },
    );
  });

  it("is one for all spellings that a disk without case takes for one", () => {
    fc.assert(
      fc.property(path, (spelled) => {
        const key = findKey(spelled, insensitive);
        if (key === undefined) return;
        // In decomposed form: only there does the order of marks show which letter they belong to,
        // even if one of them becomes a letter.
        const decomposed = spelled.normalize("NFD");
        expect(pathKey(decomposed.toUpperCase(), insensitive)).toBe(key);
        expect(pathKey(decomposed.toLowerCase(), insensitive)).toBe(key);
        expect(pathKey(decomposed.toUpperCase().normalize("NFC"), insensitive)).toBe(key);
      }),
      { numRuns: 2000 },
    );
  });

  it("is one for every character and its other cases, alone and between letters", () => {
    const wrong: string[] = [];
    for (let code = 1; code < 0x110000; code++) {
      if (code >= 0xd800 && code < 0xe000) continue;
      const character = String.fromCodePoint(code);
      for (const other of new Set([character.toUpperCase(), character.toLowerCase()])) {
        if (other === character) continue;
        if (findKey(`x${character}x`, insensitive) !== findKey(`x${other}x`, insensitive)) wrong.push(character);
      }
    }
    expect(wrong).toEqual([]);
  });

  it.each([
    ["straße", "STRASSE", "Straße", "STRAẞE", "strasse"],
    ["İstanbul", "i̇stanbul", "I\u0307STANBUL"],
    ["ΟΔΟΣ", "οδος", "οδοσ"],
    ["ﬁle", "FILE", "file"],
    ["K", "k", "\u212a"],
    ["Å", "å", "\u212b", "A\u030a"],
    ["a/B", "A/b", "./A//B/", "x/../a\\b"],
  ])("folds %s and its other spellings to one", (...spellings) => {
    expect(new Set(spellings.map((each) => pathKey(each, insensitive))).size).toBe(1);
  });

  it("distinguishes case where the disk does", () => {
    expect(pathKey("a/B", sensitive)).toBe("a/B");
    expect(pathKey("straße", sensitive)).not.toBe(pathKey("STRASSE", sensitive));
  });

  it.each([
    ["", ""],
    [".", ""],
    ["./", ""],
    ["a/..", ""],
    ["a", "a"],
    ["a/b/../c", "a/c"],
    ["a\\b", "a/b"],
    ["a//b///", "a/b"],
    ["...", "..."],
    ["a/.b", "a/.b"],
    ["e\u0301", "\u00e9"],
    ["-rf", "-rf"],
    ["ab:c", "ab:c"],
    ["a/c:", "a/c:"],
  ])("of %j is %j", (spelled, key) => {
    expect(pathKey(spelled, sensitive)).toBe(key);
  });

  it.each([
    ["..", "out of the root"],
    ["../a", "out of the root"],
    ["a/../../b", "out of the root"],
    ["a\\..\\..\\b", "out of the root"],
    ["./..", "out of the root"],
    ["/a", "relative"],
    ["\\a", "relative"],
    ["//server/share", "relative"],
    ["\\\\server\\share", "relative"],
    ["c:/a", "relative"],
    ["C:a", "relative"],
    ["C:/../a", "relative"],
    ["./C:/a", "relative"],
    ["a/../C:/a", "relative"],
    ["\u212a:/a", "relative"],
    ["a\0b", "NUL"],
    ["\0", "NUL"],
    ["a/\ud800", "half a character"],
    ["\udc00a", "half a character"],
    ["x".repeat(256), "255 bytes"],
    ["ü".repeat(128), "255 bytes"],
    ["a/".repeat(3000), "4096 characters"],
  ])("is refused for what leads elsewhere or is no path (%#): %s", (spelled, why) => {
    for (const options of both) {
      expect(findKey(spelled, options)).toBe(undefined);
      expect(() => pathKey(spelled, options)).toThrow(why);
    }
  });

  it("is refused on a disk without case for what becomes a drive there, though `..` takes it back", () => {
    expect(pathKey("ı:/..", sensitive)).toBe("");
    expect(() => pathKey("ı:/..", insensitive)).toThrow("relative");
  });

  it("accepts names as long as a file system allows", () => {
    expect(pathKey("x".repeat(255), sensitive)).toHaveLength(255);
    expect(pathKey(`${"a/".repeat(2047)}a`, sensitive)).toHaveLength(4095);
  });

  it("does not repeat an overlong path in the error message", () => {
    expect(() => pathKey(`/${"x".repeat(1_000_000)}`, sensitive)).toThrow(/^.{1,400}$/);
  });
});

describe("isWithin", () => {
  it("is true for the path itself and what lies below, by whole names only", () => {
    expect(isWithin("a", "")).toBe(true);
    expect(isWithin("", "")).toBe(true);
    expect(isWithin("a/b", "a")).toBe(true);
    expect(isWithin("a", "a")).toBe(true);
    expect(isWithin("ab", "a")).toBe(false);
    expect(isWithin("a", "a/b")).toBe(false);
    expect(isWithin("", "a")).toBe(false);
    // Names of internal locks are in no tree.
    expect(isWithin("/consumers/mailer", "")).toBe(false);
    expect(isWithin("/consumers/mailer", "/consumers")).toBe(true);
  });

  it("holds for the keys of a directory and of a name in it", () => {
    const name = fc.string({ unit: letter, maxLength: 8 }).filter((text) => !/[/\\:]|^\.*$/.test(text));
    fc.assert(
      fc.property(name, name, fc.constantFrom(...both), (outer, inner, options) => {
        const key = findKey(outer, options);
        const below = findKey(`${outer}/${inner}`, options);
        if (key !== undefined && below !== undefined) expect(isWithin(below, key)).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });
});
