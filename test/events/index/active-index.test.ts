import * as fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { ActiveIndex } from "../../../src/events/index/memory/active-index.ts";
import { keysOf, type IndexedEvent } from "../../../src/events/index/keys/key-hash.ts";
import { KeyChains } from "../../../src/events/index/memory/key-chains.ts";
import { anyQuestion, anySegments, ModelLog } from "./model-log.ts";

function activeOf(log: ModelLog): ActiveIndex {
  const index = new ActiveIndex(1);
  for (const { number } of log.segments) for (const line of log.linesOf(number)) index.add(line);
  return index;
}

const all = [{ types: [], tags: [] }];

describe("the index of the active segment", () => {
  it("gives exactly the positions of a walk over the log, in both directions", () => {
    fc.assert(
      fc.property(anySegments, fc.array(anyQuestion, { maxLength: 20 }), (segments, questions) => {
        const log = new ModelLog(segments);
        const index = activeOf(log);
        expect(index.last).toBe(log.last);
        for (const { items, range, backwards } of questions)
          expect([...index.candidates(items, range, backwards)]).toEqual(log.find(items, range, backwards));
      }),
      { numRuns: 300 },
    );
  });

  it("reports a candidate after a position if and only if there is one", () => {
    fc.assert(
      fc.property(anySegments, fc.array(anyQuestion, { maxLength: 20 }), (segments, questions) => {
        const log = new ModelLog(segments);
        const index = activeOf(log);
        for (const { items, range } of questions)
          expect(index.hasCandidate(items, range.after)).toBe(
            log.find(items, { after: range.after, upTo: log.last }, false).length > 0,
          );
      }),
      { numRuns: 300 },
    );
  });

  it("gives the line of each position, also between lines without events", () => {
    fc.assert(
      fc.property(anySegments, (segments) => {
        const log = new ModelLog(segments);
        const index = activeOf(log);
        log.events.forEach(({ line }, at) => expect(index.getLine(at + 1)).toEqual(line));
        expect(() => index.getLine(0)).toThrow(RangeError);
        expect(() => index.getLine(log.last + 1)).toThrow(RangeError);
      }),
    );
  });

  it("finds ids, and never confuses a tag or a type with one", () => {
    fc.assert(
      fc.property(anySegments, (segments) => {
        const log = new ModelLog(segments);
        const index = activeOf(log);
        for (const id of ["id-1", "id-2", "Sold", "never"]) expect([...index.idCandidates(id)]).toEqual(log.findId(id));
      }),
    );
  });

  it("begins at any position, also beyond 2^32", () => {
    const first = 2 ** 40;
    const index = new ActiveIndex(first);
    index.add({
      segment: 9_999_999_999,
      offset: 7,
      bytes: 5,
      first,
      timeMs: 0,
      keys: [keysOf({ type: "A", tags: ["x"] })],
    });
    index.add({
      segment: 9_999_999_999,
      offset: 12,
      bytes: 5,
      first: first + 1,
      timeMs: 0,
      keys: [keysOf({ type: "A", tags: ["y"] })],
    });
    expect([...index.candidates([{ types: ["A"], tags: ["y"] }], { after: 0, upTo: Infinity }, false)]).toEqual([
      first + 1,
    ]);
    expect(index.getLine(first + 1)).toEqual({ segment: 9_999_999_999, offset: 12, bytes: 5, first: first + 1 });
  });

  it("is empty before the first event", () => {
    const index = new ActiveIndex(5);
    index.add({ segment: 1, offset: 0, bytes: 5, first: 5, timeMs: 0, keys: [] });
    expect(index.last).toBe(4);
    expect([...index.candidates(all, { after: 0, upTo: 100 }, true)]).toEqual([]);
    expect(index.hasCandidate(all, 4)).toBe(false);
  });

  it("refuses a line that does not follow: every position after it would be wrong", () => {
    const index = new ActiveIndex(1);
    expect(() =>
      index.add({ segment: 1, offset: 0, bytes: 5, first: 2, timeMs: 0, keys: [keysOf({ type: "A", tags: [] })] }),
    ).toThrow(RangeError);
  });

  it("bears ten thousand tags on one event", () => {
    const tags = Array.from({ length: 10_000 }, (_, at) => `tag ${at}`);
    const index = new ActiveIndex(1);
    const events: IndexedEvent[] = [
      { type: "A", tags: ["tag 77"] },
      { type: "B", tags },
      { type: "A", tags: ["tag 9999"] },
    ];
    index.add({ segment: 1, offset: 0, bytes: 5, first: 1, timeMs: 0, keys: events.map(keysOf) });
    for (const tag of ["tag 0", "tag 4711"])
      expect([...index.candidates([{ types: ["B"], tags: [tag, "tag 1"] }], { after: 0, upTo: 9 }, false)]).toEqual([
        2,
      ]);
    expect([...index.candidates([{ types: [], tags: ["tag 77"] }], { after: 0, upTo: 9 }, true)]).toEqual([2, 1]);
    expect([...index.candidates([{ types: [], tags }], { after: 0, upTo: 9 }, true)]).toEqual([2]);
  });

  describe("with a type that every event has", () => {
    const events = Array.from({ length: 20_000 }, (_, at): IndexedEvent => ({
      type: "T",
      tags: [`rare ${at % 2000}`, at % 2 === 0 ? "even" : "odd"],
    }));
    const log = new ModelLog([[events]]);
    const index = activeOf(log);

    function stepsOf(action: () => void): number {
      const steps = vi.spyOn(KeyChains.prototype, "eventOf");
      action();
      const count = steps.mock.calls.length;
      steps.mockRestore();
      return count;
    }

    it("walks only the chain of the rare tag", () => {
      const item = [{ types: ["T"], tags: ["rare 5"] }];
      expect(
        stepsOf(() => expect([...index.candidates(item, { after: 0, upTo: 20_000 }, false)]).toHaveLength(10)),
      ).toBeLessThan(30);
    });

    it("answers a condition with `after` without walking what is older", () => {
      const items = [
        { types: ["T"], tags: ["rare 5"] },
        { types: [], tags: ["rare 6", "rare 7"] },
      ];
      expect(stepsOf(() => expect(index.hasCandidate(items, 20_000)).toBe(false))).toBe(0);
      expect(stepsOf(() => expect(index.hasCandidate(items, 19_990)).toBe(false))).toBeLessThan(10);
      expect(stepsOf(() => expect(index.hasCandidate([{ types: ["T"], tags: [] }], 0)).toBe(true))).toBeLessThan(10);
      const both = [{ types: ["T"], tags: ["even", "odd"] }];
      expect(stepsOf(() => expect(index.hasCandidate(both, 19_990)).toBe(false))).toBeLessThan(20);
    });

    it("gives the newest of a type without walking the rest", () => {
      const newest = (): number | undefined => {
        for (const position of index.candidates([{ types: ["T"], tags: [] }], { after: 0, upTo: 20_000 }, true))
          return position;
        return undefined;
      };
      expect(stepsOf(() => expect(newest()).toBe(20_000))).toBeLessThan(10);
    });
  });
});
