// `upgradeStore`: reports formats from the records on the disk, and upgrades a lock table that an older release made.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { openEvents } from "../../src/events/index.ts";
import { openHandoff } from "../../src/handoff/index.ts";
import { openStore, upgradeStore } from "../../src/index.ts";
import type { TablePathLocks } from "../../src/locks/path/table-path-locks.ts";
import { openPathLocks } from "../../src/locks/index.ts";
import { checksumOf } from "../../src/format/checksum.ts";
import { makeScratch } from "../sites/scratch.ts";
import { layOut } from "./earlier-builds.ts";

let root: string;

beforeEach(async () => {
  root = makeScratch();
  await layOut(root, "first-format.json");
});

async function run(...args: string[]): Promise<{ exitCode: number; stdout: string }> {
  let stdout = "";
  const streams = { stdout: { write: (text: string) => (stdout += text) }, stderr: { write: () => undefined } };
  return { exitCode: await runCommandLine(args, streams, new AbortController().signal), stdout };
}

/** Every file, to see that nothing has changed. */
async function filesIn(directory: string): Promise<string[]> {
  return (await readdir(directory, { recursive: true })).sort();
}

async function newestEpoch(ground: string): Promise<{ format: number; body: { body: { deltas?: boolean } } }> {
  const epochs = join(ground, "table/epochs");
  const newest = (await readdir(epochs)).sort().at(-1) ?? "";
  return JSON.parse(await readFile(join(epochs, newest), "utf8")) as never;
}

describe("a lock table of the first format", () => {
  it("is reported with its format, and a dry run changes nothing", async () => {
    const before = await filesIn(root);
    expect(await upgradeStore(join(root, "locks"), { dryRun: true })).toMatchObject([
      { part: "ground", found: 1, newest: 1, state: "current", upgraded: false },
      { part: "path locks", found: 1, newest: 1, state: "current", upgraded: false },
      { part: "lock table", found: 1, newest: 2, state: "older", upgraded: false, writtenBy: "0.1.0" },
    ]);
    expect(await filesIn(root)).toEqual(before);
  });

  it("stays of its format while processes of this release use it", async () => {
    await using locks = await openPathLocks(join(root, "locks"));
    await (await locks.acquire("a")).release();
    expect(await newestEpoch(join(root, "locks/.holdfast"))).toMatchObject({ format: 1 });
  });

  it("is upgraded once, grants higher fences afterwards, and is current then", async () => {
    const place = join(root, "locks");
    const fence = async (): Promise<number> => {
      await using locks = await openPathLocks(place);
      await using hold = await locks.acquire("a/b");
      return hold.fence;
    };
    const before = await fence();
    expect((await upgradeStore(place)).at(-1)).toMatchObject({ state: "older", upgraded: true });
    expect(await newestEpoch(join(place, ".holdfast"))).toMatchObject({ format: 2, body: { body: { deltas: true } } });
    expect(await fence()).toBeGreaterThan(before);
    const after = await filesIn(place);
    expect((await upgradeStore(place)).every(({ state, upgraded }) => state === "current" && !upgraded)).toBe(true);
    expect(await filesIn(place)).toEqual(after);
  });

  it("gets flat redos only after the upgrade, because older releases would not complete them", async () => {
    const place = join(root, "locks");
    const flat = async (): Promise<unknown> => {
      await using locks = (await openPathLocks(place)) as TablePathLocks;
      const draft = await locks.draft(await locks.acquire("f"), { isSingle: true });
      await draft.in("f", (path) => writeFile(path, "new"));
      await draft.commit();
      return (await locks.table.read()).state.redos.at(-1)?.flat;
    };
    expect(await flat()).toBe(undefined);
    await upgradeStore(place);
    expect(await flat()).toBe(true);
    expect(await readFile(join(place, "f"), "utf8")).toBe("new");
  });

  it("is not upgraded while a process that is alive has it open, which the error names", async () => {
    const place = join(root, "locks");
    {
      await using locks = await openPathLocks(place);
      await using _hold = await locks.acquire("a");
      await expect(upgradeStore(place)).rejects.toMatchObject({
        code: "RESOURCE_BUSY",
        blockedBy: [{ holder: { pid: process.pid } }],
      });
      expect(await newestEpoch(join(place, ".holdfast"))).toMatchObject({ format: 1 });
    }
    expect((await upgradeStore(place)).at(-1)).toMatchObject({ upgraded: true });
  });

  it("of an event log is upgraded, and the log goes on", async () => {
    const place = join(root, "log-local");
    const reports = await upgradeStore(place);
    expect(reports.map(({ part, upgraded }) => [part, upgraded])).toEqual([
      ["ground", false],
      ["lock table", true],
      ["event log", false],
    ]);
    await using events = await openEvents(place);
    const head = await events.head();
    expect(await events.append({ type: "Sold", data: null })).toMatchObject({ first: head + 1 });
  });

  it("is listed by the command as NDJSON, upgraded, and then current", async () => {
    const place = join(root, "locks");
    const dry = await run("upgrade", place, "--dry-run", "--json");
    expect(dry.exitCode).toBe(0);
    const printed = dry.stdout.trimEnd().split("\n");
    expect(JSON.parse(printed.at(-1) ?? "")).toMatchObject({
      part: "lock table",
      found: 1,
      newest: 2,
      state: "older",
      upgraded: false,
    });
    expect((await run("upgrade", place)).stdout).toContain("upgraded: ");
    const again = await run("upgrade", place);
    expect(again.exitCode).toBe(0);
    expect(again.stdout).toContain("nothing to upgrade");
  });
});

