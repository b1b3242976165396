import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  contentsOf,
  formatLockFile,
  formatLockRecord,
  parseLockFile,
  parseLockRecord,
  type LockFileInfo,
} from "./lock-file.ts";

describe("reading a lock file", () => {
  it("understands the example of the protocol", () => {
    const text = "pid=12345\ntimestamp=1703520000\ntag=deploy-v1.2.3\n";
    expect(parseLockFile(text)).toEqual({ pid: 12345, timestamp: 1703520000, tag: "deploy-v1.2.3" });
  });

  it.each([
    ["LF", "pid=1\ntimestamp=2\n"],
    ["CRLF", "pid=1\r\ntimestamp=2\r\n"],
    ["both, mixed", "pid=1\r\ntimestamp=2\n"],
    ["no end of the last line", "pid=1\ntimestamp=2"],
    ["empty lines", "\n\npid=1\n\r\n\ntimestamp=2\n\n"],
    ["lines in another order", "timestamp=2\npid=1\n"],
    ["unknown keys, and lines that are no fields", "version=9\npid=1\n# a comment\n=nothing\ntimestamp=2\nlease=5\n"],
    ["white space around a line", "  pid=1  \n\ttimestamp=2\t\n"],
    ["a byte order mark", "\uFEFFpid=1\ntimestamp=2\n"],
    ["leading zeros", "pid=0001\ntimestamp=02\n"],
  ])("takes %s", (_, text) => {
    expect(parseLockFile(text)).toEqual({ pid: 1, timestamp: 2 });
  });

  it("gives the first of a key that occurs twice", () => {
    expect(parseLockFile("pid=1\npid=9\ntimestamp=2\ntag=a\ntag=b\ntimestamp=x\n")).toEqual({
      pid: 1,
      timestamp: 2,
      tag: "a",
    });
    expect(parseLockFile("pid=x\npid=1\ntimestamp=2\n")).toBe(undefined);
  });

  it("keeps an equals sign in a tag, and takes an empty one for none", () => {
    expect(parseLockFile("pid=1\ntimestamp=2\ntag=a=b=c\n")?.tag).toBe("a=b=c");
    expect(parseLockFile("pid=1\ntimestamp=2\ntag=\n")).toEqual({ pid: 1, timestamp: 2 });
  });

  it.each([
    ["is empty", ""],
    ["is blank", " \n\r\n\t"],
    ["has no pid", "timestamp=2\n"],
    ["has no timestamp", "pid=1\n"],
    ["has a pid that is no number", "pid=abc\ntimestamp=2\n"],
    ["has an empty pid", "pid=\ntimestamp=2\n"],
    ["has a negative pid", "pid=-1\ntimestamp=2\n"],
    ["has pid 0, which would address a group of processes", "pid=0\ntimestamp=2\n"],
    ["has a huge pid", "pid=99999999999999999999\ntimestamp=2\n"],
    ["has a pid above 32 bits", "pid=4294967296\ntimestamp=2\n"],
    ["has a broken pid", "pid=1.5\ntimestamp=2\n"],
    ["has a pid in another notation", "pid=0x10\ntimestamp=2\n"],
    ["has a negative timestamp", "pid=1\ntimestamp=-2\n"],
    ["has a huge timestamp", "pid=1\ntimestamp=253402300800\n"],
    ["has a timestamp with a fraction", "pid=1\ntimestamp=2.5\n"],
    ["has spaces around the equals sign", "pid = 1\ntimestamp = 2\n"],
    ["is cut off in the middle", "pid=12345\ntimest"],
    ["is garbage", "\u0000\u0001\u00ff\ufffd{}[]"],
    ["is longer than any lock file", `pid=1\ntimestamp=2\n${"x".repeat(70_000)}`],
  ])("says undefined when it %s", (_, text) => {
    expect(parseLockFile(text)).toBe(undefined);
  });

  it("takes the first moment of all for a timestamp, and the last one of the year 9999", () => {
    expect(parseLockFile("pid=1\ntimestamp=0\n")?.timestamp).toBe(0);
    expect(parseLockFile("pid=4294967295\ntimestamp=253402300799\n")).toEqual({
      pid: 4294967295,
      timestamp: 253402300799,
    });
  });

  it("cleans the tag of another program before it can reach a terminal", () => {
    expect(parseLockFile("pid=1\ntimestamp=2\ntag=a\u001b[31mred\u0007\u0085\u2028b\n")?.tag).toBe("a [31mred   b");
    expect(parseLockFile(`pid=1\ntimestamp=2\ntag=${"x".repeat(5000)}\n`)?.tag).toHaveLength(1000);
  });

  it("shows nothing of what Holdfast adds", () => {
    const record = { pid: 1, timestamp: 2, token: "t", host: "h", boot: "b", space: "pid:[1]", start: "77" };
    const text = formatLockRecord(record);
    expect(text).toBe("pid=1\ntimestamp=2\ntoken=t\nhost=h\nboot=b\nspace=pid:[1]\nstart=77\n");
    expect(parseLockFile(text)).toEqual({ pid: 1, timestamp: 2 });
    expect(parseLockRecord(text)).toEqual(record);
  });
});

