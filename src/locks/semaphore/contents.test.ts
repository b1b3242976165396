import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { contentsOf } from "./contents.ts";
import { formatLockRecord, parseLockRecord } from "./lock-file.ts";

const record = formatLockRecord({ pid: 12345, timestamp: 1703520000, tag: "größe", token: "t", start: "77" });

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
    ["a host, which may be in anybody's settings", "host=db1\n"],
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
  ])("of %s is somebody's data", (_, text) => {
    expect(contentsOf(text)).toBe("data");
  });

  it("is torn wherever a record of ours is cut off, and with zeros in the place of the rest", () => {
    const bytes = Buffer.from(record);
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
