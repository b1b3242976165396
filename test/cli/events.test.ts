// `holdfast events`: NDJSON in and out, through pipes and as a process, with exit codes that a
// script can rely on.
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { openEvents, type EventStore } from "../../src/events/index.ts";
import { openStore } from "../../src/index.ts";
import { openStoreLock } from "../../src/locks/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { HoldfastProcess } from "./holdfast-process.ts";

interface Finished {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface Given {
  readonly input?: string | readonly (string | Uint8Array)[];
  readonly signal?: AbortSignal;
  readonly isTTY?: boolean;
}

/** In this process: quick, and with a coverage that shows. */
async function run(args: readonly string[], { input = [], signal, isTTY }: Given = {}): Promise<Finished> {
  const written = { stdout: "", stderr: "" };
  async function* stdin(): AsyncGenerator<string | Uint8Array> {
    yield* typeof input === "string" ? [input] : input;
  }
  const pipes = {
    stdin: stdin(),
    stdout: { write: (text: string) => (written.stdout += text) },
    stderr: { isTTY, write: (text: string) => (written.stderr += text) },
  };
  const exitCode = await runCommandLine(["events", ...args], pipes, signal ?? new AbortController().signal);
  return { exitCode, ...written };
}

const linesOf = (text: string): Record<string, unknown>[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

/** Four events, of three appends. */
async function newLog(): Promise<string> {
  const directory = join(makeScratch(), "log");
  await using store = await openEvents(directory);
  await store.append({ type: "Sold", data: { sku: 1 }, tags: ["sku:1"] });
  await store.append([
    { type: "Sold", data: { sku: 2 }, tags: ["sku:2", "till:3"], id: "two" },
    { type: "Paid", data: null, tags: ["till:3"], metadata: { by: "ada" } },
  ]);
  await store.append({ type: "Paid", data: "é\u2028" }, { condition: { failIfEventsMatch: { types: ["Closed"] } } });
  return directory;
}

async function openFor(directory: string): Promise<EventStore> {
  const store = await openEvents(directory);
  onTestFinished(() => store.close());
  return store;
}

describe("events append", () => {
  test("appends the event that the options describe, and makes the log", async () => {
    const directory = join(makeScratch(), "new");
    const args = ["append", directory, "--type", "Sold", "--data", '{"sku":1}', "--tag", "sku:1", "--tag", "till:3"];
    expect(await run([...args, "--id", "a", "--metadata", '{"by":"ada"}'])).toEqual({
      exitCode: 0,
      stdout: '{"first":1,"last":1,"repeated":false}\n',
      // Announced once: the path may be mistyped.
      stderr: `holdfast: making a new log in ${directory}\n`,
    });
    const { stdout } = await run(["read", directory]);
    expect(linesOf(stdout)).toMatchObject([
      { type: "Sold", data: { sku: 1 }, tags: ["sku:1", "till:3"], id: "a", metadata: { by: "ada" }, position: 1 },
    ]);
  });

  test("takes a line as an append, a list as one that is whole or not at all, and says where they are", async () => {
    const directory = join(makeScratch(), "new");
    const input = '{"type":"A","data":1}\n\n[{"type":"B","data":2},{"type":"C","data":3}]\r\n{"type":"D","data":4}';
    const { exitCode, stdout } = await run(["append", directory], { input });
    expect(exitCode).toBe(0);
    expect(linesOf(stdout).map(({ first, last }) => [first, last])).toEqual([
      [1, 1],
      [2, 3],
      [4, 4],
    ]);
  });

  test("puts characters together that were cut in two on the way", async () => {
    const directory = join(makeScratch(), "new");
    const bytes = Buffer.from('{"type":"A","data":"ähm 🐚"}\n');
    const input = Array.from(bytes, (byte) => Uint8Array.of(byte));
    expect((await run(["append", directory], { input })).exitCode).toBe(0);
    expect(linesOf((await run(["read", directory])).stdout)).toMatchObject([{ data: "ähm 🐚" }]);
  });

  test("appends several lines at once with --batch, and a list still by itself", async () => {
    const directory = join(makeScratch(), "new");
    const event = '{"type":"A","data":1}\n';
    const input = `${event.repeat(5)}[${event.trim()},${event.trim()}]\n${event}`;
    const { stdout } = await run(["append", directory, "--batch", "3"], { input });
    expect(linesOf(stdout).map(({ first, last }) => [first, last])).toEqual([
      [1, 3],
      [4, 5],
      [6, 7],
      [8, 8],
    ]);
  });

  test("does not add what is there already", async () => {
    const directory = await newLog();
    const input = '{"type":"A","data":1,"id":"x"}\n';
    expect((await run(["append", directory], { input })).stdout).toBe('{"first":5,"last":5,"repeated":false}\n');
    expect((await run(["append", directory], { input })).stdout).toBe('{"first":5,"last":5,"repeated":true}\n');
    const other = await run(["append", directory, "--json"], { input: input.replace("1", "2") });
    expect(other).toMatchObject({ exitCode: 65, stdout: "" });
    expect(linesOf(other.stderr)).toMatchObject([{ error: { code: "EVENT_ID_REUSED", id: "x", position: 5 } }]);
  });

  test("ends with 1 when the condition fails, and names what stands against it", async () => {
    const directory = await newLog();
    const query = '{"types":["Sold"],"tags":["sku:1"]}';
    const args = ["append", directory, "--type", "Sold", "--if-none-match", query];
    const refused = await run([...args, "--json"]);
    expect(refused).toMatchObject({ exitCode: 1, stdout: "" });
    expect(linesOf(refused.stderr)).toMatchObject([
      { error: { code: "APPEND_CONDITION_FAILED", conflicts: [{ position: 1, data: { sku: 1 } }] } },
    ]);
    expect((await run([...args, "--after", "1"])).exitCode).toBe(0);
    expect((await run(["append", directory, "--type", "X", "--if-none-match", "all"])).exitCode).toBe(1);
    // Nothing else was said: it does not come right by waiting.
    const { stderr } = await run(args);
    expect(stderr).toMatch(
      /^holdfast: .*\n +APPEND_CONDITION_FAILED: Read what matches and decide again: unchanged it/,
    );
  });

  test("ends with 75 when another writer holds the log for too long", async () => {
    const directory = await newLog();
    await using lock = await openStoreLock(directory);
    const hold = await lock.acquire();
    const args = ["append", directory, "--type", "A", "--timeout", "30ms"];
    expect(await run(args)).toMatchObject({
      exitCode: 75,
      stdout: "",
      stderr: expect.stringContaining("LOCK_TIMEOUT") as string,
    });
    await hold.release();
    expect((await run(args)).exitCode).toBe(0);
  });

  const bad: Readonly<Record<string, readonly [input: string | Uint8Array, message: RegExp]>> = {
    "no JSON": ["{type:1}", /Line 2 of the input: it is not JSON/],
    "a field that is misspelt": [
      '{"type":"A","data":1,"tag":["b"]}',
      /Line 2 of the input: an event has no field "tag"/,
    ],
    "a number": ["5", /Line 2 of the input: An event is/],
    "an empty list": ["[]", /Line 2 of the input: .*empty/],
    "a type that is no text": ['{"type":5,"data":1}', /Line 2 of the input: The type/],
    "no data": ['{"type":"A"}', /Line 2 of the input: .*undefined/],
    "a tag with a newline": ['{"type":"A","data":1,"tags":["a\\nb"]}', /Line 2 of the input: .*control character/],
    "an empty id": ['{"type":"A","data":1,"id":""}', /Line 2 of the input: .*the id is empty/],
    "no UTF-8": [Uint8Array.of(0x7b, 0xff, 0xfe, 0x0a), /not UTF-8/],
  };
  for (const [title, [input, message]] of Object.entries(bad))
    test(`ends with 65 for ${title}; what came before it is there, and told`, async () => {
      const directory = join(makeScratch(), "new");
      const lines = ['{"type":"A","data":1}\n', input, "\n", '{"type":"Never","data":1}\n'];
      const { exitCode, stdout, stderr } = await run(["append", directory], { input: lines });
      expect({ exitCode, stdout }).toEqual({ exitCode: 65, stdout: '{"first":1,"last":1,"repeated":false}\n' });
      expect(stderr).toMatch(message);
      expect(stderr).not.toContain("fault of Holdfast");
      expect((await run(["head", directory])).stdout).toBe("1\n");
    });

  test("names the lines of a batch that is refused, and none for an event that came from no line", async () => {
    const directory = await newLog();
    const input =
      '{"type":"A","data":1}\n{"type":"B","data":1}\n\n{"type":"C","data":1}\n{"type":"D","data":1,"id":"two"}\n';
    const batch = await run(["append", directory, "--batch", "2", "--json"], { input });
    expect({ ...batch, stderr: "" }).toEqual({
      exitCode: 65,
      stdout: '{"first":5,"last":6,"repeated":false}\n',
      stderr: "",
    });
    expect(linesOf(batch.stderr)).toMatchObject([
      { error: { code: "EVENT_ID_REUSED", id: "two", message: expect.stringMatching(/^Lines 4 to 5 of/) as string } },
    ]);
    const condition = await run(["append", directory, "--if-none-match", '{"types":["Sold"]}'], { input });
    expect(condition.stderr).toMatch(/^holdfast: Line 1 of the input: /);
    for (const flags of [
      ["--type", ""],
      ["--type", "A", "--metadata", "5"],
    ])
      expect((await run(["append", directory, ...flags])).stderr).not.toMatch(/of the input/);
  });

  test("refuses wrong usage with 2, and makes nothing", async () => {
    const directory = join(makeScratch(), "new");
    for (const args of [
      ["append"],
      ["append", directory, "--data", "1"],
      ["append", directory, "--type", "A", "--data", "{"],
      ["append", directory, "--type", "A", "--after", "1"],
      ["append", directory, "--type", "A", "--if-none-match", "{}", "--after", "-1"],
      ["append", directory, "--type", "A", "--if-none-match", '{"type":["A"]}'],
      ["append", directory, "--type", "A", "--if-none-match", "[]"],
      ["append", directory, "--batch", "0"],
      ["append", directory, "--mode", "fast"],
    ])
      expect({ args, ...(await run(args)) }).toMatchObject({ args, exitCode: 2, stdout: "" });
    const below = ["append", join(directory, "missing"), "--type", "A", "--log", "other"];
    expect(await run(below)).toMatchObject({ exitCode: 66, stdout: "" });
    expect(readdirSync(join(directory, ".."))).toEqual([]);
  });
});

describe("events consumers", () => {
  test("lists each consumer with its lag and its process, as NDJSON with --json", async () => {
    const directory = await newLog();
    expect(await run(["consumers", directory])).toEqual({
      exitCode: 0,
      stdout: "There are no consumers.\n",
      stderr: "",
    });
    expect(await run(["consumers", directory, "--json"])).toEqual({ exitCode: 0, stdout: "", stderr: "" });
    const store = await openFor(directory);
    const mail = store.consume("mail", "all", async () => undefined);
    await mail.waitUntilProcessed(4);
    await using _ = store.consume("audit", { types: ["Paid"] }, async () => undefined, { from: "head" });
    await mail.stop();
    await store.append({ type: "Sold", data: 5 });
    // Two foreign entries, and a consumer whose checkpoint is torn.
    mkdirSync(join(directory, "consumers/Foreign"));
    mkdirSync(join(directory, "consumers/empty"));
    await store.consume("torn", "all", async () => undefined).stop();
    const epoch = readdirSync(join(directory, "consumers/torn")).find((name) => name.startsWith("0")) ?? "";
    for (const slot of readdirSync(join(directory, "consumers/torn", epoch)).filter((name) => name !== "open"))
      writeFileSync(join(directory, "consumers/torn", epoch, slot), "{");
    const { exitCode, stdout } = await run(["consumers", directory, "--json"]);
    expect(exitCode).toBe(0);
    const listed = linesOf(stdout);
    expect(listed).toMatchObject([
      { name: "audit", holder: { pid: process.pid }, waiting: [] },
      { name: "mail", position: 4, lag: 1, waiting: [] },
      { name: "torn", waiting: [] },
    ]);
    expect(listed[1]).not.toHaveProperty("holder");
    expect(listed[2]).toMatchObject({ problem: expect.stringContaining("torn") as string });
    const { stdout: text } = await run(["consumers", directory]);
    expect(text).toMatch(/^consumer\s+position\s+lag\s+runs in\s+since\s+waiting\n/);
    expect(text).toMatch(new RegExp(`\\naudit\\s+\\d+\\s+\\d+\\s+${process.pid} on .*\\d{4}-\\d\\d-\\d\\dT`));
    expect(text).toMatch(/\nmail\s+4\s+1\s+none\s+0\n/);
  });
});

describe("events read", () => {
  test("prints what matches, in the order that was asked for", async () => {
    const directory = await newLog();
    const positions = async (...args: string[]): Promise<unknown[]> => {
      const { exitCode, stdout, stderr } = await run(["read", directory, ...args]);
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
      return linesOf(stdout).map(({ position }) => position);
    };
    expect(await positions()).toEqual([1, 2, 3, 4]);
    expect(await positions("--type", "Sold")).toEqual([1, 2]);
    expect(await positions("--type", "Sold", "--type", "Paid", "--tag", "till:3")).toEqual([2, 3]);
    expect(await positions("--tag", "till:3", "--tag", "sku:2")).toEqual([2]);
    expect(await positions("--query", '[{"tags":["sku:1"]},{"types":["Paid"]}]')).toEqual([1, 3, 4]);
    expect(await positions("--after", "1", "--up-to", "3")).toEqual([2, 3]);
    expect(await positions("--backwards", "--limit", "2")).toEqual([4, 3]);
    expect(await positions("--limit", "0")).toEqual([]);
    expect(await positions("--type", "Nothing")).toEqual([]);
    expect(await positions("--since", "1h", "--until", "2020-01-01")).toEqual([]);
    expect(await positions("--since", "2020-01-01T00:00:00+01:00", "--type", "Paid")).toEqual([3, 4]);
    expect(await positions("--until", "1h")).toEqual([]);
    for (const wrong of ["5", "2026-11-18T08:00", "yesterday", "2026-13-01", "3w"])
      expect((await run(["read", directory, "--since", wrong])).exitCode).toBe(2);
  });

  test("makes no log where there is none, and says so", async () => {
    const directory = makeScratch();
    const message = `there is no log in ${directory}: is it the right directory, and is the share mounted?`;
    for (const name of ["read", "tail", "head", "consumers", "verify", "export", "rebuild"])
      expect({ name, ...(await run([name, directory])) }).toEqual({
        name,
        exitCode: 66,
        stdout: "",
        stderr: `holdfast: ${message}\n`,
      });
    const { exitCode, stderr } = await run(["read", directory, "--json"]);
    expect({ exitCode, ...(JSON.parse(stderr) as object) }).toMatchObject({
      exitCode: 66,
      error: { code: "NO_LOG", action: "fix-caller", message, exitCode: 66 },
    });
    expect(readdirSync(directory)).toEqual([]);
  });

  test("appends what was read, and what is there already is not added twice", async () => {
    const [one, other] = [makeScratch(), makeScratch()];
    await run(["append", one, "--type", "Sold", "--tag", "sku:1"]);
    const { stdout } = await run(["read", one]);
    for (const [log, repeated] of [
      [one, true],
      [other, false],
      [other, true],
    ] as const)
      expect(JSON.parse((await run(["append", log], { input: stdout })).stdout)).toEqual({
        first: 1,
        last: 1,
        repeated,
      });
  });

  test("finds a log by its name in a store, and makes a new one on the ground of the store", async () => {
    const directory = makeScratch();
    await using store = await openStore(directory);
    expect((await run(["append", directory, "--type", "A"])).exitCode).toBe(0);
    expect((await run(["append", directory, "--log", "other", "--type", "B"])).exitCode).toBe(0);
    expect(readdirSync(join(directory, "events")).sort()).toEqual(["main", "other"]);
    expect(existsSync(join(directory, "events", "other", ".holdfast"))).toBe(false);
    expect(await (await store.events("other")).head()).toBe(1);
    expect(linesOf((await run(["read", directory, "--log", "other"])).stdout)).toMatchObject([{ type: "B" }]);
    expect((await run(["head", directory])).stdout).toBe("1\n");
    expect((await run(["verify", directory, "--log", "other"])).stdout).toContain("ok: 1 event(s) checked.");
    expect((await run(["read", directory, "--log", "missing"])).exitCode).toBe(66);
    expect((await run(["read", directory, "--log", "x".repeat(200)])).exitCode).toBe(2);
  });

  test("refuses wrong usage with 2", async () => {
    const directory = await newLog();
    for (const args of [
      ["--query", "{}", "--type", "A"],
      ["--after", "x"],
      ["--limit", "-1"],
      ["--query", '"some"'],
      ["--up-to", "1e99"],
    ])
      expect({ args, ...(await run(["read", directory, ...args])) }).toMatchObject({ args, exitCode: 2, stdout: "" });
  });
});

describe("events tail", () => {
  test("prints what comes, until it is told to end", async () => {
    const directory = await newLog();
    const store = await openFor(directory);
    const controller = new AbortController();
    const written = { stdout: "", stderr: "" };
    const pipes = {
      stdout: { write: (text: string) => (written.stdout += text) },
      stderr: { write: (text: string) => (written.stderr += text) },
    };
    const running = runCommandLine(["events", "tail", directory, "--type", "Sold"], pipes, controller.signal);
    await vi.waitFor(() => expect(written.stderr).toContain("after position 4"));
    await store.append([
      { type: "Paid", data: 1 },
      { type: "Sold", data: 2 },
    ]);
    await vi.waitFor(() => expect(linesOf(written.stdout)).toMatchObject([{ position: 6, type: "Sold" }]));
    controller.abort(new Error("over"));
    expect(await running).toBe(0);
  });

  test("catches up first when it is asked to", async () => {
    const directory = await newLog();
    const tail = new HoldfastProcess(["events", "tail", directory, "--after", "2"]);
    expect(JSON.parse(await tail.hear())).toMatchObject({ position: 3 });
    expect(JSON.parse(await tail.hear())).toMatchObject({ position: 4 });
    const store = await openFor(directory);
    await store.append({ type: "A", data: 1 });
    expect(JSON.parse(await tail.hear())).toMatchObject({ position: 5 });
    tail.kill("SIGTERM");
    expect(await tail.ended).toMatchObject({ exitCode: 0, signal: null });
  });
});

describe("events verify", () => {
  test("says that a log is sound, to people and to programs", async () => {
    const directory = await newLog();
    expect(await run(["verify", directory])).toEqual({ exitCode: 0, stdout: "ok: 4 event(s) checked.\n", stderr: "" });
    const { stdout } = await run(["verify", directory, "--json"]);
    expect(linesOf(stdout)).toEqual([{ part: "log", directory, ok: true, checked: 4, problems: [] }]);
  });

  test("ends with 5 for damage, and names file, line and byte; also when the log cannot be opened any more", async () => {
    const directory = await newLog();
    const segment = join(directory, "segments/0000000001.ndjson");
    truncateSync(segment, 700);
    const { exitCode, stdout, stderr } = await run(["verify", directory]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 5, stderr: "" });
    expect(stdout).toMatch(/^damage +\S+0000000001\.ndjson, line 3, byte \d+\n +This line is incomplete\.\n +Restore/);
    expect(stdout).toMatch(/\nnote [^]*the log is good[^]*\ndamaged: 1 event\(s\) checked\.\n$/);
    const json = await run(["verify", directory, "--json"]);
    expect(json.exitCode).toBe(5);
    expect(linesOf(json.stdout)).toMatchObject([
      { ok: false, problems: [{ severity: "damage", path: segment, line: 3 }, {}, {}] },
    ]);
    expect((await run(["read", directory])).exitCode).toBe(5);
    expect((await run(["append", directory, "--type", "A"])).exitCode).toBe(5);
  });

  test("tells remedies for damage that work: read, export and repair keep all that is whole", async () => {
    const directory = await newLog();
    const segment = join(directory, "segments/0000000001.ndjson");
    const text = readFileSync(segment, "latin1");
    // The second append, of the positions 2 and 3.
    writeFileSync(segment, text.replace('"sku":2', '"sku":9'), "latin1");
    const { stdout: told } = await run(["verify", directory]);
    const upTo = /events read DIR (--up-to \d+)/.exec(told.replace(/\s+/g, " "))?.[1]?.split(" ") ?? [];
    expect(upTo).toEqual(["--up-to", "1"]);
    const read = await run(["read", directory, ...upTo]);
    expect({ exitCode: read.exitCode, lines: linesOf(read.stdout) }).toMatchObject({
      exitCode: 0,
      lines: [{ type: "Sold", data: { sku: 1 }, position: 1 }],
    });
    expect(linesOf((await run(["read", directory, ...upTo, "--tag", "sku:1", "--backwards"])).stdout)).toHaveLength(1);
    expect((await run(["read", directory, "--up-to", "2"])).exitCode).toBe(5);
    const copy = join(makeScratch(), "copy");
    const exported = await run(["export", directory, ...upTo]);
    expect(exported.exitCode).toBe(0);
    expect((await run(["import", copy], { input: exported.stdout })).stdout).toBe(
      "Imported 1 event(s), up to position 1.\n",
    );
    expect((await run(["export", directory])).exitCode).toBe(5);
    const repaired = await run(["verify", directory, "--repair"]);
    expect(repaired.exitCode).toBe(0);
    expect(repaired.stdout).toMatch(
      /^damage [^]*Repaired: 2 event\(s\) are lost[^]*\nrepaired: 4 event\(s\) checked\. Verify it again\.\n$/,
    );
    const { stdout } = await run(["read", directory]);
    expect(linesOf(stdout)).toMatchObject([
      { type: "Sold", position: 1 },
      { type: "holdfast:lost", position: 2 },
      { type: "holdfast:lost", position: 3 },
      { type: "Paid", data: "é\u2028", position: 4 },
    ]);
    expect((await run(["append", directory, "--type", "A"])).stdout).toBe('{"first":5,"last":5,"repeated":false}\n');
  });

  test("shows what it is about, and nothing else, to a terminal", async () => {
    const directory = await newLog();
    appendFileSync(join(directory, "segments/0000000001.ndjson"), "torn");
    const { exitCode, stdout, stderr } = await run(["verify", directory], { isTTY: true });
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(
      /^note +\S+, byte \d+\n +\d+ bytes follow the published end[^]*\nok: 4 event\(s\) checked\.\n$/,
    );
    expect(stderr).toMatch(/^\rverified bytes: [^]*100 % \((\d+) of \1\)\r +\r$/);
    expect((await run(["verify", directory, "--json"], { isTTY: true })).stderr).toBe("");
  });

  test("moves an index aside that is of no use", async () => {
    const directory = await newLog();
    mkdirSync(join(directory, "index"), { recursive: true });
    writeFileSync(join(directory, "index/0000000000-0000000000.idx"), "nothing");
    expect((await run(["verify", directory])).stdout).toMatch(/^leftover /);
    const { exitCode, stdout } = await run(["verify", directory, "--repair"]);
    expect({ exitCode, stdout }).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("Repaired:") as string });
    expect(readdirSync(join(directory, "aside"))).toHaveLength(1);
    expect((await run(["verify", directory])).stdout).toBe("ok: 4 event(s) checked.\n");
  });
});

