// The visit ledger finds overlapping visits and falling fences.
import { describe, expect, it } from "vitest";
import { VisitLedger, type ConfirmedVisit } from "./visit-ledger.ts";

const visit = (path: string, fence: number, fromMs: number, toMs: number): ConfirmedVisit => ({
  claims: [{ path, mode: "exact", shared: false }],
  fence,
  fromMs,
  toMs,
});

describe("the ledger of visits", () => {
  it("accepts visits one after the other, in whatever order they are reported", () => {
    const ledger = new VisitLedger();
    for (const each of [visit("a", 2, 10, 20), visit("a", 1, 0, 10), visit("b", 1, 5, 15), visit("a", 9, 20, 30)])
      expect(ledger.note(each)).toBe(undefined);
  });

  it("finds two inside together", () => {
    const ledger = new VisitLedger();
    ledger.note(visit("a", 1, 0, 10));
    expect(ledger.note(visit("a", 2, 9, 20))).toMatch(/inside together/);
  });

  it("finds a fence that went back, and one that was given out twice", () => {
    const ledger = new VisitLedger();
    ledger.note(visit("a", 2, 0, 10));
    expect(ledger.note(visit("a", 1, 11, 20))).toMatch(/before fence/);
    expect(ledger.note(visit("a", 2, 30, 40))).toMatch(/twice/);
  });
});
