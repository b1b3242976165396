// Mistakes of a producer: each is named before anything is written.
import { describe, expect, it } from "vitest";
import { failureOf } from "../../sites/event-logs.ts";
import { makeRealSite } from "../../sites/sites.ts";
import { filesIn, openOn } from "./opened-box.ts";
import type { PublishOptions } from "../../../src/handoff/model/arguments.ts";

const names = [
  ...["", ".", "..", "a/b", "a\\b", "../a", "a:b", "a\u0000b", "a\nb", "what?", "<a>", "a|b", 'a"b', "a*"],
  ...["con", "CON", "nul.txt", "Com1", "lpt9.csv", "COM¹", "aux.", "end.", "end "],
  ...["x".repeat(300), "ä".repeat(101), "e\u0301.txt", "\ud800"],
];

describe("a producer's mistake", () => {
  it.each(names)("the file name %j is refused with INVALID_NAME", async (name) => {
    const { directory, openPorts } = await makeRealSite();
    const ports = await openPorts();
    const box = await openOn(ports, `${directory}/box`);
    const failure = await failureOf(box.publish({ good: "x", [name]: "x" }));
    expect(failure).toMatchObject({ code: "INVALID_NAME", action: "fix-caller", invalidName: name });
    expect((failure as Error).message.length).toBeLessThan(400);
    expect(await filesIn(ports.disk, `${directory}/box/staging`)).toEqual([]);
  });

  it("two file names that differ only in case are refused", async () => {
    const { directory, openPorts } = await makeRealSite();
    const box = await openOn(await openPorts(), `${directory}/box`);
    expect(await failureOf(box.publish({ "a.txt": "x", "A.TXT": "y" }))).toMatchObject({ code: "INVALID_NAME" });
  });

  const wrong: readonly [what: string, files: unknown, options: unknown, kind: typeof Error][] = [
    ["an unknown option", { a: "x" }, { keys: "k" }, TypeError],
    ["options that are none", { a: "x" }, "k", TypeError],
    ["no files", {}, {}, TypeError],
    ["files that are no object", "a", {}, TypeError],
    ["a list of files", ["x"], {}, TypeError],
    ["bytes in the place of files", Buffer.from("x"), {}, TypeError],
    ["a body that is a number", { a: 1 }, {}, TypeError],
    ["an empty key", { a: "x" }, { key: "" }, TypeError],
    ["a key that is too long", { a: "x" }, { key: "k".repeat(1025) }, TypeError],
    ["a key with half of a pair of surrogates", { a: "x" }, { key: "\ud800" }, TypeError],
    ["a group that is a number", { a: "x" }, { group: 1 }, TypeError],
    ["a priority of 10", { a: "x" }, { priority: 10 }, RangeError],
    ["a priority that is no number", { a: "x" }, { priority: "high" }, RangeError],
    ["a delay below 0", { a: "x" }, { delayMs: -1 }, RangeError],
    ["a delay beyond all dates", { a: "x" }, { delayMs: 1e300 }, RangeError],
    ["an expiry that is no number", { a: "x" }, { expiresMs: Number.NaN }, RangeError],
    ["records of a file that is not there", { a: "x" }, { records: { b: 1 } }, TypeError],
    ["half a record", { a: "x" }, { records: { a: 0.5 } }, RangeError],
    ["records that are null", { a: "x" }, { records: null }, TypeError],
    ["a content type that is no text", { a: "x" }, { contentTypes: { a: 7 } }, TypeError],
    ["meta that is no JSON", { a: "x" }, { meta: () => 1 }, TypeError],
    ["meta with a circle", { a: "x" }, { meta: circular() }, TypeError],
  ];
  it.each(wrong)("%s is told at once", async (_what, files, options, kind) => {
    const { directory, openPorts } = await makeRealSite();
    const ports = await openPorts();
    const box = await openOn(ports, `${directory}/box`);
    const failure = await failureOf(box.publish(files as { a: string }, options as PublishOptions));
    expect(failure).toBeInstanceOf(kind);
    expect(await filesIn(ports.disk, `${directory}/box/staging`)).toEqual([]);
  });

  it("meta that is too large for a ticket is refused with TOO_LARGE, and nothing is left", async () => {
    const { directory, openPorts } = await makeRealSite();
    const ports = await openPorts();
    const box = await openOn(ports, `${directory}/box`);
    const failure = await failureOf(box.publish({ a: "x".repeat(70_000) }, { meta: "m".repeat(5_000_000) }));
    expect(failure).toMatchObject({ code: "TOO_LARGE" });
    for (const place of ["staging", "data"]) expect(await filesIn(ports.disk, `${directory}/box/${place}`)).toEqual([]);
  });

  it("limits that are not counts are refused", async () => {
    const { directory, openPorts } = await makeRealSite();
    const ports = await openPorts();
    expect(await failureOf(openOn(ports, `${directory}/box`, { limits: { tickets: 0 } }))).toBeInstanceOf(RangeError);
    expect(await failureOf(openOn(ports, `${directory}/box`, { limits: { bytes: 1.5 } }))).toBeInstanceOf(RangeError);
  });
});

function circular(): unknown {
  const meta: Record<string, unknown> = {};
  return Object.assign(meta, { meta });
}
