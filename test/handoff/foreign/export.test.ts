// Tickets for programs that know nothing of Holdfast: files first, done files last, on every kind of disk.
import { createHash } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import { openBox } from "../../../src/handoff/box/open-box.ts";
import type { ExportRule } from "../../../src/handoff/model/foreign-rule.ts";
import { BoxHandoff } from "../../../src/handoff/handoff.ts";
import type { DeadLetter } from "../../../src/handoff/model/handoff.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import { failureOf } from "../../sites/event-logs.ts";
import { sites, type Site } from "../../sites/sites.ts";
import { World } from "../../sites/world.ts";
import { until } from "../../waiting.ts";
import { filesIn, openOn } from "../publish/opened-box.ts";

const large = "x".repeat(70_000);

function sha256Of(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

describe.each(sites)("on %s", (_name, makeSite) => {
  let site: Site;
  let disk: Disk;
  let box: BoxHandoff;
  let folder: string;
  const read = async (name: string): Promise<string> =>
    Buffer.from(await disk.readFile(`${folder}/${name}`, 1_000_000)).toString();
  const exported = async (rule: ExportRule, count: number): Promise<string[]> => {
    const exporting = box.keepExporting(folder, rule);
    await until(async () => (await filesIn(disk, `${site.directory}/box/archive`)).length === count);
    await exporting.stop();
    await exporting.done;
    return await filesIn(disk, folder);
  };

  beforeEach(async () => {
    site = await makeSite();
    const ports = await site.openPorts();
    disk = ports.disk;
    folder = `${site.directory}/out`;
    await disk.mkdir(folder);
    box = await openOn(ports, `${site.directory}/box`);
  });

  it("a done file with a manifest has key, size, hash and records, and no other file is left", async () => {
    const { id } = await box.publish({ "a.csv": "1\n", "b.bin": large }, { key: "k", records: { "a.csv": 1 } });
    expect(await exported({ done: "{base}.done" }, 1)).toEqual(["a.csv", "a.done", "b.bin", "b.done"]);
    expect(await read("b.bin")).toBe(large);
    const files = [{ name: "a.csv", size: 2, sha256: sha256Of("1\n"), records: 1 }];
    expect(JSON.parse(await read("a.done"))).toMatchObject({ id, key: "k", files });
  });

  it("done files may be lines of sha256sum, empty, or absent", async () => {
    await box.publish({ "a.csv": "1" });
    expect(await exported({ content: "sha256sum" }, 1)).toEqual(["a.csv", "a.csv.done"]);
    expect(await read("a.csv.done")).toBe(`${sha256Of("1")}  a.csv\n`);
    await box.publish({ "b.csv": "2" });
    await exported({ content: "empty", done: "{name}.ok" }, 2);
    expect(await read("b.csv.ok")).toBe("");
    await box.publish({ "c.csv": "3" });
    const names = await exported({ done: null }, 3);
    expect(names).toEqual(["a.csv", "a.csv.done", "b.csv", "b.csv.ok", "c.csv"]);
  });

  it("a name that the receiver has not taken yet is never replaced: the next hand-over waits for it", async () => {
    await box.publish({ "a.csv": "first" });
    await exported({}, 1);
    await box.publish({ "a.csv": "second" });
    await box.publish({ "b.csv": "other" });
    const exporting = box.keepExporting(folder);
    await until(async () => (await filesIn(disk, folder)).includes("b.csv.done"));
    expect(await read("a.csv")).toBe("first");
    await disk.unlink(`${folder}/a.csv`);
    await disk.unlink(`${folder}/a.csv.done`);
    await until(async () => (await filesIn(disk, folder)).includes("a.csv.done"));
    expect(await read("a.csv")).toBe("second");
    await exporting.stop();
  });

  it("one pass exports what can be claimed now, returns how many, and leaves a ticket whose name is taken", async () => {
    await box.publish({ "a.csv": "first" });
    await box.publish({ "b.csv": "other" });
    expect(await box.export(folder, { done: null })).toBe(2);
    await box.publish({ "a.csv": "second" });
    expect(await box.export(folder, { done: null })).toBe(0);
    expect(await read("a.csv")).toBe("first");
    expect(await box.stats()).toMatchObject({ archive: 2, error: 0 });
    await disk.unlink(`${folder}/a.csv`);
    await until(async () => (await box.export(folder, { done: null })) === 1);
    expect(await read("a.csv")).toBe("second");
  });

  it("a ticket whose names conflict in one folder goes to the dead letters, is reported, and blocks no other", async () => {
    const { id } = await box.publish({ "a.csv": "1", "a.csv.done": "2" });
    await box.publish({ "b.csv": "3" });
    const dead: DeadLetter[] = [];
    expect(await box.export(folder, {}, { onDeadLetter: (ticket) => dead.push(ticket) })).toBe(1);
    expect(await filesIn(disk, folder)).toEqual(["b.csv", "b.csv.done"]);
    const reason = expect.stringContaining("it is also the name of one of its files") as string;
    expect(dead).toEqual([{ id, attempt: 1, outcome: "fail", reason }]);
    expect(await box.find(id)).toMatchObject({ state: "error", history: [{ attempt: 1, outcome: "fail", reason }] });
  });

  it("a folder that does not exist ends the loop with INVALID_PATH", async () => {
    const exporting = box.keepExporting(`${site.directory}/none`);
    expect(await failureOf(exporting.done)).toMatchObject({ code: "INVALID_PATH" });
    expect(await failureOf(box.export(`${site.directory}/none`))).toMatchObject({ code: "INVALID_PATH" });
  });
});

it("a process that dies at any call never shows a done file before its files, and the next one hands over the ticket", async () => {
  const leaseMs = 2_000;
  let at = 1;
  for (let isDone = false; !isDone && at < 300; at++) {
    const world = new World();
    const { disk } = world.ports("watcher");
    await disk.mkdir("/out");
    const open = async (process: string): Promise<BoxHandoff> =>
      new BoxHandoff(await openBox(world.ports(process), "/box", { leaseMs }), { leaseMs });
    const ada = await open("ada");
    await ada.publish({ "a.csv": "1", "b.csv": large });
    await world.killAtCall("ada", at, async () => void ada.keepExporting("/out", { done: "all.done" }));
    const shown = (await filesIn(disk, "/out")).filter((name) => !name.startsWith("."));
    if (shown.includes("all.done")) expect(shown, `killed at call ${at}`).toEqual(["a.csv", "all.done", "b.csv"]);
    isDone = (await filesIn(disk, "/box/archive")).length === 1;
    const bea = await open("bea");
    const exporting = bea.keepExporting("/out", { done: "all.done" });
    for (let step = 0; step < 500 && (await filesIn(disk, "/box/archive")).length === 0; step++)
      await world.advance(50);
    let isStopped = false;
    const stopping = exporting.stop().then(() => (isStopped = true));
    while (!isStopped) await world.advance(20);
    await stopping;
    expect(await filesIn(disk, "/out"), `killed at call ${at}`).toEqual(["a.csv", "all.done", "b.csv"]);
    expect(await filesIn(disk, "/box/archive")).toHaveLength(1);
  }
  expect(at).toBeGreaterThan(20);
});
