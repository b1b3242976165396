import { describe, expect, test } from "vitest";
import { Ledger, type Won } from "./ledger.ts";

const ada = (count: number, number: number): Won => ({ name: "ada", count, number });
const bob = (count: number, number: number): Won => ({ name: "bob", count, number });

function violationsOf(
  acknowledged: readonly Won[],
  found: {
    readonly state?: Record<string, number>;
    readonly unswept?: readonly string[];
    readonly wrong?: readonly string[];
  } = {},
  unknown: Record<string, number> = {},
): readonly string[] {
  const ledger = new Ledger();
  for (const won of acknowledged) ledger.note(won);
  const { state = { ada: 2, bob: 1 }, unswept = [], wrong = [] } = found;
  ledger.audit({ kind: "found", state, unswept, wrong, epochs: 0 }, ["ada", "bob"], unknown);
  return ledger.violations;
}

const sound = [ada(1, 1), bob(1, 2), ada(2, 3)];

describe("the ledger of a torture", () => {
  test("has nothing to say when every promise was kept", () => {
    expect(violationsOf(sound)).toEqual([]);
  });

  test("takes what was done without an acknowledgement for what it is", () => {
    expect(violationsOf(sound, { state: { ada: 3, bob: 1 } }, { ada: 1 })).toEqual([]);
  });

  test.each([
    ["a number that two have won", [ada(1, 1), bob(1, 1), ada(2, 3)], {}, /number 1 was won twice/],
    ["a key that two have won", [...sound, { ...ada(3, 4), key: "k" }, { ...bob(2, 5), key: "k" }], { state: { ada: 3, bob: 2 } }, /k was won twice: by ada and by bob/], // prettier-ignore
    ["an append that was acknowledged twice", [ada(1, 1), bob(1, 2), ada(1, 3)], {}, /append 1 of ada .* twice/],
    ["a number that is smaller than the one before", [ada(1, 3), bob(1, 2), ada(2, 1)], {}, /won number 1 after/],
    ["an append that is not there", sound, { state: { ada: 1, bob: 1 } }, /append 2 of ada .* is lost/],
    ["a child of which nothing is there", sound, { state: { ada: 2 } }, /append 1 of bob .* is lost/],
    ["an append that is there twice", sound, { state: { ada: 3, bob: 1 } }, /counted twice/],
    ["what is wrong by itself", sound, { wrong: ["a torn batch"] }, /a torn batch/],
    ["what a dead holder has left", sound, { unswept: ["h1"] }, /h1 was not swept/],
  ])("notices %s", (_what, acknowledged, found, violation) => {
    expect(violationsOf(acknowledged, found).join("\n")).toMatch(violation);
  });
});
