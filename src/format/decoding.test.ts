import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countOf, flagOf, objectOf, textOf, wordOf } from "./decoding.ts";

const words = ["os", "table"] as const;

describe("a narrow reader", () => {
  it("returns a value of its type unchanged", () => {
    const fields = { a: 1 };
    expect(objectOf(fields)).toBe(fields);
    expect(textOf("")).toBe("");
    expect(countOf(0)).toBe(0);
    expect(countOf(Number.MAX_SAFE_INTEGER)).toBe(Number.MAX_SAFE_INTEGER);
    expect([flagOf(true), flagOf(false)]).toEqual([true, false]);
    expect(wordOf("table", words)).toBe("table");
  });

  it.each([
    ["objectOf", objectOf, [undefined, null, 5, "a", true, [], [1]]],
    ["textOf", textOf, [undefined, null, 5, {}, [], ["a"], true]],
    ["countOf", countOf, [undefined, null, "5", -1, 0.5, NaN, Infinity, 2 ** 53, 5n, {}, [5], true]],
    ["flagOf", flagOf, [undefined, null, 0, 1, "", "true", {}, []]],
    ["wordOf", (value: unknown) => wordOf(value, words), [undefined, null, "", "OS", "os ", "toString", 0, ["os"], {}]],
  ])("%s throws a TypeError for everything else", (_, read, values) => {
    for (const value of values) expect(() => read(value)).toThrow(TypeError);
  });

  it("never returns a value of another type", () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        for (const [read, type] of [
          [textOf, "string"],
          [countOf, "number"],
          [objectOf, "object"],
        ] as const) {
          try {
            expect(typeof read(value)).toBe(type);
          } catch (error) {
            expect(error).toBeInstanceOf(TypeError);
          }
        }
      }),
    );
  });
});
