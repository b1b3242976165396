import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isId, makeId, randomName } from "./id.ts";

const random16 = fc.uint8Array({ minLength: 16, maxLength: 16 });
// Ten digits of base 32 reach to the year 37 648.
const wallMs = fc.integer({ min: 0, max: 2 ** 50 - 1 });
const zeros = new Uint8Array(16);
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

describe("an id", () => {
  it("has always 36 digits, none of which another case or a careless reader could change", () => {
    fc.assert(
      fc.property(wallMs, random16, (ms, random) => {
        const id = makeId(ms, random);
        expect(id).toMatch(/^[0-9a-hjkmnp-tv-z]{36}$/);
        expect(id).toBe(id.toLowerCase());
        expect(isId(id)).toBe(true);
      }),
    );
  });

  it("sorts as text by the time of its making, whatever its random part", () => {
    fc.assert(
      fc.property(wallMs, wallMs, random16, random16, (a, b, first, second) => {
        if (a !== b) expect(Math.sign(a - b)).toBe(compare(makeId(a, first), makeId(b, second)));
      }),
    );
  });

  it("differs whenever one random bit does, also at one and the same millisecond", () => {
    const ids = new Set([makeId(1, zeros)]);
    for (let bit = 0; bit < 128; bit++) {
      const random = zeros.slice();
      random[bit >> 3] = 1 << (bit & 7);
      ids.add(makeId(1, random));
    }
    expect(ids.size).toBe(129);
    fc.assert(
      fc.property(random16, random16, (a, b) => {
        expect(makeId(7, a) === makeId(7, b)).toBe(Buffer.compare(a, b) === 0);
      }),
    );
  });

  it("is made also when the clock says nonsense: only the random part must be right", () => {
    for (const ms of [-1, -Infinity, Infinity, NaN, 0.5, Number.MAX_SAFE_INTEGER, 2 ** 60])
      expect(isId(makeId(ms, zeros))).toBe(true);
    expect(makeId(-1, zeros)).toBe(makeId(0, zeros));
    expect(makeId(1.9, zeros)).toBe(makeId(1, zeros));
  });

  it("never changes its spelling, because it is on disk", () => {
    const random = Uint8Array.from({ length: 16 }, (_, i) => i * 17);
    expect(makeId(Date.UTC(2026, 7, 1, 12), random)).toBe("01kyyk41g0008j4ct4ank7f24snaxwsqfezw");
  });

  it.each([0, 15, 17, 32])("is refused to be made of %d random bytes", (length) => {
    expect(() => makeId(0, new Uint8Array(length))).toThrow(RangeError);
  });
});

describe("isId", () => {
  const id = makeId(1, zeros);

  it.each([
    ["", "nothing"],
    [id.slice(1), "one digit short"],
    [`${id}0`, "one digit more"],
    [id.toUpperCase().replace("0", "A"), "upper case"],
    [`${id.slice(0, -1)}i`, "a letter that is no digit"],
    [`${id}\n`, "a line end"],
    [`../${id.slice(3)}`, "a way out of the directory"],
  ])("is false for %j: %s", (text) => {
    expect(isId(text)).toBe(false);
  });
});

describe("a random name", () => {
  it("gives every byte sequence of one length a name of its own, of one length", () => {
    fc.assert(
      fc.property(random16, random16, (a, b) => {
        expect(randomName(a)).toMatch(/^[0-9a-hjkmnp-tv-z]{26}$/);
        expect(randomName(a) === randomName(b)).toBe(Buffer.compare(a, b) === 0);
      }),
    );
  });
});