describe("events export and import", () => {
  test("bring a log into another one, also of the other mode, with everything that it says", async () => {
    const directory = await newLog();
    const store = await openFor(directory);
    await store.addTags([1], ["late"]);
    await store.append({ type: "Sold", data: 9 }, { condition: { failIfEventsMatch: { tags: ["late"] }, after: 1 } });
    const { stdout: exported } = await run(["export", directory]);
    expect(linesOf(exported).at(-1)).toMatchObject({ kind: "event export end", body: { lines: 5, position: 5 } });
    const copy = join(makeScratch(), "copy");
    expect(await run(["import", copy, "--mode", "share"], { input: exported })).toMatchObject({
      exitCode: 0,
      stdout: "Imported 5 event(s), up to position 5.\n",
    });
    expect(JSON.parse(readFileSync(join(copy, "log.json"), "utf8"))).toMatchObject({ body: { mode: "share" } });
    expect((await run(["read", copy])).stdout).toBe((await run(["read", directory])).stdout);
    expect((await run(["read", copy, "--tag", "late"])).stdout).toContain('"position":1');
    const [, ...lines] = (await run(["export", copy])).stdout.split("\n").map(withoutCrc);
    expect(lines).toEqual(exported.split("\n").map(withoutCrc).slice(1));
    expect((await run(["verify", copy])).stdout).toBe("ok: 5 event(s) checked.\n");
    // It is a log like any other.
    expect((await run(["append", copy, "--type", "A"])).stdout).toContain('"first":6');
    const repeated = await run(["append", copy], {
      input: '{"type":"Sold","data":{"sku":2},"tags":["sku:2","till:3"],"id":"two"}',
    });
    expect(repeated.stdout).toBe('{"first":2,"last":2,"repeated":true}\n');
  });

  test("importing again adds nothing, and goes on where an import was interrupted", async () => {
    const directory = await newLog();
    const { stdout: exported } = await run(["export", directory]);
    const copy = join(makeScratch(), "copy");
    await run(["import", copy], { input: exported });
    const again = await run(["import", copy, "--json"], { input: exported });
    expect(linesOf(again.stdout)).toEqual([{ directory: copy, added: 0, position: 4 }]);
    const store = await openFor(directory);
    await store.append({ type: "More", data: 1 });
    const more = await run(["import", copy, "--json"], { input: (await run(["export", directory])).stdout });
    expect(linesOf(more.stdout)).toEqual([{ directory: copy, added: 1, position: 5 }]);
    // An older export of the same log is its beginning.
    expect((await run(["import", copy], { input: exported })).exitCode).toBe(0);
    expect((await run(["read", copy])).stdout).toBe((await run(["read", directory])).stdout);
  });

  test("is refused, and changes nothing, where the log has something else", async () => {
    const [one, two] = [await newLog(), await newLog()];
    const { stdout: exported } = await run(["export", one]);
    const before = await run(["read", two]);
    const { exitCode, stderr } = await run(["import", two, "--json"], { input: exported });
    expect(exitCode).toBe(5);
    expect(linesOf(stderr)).toMatchObject([{ error: { code: "LOG_REWOUND", position: 1 } }]);
    expect(await run(["read", two])).toEqual(before);
    const third = join(makeScratch(), "third");
    await run(["import", third], { input: exported });
    await run(["append", third, "--type", "Own"]);
    const store = await openFor(one);
    await store.append({ type: "More", data: 1 });
    const later = await run(["import", third, "--json"], { input: (await run(["export", one])).stdout });
    expect(linesOf(later.stderr)).toMatchObject([{ error: { code: "LOG_REWOUND", position: 5 } }]);
  });

  test("an export that was cut off or altered anywhere is refused; what is no export makes no log", async () => {
    const directory = await newLog();
    const { stdout: exported } = await run(["export", directory]);
    const lines = exported.split(/(?<=\n)/);
    const broken = [
      ...[1, 2, 3, 4].map((count) => lines.slice(0, count).join("")),
      exported.slice(0, -1),
      exported.slice(0, -30),
      lines.toSpliced(2, 1).join(""),
      lines.toSpliced(-2, 1).join(""),
      lines.toSpliced(2, 2, lines[3] ?? "", lines[2] ?? "").join(""),
      exported.replace('"sku":2', '"sku":3'),
      exported.replace('"position":4,"last"', '"position":5,"last"'),
    ];
    for (const [index, input] of broken.entries()) {
      const copy = join(makeScratch(), "copy");
      const { exitCode, stdout, stderr } = await run(["import", copy, "--json"], { input });
      expect({ index, exitCode, stdout }).toEqual({ index, exitCode: 5, stdout: "" });
      expect(linesOf(stderr)).toMatchObject([{ error: { code: "CORRUPT" } }]);
      // Whatever came in is sound, and the whole export completes it.
      expect((await run(["verify", copy])).exitCode).toBe(0);
      expect((await run(["import", copy], { input: exported })).exitCode).toBe(0);
      expect((await run(["read", copy])).stdout).toBe((await run(["read", directory])).stdout);
    }
    for (const input of ["", "\n", "{}\n", '{"type":"A","data":1}\n', "x".repeat(100)]) {
      const copy = makeScratch();
      expect({ input, ...(await run(["import", copy], { input })) }).toMatchObject({ input, exitCode: 5 });
      expect(readdirSync(copy)).toEqual([]);
    }
  });

  test("a log of many segments stays what it is, and gets as many again as it needs", async () => {
    const directory = join(makeScratch(), "log");
    const filler = "x".repeat(100_000);
    await using store = await openEvents(directory, { durability: "none" });
    for (let count = 0; count < 200; count++)
      await store.append({ type: "A", data: { count, filler }, tags: [`n:${count % 7}`] });
    const copy = join(makeScratch(), "copy");
    const seen: string[] = [];
    const { stdout: exported } = await run(["export", directory]);
    const imported = await run(["import", copy], { input: [exported], isTTY: true });
    seen.push(imported.stderr);
    expect(imported.stdout).toBe("Imported 200 event(s), up to position 200.\n");
    expect(seen.join("")).toContain("imported events: 100 % (200 of 200)");
    expect(readdirSync(join(copy, "segments")).length).toBeGreaterThan(2);
    expect((await run(["verify", copy])).stdout).toContain("ok: 200 event(s) checked.\n");
    const rebuilt = await run(["rebuild", copy, "--json"]);
    const [report] = linesOf(rebuilt.stdout) as { segments: number; events: number }[];
    expect(report?.segments).toBe(readdirSync(join(copy, "segments")).length - 1);
    expect(readdirSync(join(copy, "index"))).toHaveLength(report?.segments ?? 0);
    expect((await run(["verify", copy])).stdout).toBe("ok: 200 event(s) checked.\n");
    const wanted = await run(["read", directory, "--tag", "n:3"]);
    expect(linesOf(wanted.stdout)).toHaveLength(29);
    expect(await run(["read", copy, "--tag", "n:3"])).toEqual(wanted);
    // The old ones are still there.
    await run(["rebuild", copy]);
    expect(readdirSync(join(copy, "aside")).length).toBeGreaterThan(0);
  });
});

