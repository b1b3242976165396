// The keys read from the bytes of a line are those that JSON would give, whatever the line has in
// it.
import * as fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { keysOf } from "../../src/events/index/keys/key-hash.ts";
import { encodeContent, encodeLine, type LineContent } from "../../src/events/log/format/line.ts";
import type { EventHead } from "../../src/events/model/stored-event.ts";
import { readLine, type ReadLine } from "../../src/events/log/read/line-keys.ts";

function read(content: LineContent, first = 7): ReadLine {
  const { text } = encodeLine(encodeContent(content), first, "2026-11-16T08:00:00.000Z", 0);
  return readLine(3, "segment", { offset: 99, bytes: Buffer.from(text), crc: 0 });
}

const plain: EventHead = { type: "Sold", tags: ["sale:1", "till:03"], id: "0193" };
const payload = [JSON.stringify({ data: { events: [{ type: "Other", tags: ["x"], id: "y" }] } })];

// Parts of a line, characters that JSON escapes, and long ones of UTF-8, in every order.
const text = fc
  .array(
    fc.constantFrom('"', "\\", "{", "}", "[", "]", ",", ":", ',"events":[', ',"payload":[', "ä", "€", "😀", "a", " "),
    { maxLength: 6 },
  )
  .map((parts) => parts.join(""));
const head: fc.Arbitrary<EventHead> = fc
  .record({ type: text, tags: fc.array(text, { maxLength: 3 }), id: text, isGiven: fc.boolean() })
  .map(({ isGiven, ...rest }) => (isGiven ? { ...rest, given: true as const } : rest));
const condition = fc.record(
  { if: fc.array(fc.record({ types: fc.array(text), tags: fc.array(text) }), { maxLength: 2 }), after: fc.nat() },
  { requiredKeys: ["if"] },
);
const retag = fc.record({ positions: fc.array(fc.nat(), { minLength: 1 }), tags: fc.array(text) });

describe("a line that is read from its bytes", () => {
  it("has the keys that its events have, and the tags that it adds", () => {
    const content = fc.record(
      { condition, retag, events: fc.array(head, { maxLength: 3 }) },
      { requiredKeys: ["events"] },
    );
    fc.assert(
      fc.property(content, fc.nat({ max: 2 ** 45 }), (parts, first) => {
        const { line: found, retag: added } = read({ ...parts, payload }, first);
        expect(found).toMatchObject({ segment: 3, offset: 99, first });
        expect(found.keys).toEqual(parts.events.map(keysOf));
        expect(added).toEqual(parts.retag);
      }),
      { numRuns: 2000 },
    );
  });

  it("is not parsed where it is plain, with and without a condition", () => {
    const decode = vi.spyOn(JSON, "parse");
    const { line: found } = read({ events: [plain, { ...plain, given: true }], payload });
    read({ condition: { if: [{ types: ["Sold"], tags: ["sale:1"] }], after: 5 }, events: [plain], payload });
    expect(decode).not.toHaveBeenCalled();
    decode.mockRestore();
    expect(found.keys).toEqual([keysOf(plain), keysOf(plain)]);
  });

  it("is CORRUPT when it only looks like JSON", () => {
    const condition = { if: [{ types: ["Sold"], tags: ["sale:1"] }], after: 5 };
    const { text: whole } = encodeLine(encodeContent({ condition, events: [plain], payload }), 7, "2026", 0);
    for (const [from, to] of [
      ['"first":7', '"first":07'],
      ['"first":7', '"first":'],
      ['"time":"2026', '"time":"20\t26'],
      ['"type":"Sold","tags":["sale:1",', '"type":"So\u0000ld","tags":["sale:1",'],
      ['["sale:1","till:03"]', '["sale:1","till:03",]'],
      ['["sale:1","till:03"]', '["sale:1""till:03"]'],
      ['"after":5', '"after":05'],
      ['{"if":[{', '{"if":{[{'],
      ['"tags":["sale:1"]}]', '"tags":["sale:1"}]'],
    ] as const) {
      const bytes = Buffer.from(whole.replace(from, to));
      expect(bytes.equals(Buffer.from(whole))).toBe(false);
      expect(() => readLine(1, to, { offset: 0, bytes, crc: 0 })).toThrow(/damaged/);
    }
  });

  it("is CORRUPT wherever it ends too early, and never half read", () => {
    const { text: whole } = encodeLine(encodeContent({ events: [plain], payload }), 7, "2026", 0);
    const end = whole.indexOf(',"payload":[') + ',"payload":['.length;
    for (let length = 0; length < end; length++)
      expect(() => readLine(1, "s", { offset: 0, bytes: Buffer.from(whole.slice(0, length)), crc: 0 })).toThrow(
        /damaged/,
      );
  });
});