describe("writing a lock file", () => {
  it("has one field on each line", () => {
    expect(formatLockFile({ pid: 1, timestamp: 2 })).toBe("pid=1\ntimestamp=2\n");
    expect(formatLockFile({ pid: 1, timestamp: 2, tag: "nightly backup" })).toBe(
      "pid=1\ntimestamp=2\ntag=nightly backup\n",
    );
  });

  it.each([
    ["a line break", "a\npid=9", "a pid=9"],
    ["a carriage return", "a\rb", "a b"],
    ["both", "a\r\nb", "a  b"],
    ["a NUL", "a\0b", "a b"],
    ["an escape sequence", "\u001b[2Ja", "[2Ja"],
    ["a line separator", "a\u2028b\u2029c", "a b c"],
    ["half a character", "a\ud83d", "a\ufffd"],
    ["nothing but control characters", "\n\r\0", undefined],
    ["nothing", "", undefined],
    ["words and an emoji", "größe 👩‍🚒", "größe 👩‍🚒"],
  ])("makes one line of a tag with %s", (_, tag, cleaned) => {
    const info = parseLockFile(formatLockFile({ pid: 7, timestamp: 2, tag }));
    expect(info).toEqual(cleaned === undefined ? { pid: 7, timestamp: 2 } : { pid: 7, timestamp: 2, tag: cleaned });
  });

  it("cuts a long tag without cutting a character", () => {
    const tag = parseLockFile(formatLockFile({ pid: 1, timestamp: 2, tag: "😀".repeat(2000) }))?.tag ?? "";
    expect(tag).toBe("😀".repeat(1000));
    expect(formatLockFile({ pid: 1, timestamp: 2, tag: "x".repeat(10_000_000) }).length).toBeLessThan(1100);
  });

  it.each([
    { pid: 0, timestamp: 2 },
    { pid: -1, timestamp: 2 },
    { pid: 1.5, timestamp: 2 },
    { pid: Number.NaN, timestamp: 2 },
    { pid: 2 ** 32, timestamp: 2 },
    { pid: 1, timestamp: -1 },
    { pid: 1, timestamp: 0.5 },
    { pid: 1, timestamp: Infinity },
  ])("refuses %o", (info) => {
    expect(() => formatLockFile(info)).toThrow(RangeError);
  });

  it("is read back as it was meant, whatever the tag", () => {
    const infos = fc.record({
      pid: fc.integer({ min: 1, max: 2 ** 32 - 1 }),
      timestamp: fc.integer({ min: 0, max: 253_402_300_799 }),
      tag: fc.string({ unit: "binary", maxLength: 50 }),
    });
    fc.assert(
      fc.property(infos, (info: LockFileInfo) => {
        const text = formatLockFile(info);
        const parsed = parseLockFile(text);
        expect(parsed).toMatchObject({ pid: info.pid, timestamp: info.timestamp });
        // What was cleaned once stays as it is.
        expect(formatLockFile(parsed!)).toBe(text);
        expect(text.trimEnd().split("\n").length).toBeLessThanOrEqual(3);
      }),
    );
  });

  it("never fails to read, whatever is in the file", () => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => void parseLockFile(text)));
  });
});

const wholeText = formatLockRecord({ pid: 12345, timestamp: 1703520000, tag: "größe", token: "t", start: "77" });

