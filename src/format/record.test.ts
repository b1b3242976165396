import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { crc32 } from "node:zlib";
import { isHoldfastError, type HoldfastError } from "../errors.ts";
import { objectOf, textOf } from "./decoding.ts";
import { decodeRecord, encodeRecord, recordBytesMax, type RecordKind } from "./record.ts";
import { formatVersion, packageVersion } from "./version.ts";

const anything: RecordKind<unknown> = { kind: "note", decode: (body) => body };
const note: RecordKind<{ readonly text: string }> = {
  kind: "note",
  decode: (body) => ({ text: textOf(objectOf(body).text) }),
};
const path = "/store/note.json";

/** The bytes of a record built from the format page, not by the code under test. */
function seal(envelope: object, crc?: string): Buffer {
  const head = JSON.stringify(envelope).slice(0, -1);
  return Buffer.from(`${head},"crc":"${crc ?? crc32(head).toString(16).padStart(8, "0")}"}\n`);
}

function failureOf(bytes: Uint8Array, kind: RecordKind<unknown> = note): HoldfastError | undefined {
  try {
    decodeRecord(kind, bytes, path);
    return undefined;
  } catch (error) {
    // Only our own error, whatever the bytes are.
    expect(isHoldfastError(error)).toBe(true);
    return error as HoldfastError;
  }
}

describe("a record", () => {
  it("decodes to the value that was encoded, for every JSON value", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (body) => {
        const bytes = encodeRecord(anything, body);
        expect(decodeRecord(anything, bytes, path)).toEqual(JSON.parse(JSON.stringify(body)));
      }),
    );
  });

  it("gives back texts of any characters, also halves of them and what looks like its own end", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom("\ud800", "\ufffd", "\ufeff", "\u2028", ',"crc":"00000000"}\n', "\0", '"}', "\\"),
    );
    fc.assert(
      fc.property(fc.array(text), (texts) => {
        const body = { text: texts.join("") };
        expect(decodeRecord(note, encodeRecord(note, body), path)).toEqual(body);
      }),
    );
  });

  it("is one line of JSON that names its kind, format and author, and ends in the CRC-32 of all before", () => {
    const bytes = encodeRecord(note, { text: "ü" });
    expect(Buffer.from(bytes).equals(seal({ kind: "note", format: 1, by: packageVersion, body: { text: "ü" } }))).toBe(
      true,
    );
    expect(bytes.indexOf(10)).toBe(bytes.length - 1);
    // As `jq` and people read it.
    expect(JSON.parse(Buffer.from(bytes).toString())).toMatchObject({ kind: "note", body: { text: "ü" } });
  });

  it("is read from a part of a larger buffer, and only from that part", () => {
    const bytes = encodeRecord(note, { text: "a" });
    const larger = new Uint8Array(bytes.length + 20).fill(0x7b);
    larger.set(bytes, 10);
    expect(decodeRecord(note, larger.subarray(10, 10 + bytes.length), path)).toEqual({ text: "a" });
  });

  it("is CORRUPT after any truncation", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 30 }), (text) => {
        const bytes = encodeRecord(note, { text });
        for (let length = 0; length < bytes.length; length++)
          expect(failureOf(bytes.subarray(0, length))?.code).toBe("CORRUPT");
      }),
      { numRuns: 20 },
    );
  });

  it("is CORRUPT after every change of a single bit", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 30 }), (text) => {
        const bytes = encodeRecord(note, { text: `${text}\ufffd` });
        for (let bit = 0; bit < bytes.length * 8; bit++) {
          const changed = Uint8Array.from(bytes);
          changed[bit >> 3]! ^= 1 << (bit & 7);
          expect(failureOf(changed)?.code).toBe("CORRUPT");
        }
      }),
      { numRuns: 10 },
    );
  });

  it("is CORRUPT with extra bytes before or after it", () => {
    const bytes = encodeRecord(note, { text: "a" });
    for (const extra of ["\0", " ", "\n", "\ufeff", "{}", Buffer.from(bytes).toString()]) {
      expect(failureOf(Buffer.concat([bytes, Buffer.from(extra)]))?.code).toBe("CORRUPT");
      expect(failureOf(Buffer.concat([Buffer.from(extra), bytes]))?.code).toBe("CORRUPT");
    }
  });

  it("is CORRUPT for any foreign bytes, without another error", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array({ maxLength: 200 }),
          fc.json().map((json) => Buffer.from(json)),
        ),
        (bytes) => {
          expect(failureOf(bytes)?.code).toBe("CORRUPT");
        },
      ),
    );
  });

  it("is CORRUPT when it was cleared to zeros, as some file systems do after a power cut", () => {
    expect(failureOf(new Uint8Array(4096))?.code).toBe("CORRUPT");
    expect(failureOf(new Uint8Array(0))?.code).toBe("CORRUPT");
  });

  it("reports the path and the remedy in its error", () => {
    const error = failureOf(encodeRecord(anything, 1).subarray(1));
    expect(error).toMatchObject({ code: "CORRUPT", action: "fix-data", path });
    expect(error?.message).toMatch(/^\/store\/note\.json is not a valid note record: .*backup, or move it away\.$/);
  });

  it("is CORRUPT if it has another kind, and the error names that kind", () => {
    const error = failureOf(encodeRecord({ kind: "letter", decode: () => 0 }, 0));
    expect(error?.code).toBe("CORRUPT");
    expect(error?.message).toContain('"letter"');
  });

  it("is CORRUPT when its body makes no sense, with the reason as the cause", () => {
    const error = failureOf(seal({ kind: "note", format: 1, by: "0.1.0", body: { text: 5 } }));
    expect(error).toMatchObject({ code: "CORRUPT", cause: { message: "not a text" } });
  });
});