describe("as processes in a pipe", () => {
  test("one exports what another imports", async () => {
    const directory = await newLog();
    const copy = join(makeScratch(), "copy");
    const from = new HoldfastProcess(["events", "export", directory]);
    const to = new HoldfastProcess(["events", "import", copy, "--quiet"]);
    to.tell((await from.ended).stdout);
    to.endInput();
    expect(await to.ended).toMatchObject({
      exitCode: 0,
      stdout: "Imported 4 event(s), up to position 4.\n",
      stderr: "",
    });
  });

  test("an append is told when it is durable, while the pipe stays open", async () => {
    const directory = join(makeScratch(), "new");
    const append = new HoldfastProcess(["events", "append", directory, "--quiet"]);
    for (const position of [1, 2, 3]) {
      append.tell('{"type":"A","data":1}\n');
      expect(JSON.parse(await append.hear())).toEqual({ first: position, last: position, repeated: false });
    }
    append.endInput();
    expect(await append.ended).toMatchObject({ exitCode: 0, stderr: "" });
  });

  test("many at once append to one log, and nothing is lost", async () => {
    const directory = join(makeScratch(), "new");
    const writers = [1, 2, 3, 4].map(
      () => new HoldfastProcess(["events", "append", directory, "--quiet", "--timeout", "60s"]),
    );
    for (const [index, writer] of writers.entries()) {
      for (let count = 0; count < 25; count++)
        writer.tell(`{"type":"A","data":[${index},${count}],"id":"${index}-${count}"}\n`);
      writer.endInput();
    }
    for (const writer of writers) expect(await writer.ended).toMatchObject({ exitCode: 0, stderr: "" });
    const { stdout } = await run(["read", directory]);
    expect(linesOf(stdout).map(({ position }) => position)).toEqual(
      Array.from({ length: 100 }, (_, index) => index + 1),
    );
    expect(new Set(linesOf(stdout).map(({ id }) => id)).size).toBe(100);
    expect((await run(["verify", directory])).stdout).toContain("ok: 100 event(s) checked.");
  });

  test("a reader that goes away ends it quietly, with 0", async () => {
    const directory = join(makeScratch(), "log");
    await using store = await openEvents(directory, { durability: "none" });
    for (let count = 0; count < 20; count++) await store.append({ type: "A", data: "x".repeat(100_000) });
    for (const name of ["read", "export"]) {
      const reader = new HoldfastProcess(["events", name, directory]);
      await reader.hear();
      reader.stopListening();
      expect(await reader.ended).toMatchObject({ exitCode: 0, signal: null, stderr: "" });
    }
    const tail = new HoldfastProcess(["events", "tail", directory, "--after", "0", "--json"]);
    await tail.hear();
    tail.stopListening();
    // Time passes: so that the pipe is closed by then. If not, the next write finds it closed.
    await sleep(50);
    await store.append({ type: "A", data: 1 });
    expect(await tail.ended).toMatchObject({ exitCode: 0, signal: null, stderr: "" });
  });

  test("Ctrl-C ends tail with 0, and those that wait for their input as a signal does", async () => {
    const directory = await newLog();
    const tail = new HoldfastProcess(["events", "tail", directory, "--after", "3"]);
    await tail.hear();
    tail.kill("SIGINT");
    expect(await tail.ended).toMatchObject({ exitCode: 0, signal: null });
    const append = new HoldfastProcess(["events", "append", directory]);
    append.tell('{"type":"A","data":1}\n');
    expect(JSON.parse(await append.hear())).toMatchObject({ first: 5 });
    append.kill("SIGINT");
    expect(await append.ended).toMatchObject({ exitCode: null, signal: "SIGINT" });
    const copy = join(makeScratch(), "copy");
    const importing = new HoldfastProcess(["events", "import", copy, "--quiet"]);
    importing.tell((await run(["export", directory])).stdout.split("\n").slice(0, 2).join("\n"));
    await vi.waitFor(() => expect(readdirSync(copy)).toContain("log.json"), 20_000);
    importing.kill("SIGTERM");
    expect(await importing.ended).toMatchObject({ exitCode: null, signal: "SIGTERM" });
  });
});

test("every verb of `events` has help with an example, and the exit codes at the end", async () => {
  for (const verb of ["append", "read", "tail", "head", "verify", "export", "import", "rebuild"]) {
    const { exitCode, stdout } = await run([verb, "--help"]);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/\nExamples?:\n( {2}.*\n)*? {2}.*holdfast events /);
    expect(stdout).toContain(`holdfast events ${verb} `);
    expect(stdout).toMatch(/\nExit codes:\n( +\d+ {2}\S.*\n)+$/);
    expect(stdout).toContain("--json");
  }
  expect((await run([])).exitCode).toBe(2);
  expect((await run(["raed", "."])).exitCode).toBe(2);
});

function withoutCrc(line: string): string {
  return line.replace(/"(crc|last)":"[0-9a-f]{8}"/g, "");
}