describe("a text without a whole record", () => {
  it.each([
    ["nothing", ""],
    ["blanks", " \r\n\n\t"],
    ["zeros, as a crash leaves them", "\0".repeat(4096)],
    ["the first letter", "p"],
    ["a pid that is cut off", "pid=12"],
    ["a pid and zeros", `pid=12${"\0".repeat(500)}`],
    ["a byte order mark", "\uFEFF"],
    ["no timestamp yet", "pid=12345\r\n"],
    ["the beginning of the second line", "pid=12345\ntimest"],
    ["the lines in another order", "timestamp=1703520000\npi"],
    ["a key without its value", "pid=12345\ntimestamp="],
    ["zeros in the place of a value", `pid=12345\ntimestamp=${"\0".repeat(20)}`],
  ])("of %s is torn", (_, text) => {
    expect(parseLockRecord(text)).toBe(undefined);
    expect(contentsOf(text)).toBe("torn");
  });

  it.each([
    ["numbers that are none", "pid=abc\ntimestamp=-2\n"],
    ["a time in milliseconds", "pid=12345\ntimestamp=1703520000123\n"],
    ["a process of 64 bits", "timestamp=1703520000\npid=4294967296\n"],
    ["keys that are not known before them", "owner=me\npid=worker-3\ntimestamp=1703520000\n"],
    ["no end of the last line", "pid=worker-3\ntimestamp=2023-12-25T16:00:00Z"],
  ])("of %s is a record that is malformed", (_, text) => {
    expect(parseLockRecord(text)).toBe(undefined);
    expect(contentsOf(text)).toBe("malformed");
  });

  it.each([
    ["other keys before those of the protocol", "version=9\n"],
    ["other keys among them", "pid=12\nversion=9\n"],
    ["a word that may become a key", "vers"],
    ["settings", "DATABASE_URL=postgres://db1\nPORT=80\n"],
    ["a host, which settings files have too", "host=db1\n"],
    ["a tag alone", "tag=latest\n"],
  ])("of %s may still become a record", (_, text) => {
    expect(contentsOf(text)).toBe("unfinished");
  });

  it.each([
    ["a Gemfile.lock", "GEM\n  remote: https://rubygems.org/\n  specs:\n    rake (13.0.6)\n"],
    ["a yarn.lock", '# yarn lockfile v1\n\n\nabbrev@1:\n  version "1.1.1"\n'],
    ["a package-lock.json", '{\n  "name": "shop",\n  "lockfileVersion": 3\n}\n'],
    ["a Cargo.lock", "version = 3\n\n[[package]]\n"],
    ["a table", "id,amount\n1,20\n"],
    ["a table of one line", "1,20"],
    ["a process number alone", "4711\n"],
    ["spaces around the equals sign", "pid = 1\ntimestamp = 2\n"],
    ["control characters", "\u0000\u0001{}"],
    ["zeros between", "pid=1\0\0\n2"],
    ["a picture", "\u0089PNG\r\n\u001a\n"],
    ["words", "Dear Ada,\nhow are you?\n"],
    ["both keys and words", "pid=worker-3\ntimestamp=soon\nDear Ada\n"],
    ["a script", 'export PID=1\necho "$PID"\n'],
  ])("of %s is data", (_, text) => {
    expect(contentsOf(text)).toBe("data");
  });

  it("is torn wherever a record of ours is cut off, and with zeros in the place of the rest", () => {
    const bytes = Buffer.from(wholeText);
    for (let length = 0; length < bytes.length; length++)
      for (const rest of [Buffer.alloc(0), Buffer.alloc(bytes.length - length)]) {
        const text = Buffer.concat([bytes.subarray(0, length), rest]).toString();
        expect(parseLockRecord(text) !== undefined || contentsOf(text) === "torn").toBe(true);
      }
  });

  it("is never torn if it is text with a word in it that no lock file has", () => {
    fc.assert(fc.property(fc.lorem(), (text) => contentsOf(`${text}\n`) !== "torn"));
  });

  it("is judged in no time, however long", () => {
    for (const text of [`${"\0".repeat(65_000)}x`, "=".repeat(65_000), "\n".repeat(65_000), "a".repeat(65_000)])
      contentsOf(text);
  });
});

it("a record that another program padded with zeros is a record", () => {
  expect(parseLockRecord(`pid=1\ntimestamp=2${"\0".repeat(100)}`)).toEqual({ pid: 1, timestamp: 2 });
});
