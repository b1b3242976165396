import { describe, expect, expectTypeOf, it } from "vitest";
import type * as errors from "./errors.ts";
import { errorCodes, HoldfastError, holdfastError, isHoldfastError } from "./errors.ts";

const actions = ["retry", "reopen", "fix-caller", "fix-data", "report"];

/** Imports the same module again, like another copy of the package in one process. */
async function importCopy(name: string): Promise<typeof errors> {
  return (await import(`${new URL("./errors.ts", import.meta.url).href}?copy=${name}`)) as typeof errors;
}

describe("a HoldfastError", () => {
  it("of every code has an action, its name and its message", () => {
    expect(errorCodes.length).toBeGreaterThan(30);
    expect(new Set(errorCodes).size).toBe(errorCodes.length);
    for (const code of errorCodes) {
      const error = new HoldfastError(code, "what happened", {});
      expect(actions).toContain(error.action);
      expect(error).toMatchObject({ name: "HoldfastError", code, message: "what happened" });
      expect(code).toMatch(/^[A-Z]+(_[A-Z]+)*$/);
    }
  });

  it("is an Error with a stack that begins where it was made", () => {
    const error = holdfastError("CLOSED", "closed", {});
    expect(error).toBeInstanceOf(Error);
    expect(error.stack).toContain("errors.test.ts");
  });

  it("has the facts of its code as its own properties, and its cause", () => {
    const cause = new Error("below");
    const error = holdfastError("WRONG_STORE", "wrong", { path: "/a", expected: "1", found: "2" }, cause);
    expect(error).toMatchObject({ path: "/a", expected: "1", found: "2", cause });
  });

  it("keeps its own name, whatever was wrong: INVALID_NAME once put the bad name in its place", () => {
    type KeysOfEach<T> = T extends unknown ? keyof T : never;
    expectTypeOf<KeysOfEach<errors.ErrorFacts[errors.ErrorCode]> & keyof HoldfastError>().toBeNever();
    const error = holdfastError("INVALID_NAME", "The name is empty.", { invalidName: "" });
    expect(String(error)).toBe("HoldfastError: The name is empty.");
    expect(error.toJSON()).toMatchObject({ name: "HoldfastError", invalidName: "" });
  });

  it("has no cause at all when it was given none", () => {
    expect("cause" in holdfastError("CLOSED", "closed", {})).toBe(false);
    expect("cause" in holdfastError("CLOSED", "closed", {}, undefined)).toBe(false);
    expect("cause" in holdfastError("CLOSED", "closed", {}, null)).toBe(true);
  });
});

describe("toJSON", () => {
  it("carries the facts beside code, action and message, and nothing that is undefined", () => {
    const error = holdfastError("LOCK_TIMEOUT", "too late", { path: "/a", waitedMs: 5, blockedBy: [] }, new Error("x"));
    const json = {
      name: "HoldfastError",
      code: "LOCK_TIMEOUT",
      action: "retry",
      message: "too late",
      path: "/a",
      waitedMs: 5,
      blockedBy: [],
    };
    expect(error.toJSON()).toStrictEqual(json);
    expect(JSON.parse(JSON.stringify(error))).toStrictEqual(json);
    expect(JSON.parse(JSON.stringify({ error }))).toStrictEqual({ error: json });
  });

  it("leaves out a fact that is optional and was not given", () => {
    expect(Object.keys(holdfastError("IO_ERROR", "failed", { path: "/a" }).toJSON())).not.toContain("errno");
    for (const code of errorCodes)
      expect(Object.values(new HoldfastError(code, "", {}).toJSON())).not.toContain(undefined);
  });
});

describe("isHoldfastError", () => {
  it("knows the errors of another copy of the package, which instanceof does not", async () => {
    const [first, second] = [await importCopy("1"), await importCopy("2")];
    expect(first.HoldfastError).not.toBe(second.HoldfastError);
    const error = first.holdfastError("CLOSED", "closed", {});
    expect(error instanceof second.HoldfastError).toBe(false);
    expect(second.isHoldfastError(error)).toBe(true);
    expect(isHoldfastError(error, "CLOSED")).toBe(true);
    expect(first.isHoldfastError(holdfastError("CLOSED", "closed", {}))).toBe(true);
  });

  it("with codes is true for those only", () => {
    const error: unknown = holdfastError("CORRUPT", "torn", { path: "/a" });
    expect(isHoldfastError(error)).toBe(true);
    expect(isHoldfastError(error, "CORRUPT")).toBe(true);
    expect(isHoldfastError(error, "CLOSED", "CORRUPT")).toBe(true);
    expect(isHoldfastError(error, "CLOSED")).toBe(false);
  });

  it("narrows to the facts of the codes that it was asked for", () => {
    const error: unknown = holdfastError("WRONG_STORE", "wrong", { path: "/a", expected: "1", found: "2" });
    if (!isHoldfastError(error, "WRONG_STORE")) throw new Error("not recognised");
    expectTypeOf(error.expected).toBeString();
    expectTypeOf(error.code).toEqualTypeOf<"WRONG_STORE">();
    expect(error.found).toBe("2");
    // One check by code distinguishes them.
    const either = error as unknown;
    if (isHoldfastError(either, "WRONG_STORE", "TOO_LARGE") && either.code === "TOO_LARGE")
      expectTypeOf(either.limit).toBeNumber();
  });

  it.each([
    [undefined],
    [null],
    ["CLOSED"],
    [5],
    [new Error("x")],
    [Object.assign(new Error("x"), { code: "CLOSED", action: "reopen", name: "HoldfastError" })],
    [{ code: "CLOSED" }],
    [() => undefined],
  ])("is false for anything else (%#)", (other) => {
    expect(isHoldfastError(other)).toBe(false);
    expect(isHoldfastError(other, "CLOSED")).toBe(false);
  });

  it("leaves no trace of its mark in what is printed or copied", () => {
    const error = holdfastError("CLOSED", "closed", {});
    expect(Object.getOwnPropertySymbols({ ...error })).toEqual([]);
  });
});
