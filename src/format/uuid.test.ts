import { expect, it } from "vitest";
import { makeUuid } from "./uuid.ts";

it("is a UUID of version 7 that begins with the time", () => {
  expect(makeUuid(0x0123_4567_89ab, new Uint8Array(16).fill(0xff))).toBe("01234567-89ab-7fff-bfff-ffffffffffff");
  expect(makeUuid(0, new Uint8Array(16))).toBe("00000000-0000-7000-8000-000000000000");
});

it("takes sixteen random bytes and no other number", () => {
  expect(() => makeUuid(0, new Uint8Array(15))).toThrow(RangeError);
});