describe("a record of a newer format", () => {
  it.each([
    ["its body", { kind: "note", format: formatVersion + 1, by: "9.1.0", body: { text: "a" } }],
    ["a body that makes no sense here", { kind: "note", format: 2, by: "9.1.0", body: [1, { x: null }] }],
    ["no body at all", { kind: "note", format: 2, by: "9.1.0" }],
    ["another kind", { kind: "memo", format: 99, by: "9.1.0", body: 1 }],
    ["other fields", { format: 1.5, by: "9.1.0", moon: true }],
  ])("is refused with the version that wrote it, whatever has become of the rest: %s", (_, envelope) => {
    const error = failureOf(seal(envelope));
    expect(error).toMatchObject({ code: "NEWER_FORMAT", action: "fix-caller", path, writtenBy: "9.1.0" });
    expect(error?.message).toContain(path);
    expect(error?.message).toMatch(/Upgrade this installation\.$/);
  });

  it("is refused even if it does not name its author", () => {
    for (const by of [undefined, null, 5, {}])
      expect(failureOf(seal({ kind: "note", format: 2, by }))).toMatchObject({
        code: "NEWER_FORMAT",
        writtenBy: "an unknown version",
      });
  });

  it("is CORRUPT and not newer when its checksum is wrong: then nothing that it says is believed", () => {
    expect(failureOf(seal({ kind: "note", format: 2, by: "9.1.0" }, "00000000"))?.code).toBe("CORRUPT");
  });
});

describe("the size of a record", () => {
  // Exact size of the envelope around the text.
  const frameBytes = encodeRecord(note, { text: "" }).length;

  it("may be 4 MiB and not a byte more", () => {
    const text = "x".repeat(recordBytesMax - frameBytes);
    expect(encodeRecord(note, { text })).toHaveLength(recordBytesMax);
    expect(() => encodeRecord(note, { text: `${text}x` })).toThrow(
      expect.objectContaining({ code: "TOO_LARGE", limit: recordBytesMax, actual: recordBytesMax + 1 }),
    );
  });

  it("is counted in bytes, not in characters", () => {
    expect(() => encodeRecord(note, { text: "字".repeat(recordBytesMax / 3) })).toThrow(
      expect.objectContaining({ code: "TOO_LARGE" }),
    );
  });
});

describe("what cannot be read back", () => {
  it("is never returned by the encoder", () => {
    expect(() => encodeRecord(note, { text: undefined as unknown as string })).toThrow();
    expect(() => encodeRecord(anything, 5n)).toThrow(TypeError);
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    expect(() => encodeRecord(anything, circle)).toThrow(TypeError);
  });
});

describe("hostile JSON", () => {
  it("cannot reach a prototype", () => {
    const envelope = `{"__proto__":{"kind":"note","polluted":1},"format":1,"body":{"__proto__":{"text":"x"},"constructor":{"prototype":{"polluted":1}}}`;
    const bytes = Buffer.from(`${envelope},"crc":"${crc32(envelope).toString(16).padStart(8, "0")}"}\n`);
    expect(failureOf(bytes)?.code).toBe("CORRUPT");
    const body = decodeRecord(anything, seal({ kind: "note", format: 1, body: JSON.parse('{"__proto__":1}') }), path);
    expect(Object.getPrototypeOf(body)).toBe(Object.prototype);
    expect(({} as { polluted?: unknown }).polluted).toBe(undefined);
  });

  it("cannot lend a text from a prototype to a decoder that asks for a field", () => {
    const body: unknown = JSON.parse('{"__proto__":{"text":"x"}}');
    expect(failureOf(seal({ kind: "note", format: 1, by: "", body }))?.code).toBe("CORRUPT");
  });

  it("cannot exhaust the stack by its depth", () => {
    const depth = 500_000;
    const head = `{"kind":"note","format":1,"by":"","body":${"[".repeat(depth)}${"]".repeat(depth)}`;
    const bytes = Buffer.from(`${head},"crc":"${crc32(head).toString(16).padStart(8, "0")}"}\n`);
    expect(bytes.length).toBeLessThan(recordBytesMax);
    expect(failureOf(bytes)?.code).toBe("CORRUPT");
  });

  it("takes the last of two equal keys, as every reader of JSON does, and is judged by it", () => {
    const head = `{"kind":"letter","kind":"note","format":1,"by":"","body":{"text":"a","text":"b"}`;
    const bytes = Buffer.from(`${head},"crc":"${crc32(head).toString(16).padStart(8, "0")}"}\n`);
    expect(decodeRecord(note, bytes, path)).toEqual({ text: "b" });
  });

  it.each(["null", "[]", '"text"', "5", "true"])("is CORRUPT when it is %s and no object", (json) => {
    expect(failureOf(Buffer.from(`${json},"crc":"${crc32(json).toString(16).padStart(8, "0")}"}\n`))?.code).toBe(
      "CORRUPT",
    );
  });
});