it("a new store has the newest formats only", async () => {
  {
    await using store = await openStore(join(root, "new"));
    await (await (await store.locks()).acquire("a")).release();
    await (await store.events()).append({ type: "Sold", data: null });
    await (await store.handoff("inbox")).publish({ "a.txt": "a" });
    await (await store.objects()).createBucket("photos");
  }
  const reports = await upgradeStore(join(root, "new"));
  expect(reports.map(({ part }) => part)).toEqual([
    "store",
    "ground",
    "path locks",
    "lock table",
    "event log",
    "hand-off box",
    "object store",
  ]);
  expect(reports.filter(({ state }) => state !== "current")).toEqual([]);
});

it("a box whose keys are files of their own shares them after an upgrade, and knows the old ones", async () => {
  const at = join(root, "box");
  await (await openHandoff(at)).close();
  // As an older release writes it.
  const { body } = JSON.parse(await readFile(join(at, "box.json"), "utf8")) as { body: Record<string, unknown> };
  const { sharesKeys: _, ...older } = body;
  const record = `{"kind":"box","format":1,"by":"0.1.0","body":${JSON.stringify(older)}`;
  await writeFile(join(at, "box.json"), `${record},"crc":"${checksumOf(record)}"}\n`);
  {
    await using box = await openHandoff(at);
    await box.publish({ "a.txt": "a" }, { key: "one" });
  }
  expect(await upgradeStore(at)).toMatchObject([
    { part: "ground" },
    { part: "hand-off box", found: 1, newest: 2, state: "older", upgraded: true },
  ]);
  await using box = await openHandoff(at);
  expect(await box.publish({ "a.txt": "a" }, { key: "one" })).toMatchObject({ duplicate: true });
  expect(await upgradeStore(at, { dryRun: true })).toMatchObject([{ part: "ground" }, { found: 2, state: "current" }]);
});

it("a record of a newer format is reported and left alone, and the other parts are upgraded", async () => {
  const place = join(root, "log-local");
  const newer = `{"kind":"log","format":9,"by":"9.0.0","body":{}`;
  await writeFile(join(place, "log.json"), `${newer},"crc":"${checksumOf(newer)}"}\n`);
  expect((await upgradeStore(place)).map(({ part, state, upgraded }) => [part, state, upgraded])).toEqual([
    ["ground", "current", false],
    ["lock table", "older", true],
    ["event log", "newer", false],
  ]);
});

it("a damaged record costs its own line of the report", async () => {
  await writeFile(join(root, "log-local/log.json"), "torn");
  const reports = await upgradeStore(join(root, "log-local"), { dryRun: true });
  expect(reports.map(({ part, state }) => [part, state])).toEqual([
    ["ground", "current"],
    ["lock table", "older"],
    ["event log", "damaged"],
  ]);
});

it("a directory without a store is NOT_A_STORE, and nothing is made in it", async () => {
  const empty = makeScratch();
  await expect(upgradeStore(empty)).rejects.toMatchObject({ code: "NOT_A_STORE" });
  expect(await readdir(empty)).toEqual([]);
  expect(await run("upgrade", empty)).toMatchObject({ exitCode: 66 });
});
