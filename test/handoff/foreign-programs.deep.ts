// The programs of examples/handoff, written from docs/format/handoff.md in Python and shell, together with ours:
// each ticket is done once, whichever program publishes it and whichever works it, and also when foreign workers die.
import { execFileSync, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { makeId } from "../../src/format/id.ts";
import { encodeRecord } from "../../src/format/record.ts";
import { committedKind } from "../../src/handoff/ledger/ledger.ts";
import { openHandoff } from "../../src/handoff/index.ts";
import { drain } from "../sites/boxes.ts";
import { makeScratch } from "../sites/scratch.ts";
import { numbers } from "../sites/event-logs.ts";
import { until } from "../waiting.ts";

type Box = Awaited<ReturnType<typeof openHandoff>>;

const examples = resolve(import.meta.dirname, "../../examples/handoff");

/** What the programs of a language need on this machine; undefined when all of it is there. */
function findMissing(tools: readonly string[]): string | undefined {
  return tools.find((tool) => spawnSync("sh", ["-c", `command -v ${tool}`]).status !== 0);
}

const languages = [
  { language: "Python", suffix: "py", tools: ["python3"] },
  { language: "shell", suffix: "sh", tools: ["sh", "gzip", "base64", "sha256sum", "link", "od", "awk"] },
] as const;

class Bench {
  readonly scratch: string = makeScratch();
  readonly box: string = join(this.scratch, "box");
  /** Where workers write down what they have worked: one line for each time. */
  readonly done: string = join(this.scratch, "done.txt");
  readonly #children = new Set<ChildProcess>();

  constructor() {
    onTestFinished(async () => {
      for (const child of this.#children) await kill(child);
    });
  }

  async open(): Promise<Box> {
    const handoff = await openHandoff(this.box);
    onTestFinished(() => handoff.close());
    return handoff;
  }

  /** A program that works one ticket: writes its first line down, and what it was told to do. */
  command(script = ""): string {
    const path = join(this.scratch, `command-${Math.random()}.sh`);
    writeFileSync(path, `#!/bin/sh\n${script}\nhead -n 1 "$1" >>"${this.done}"\necho worked\n`);
    chmodSync(path, 0o755);
    return path;
  }

  publish(suffix: string, files: Readonly<Record<string, string>>, key?: string): string {
    const paths = Object.entries(files).map(([name, text]) => {
      writeFileSync(join(this.scratch, name), text);
      return join(this.scratch, name);
    });
    const env = { ...process.env, ...(key === undefined ? {} : { KEY: key }) };
    return execFileSync(join(examples, `producer.${suffix}`), [this.box, ...paths], { env, encoding: "utf8" }).trim();
  }

  /** Works until nothing is left that can be claimed now. */
  workAll(suffix: string, command: string): void {
    const env = { ...process.env, UNTIL_EMPTY: "1" };
    execFileSync(join(examples, `consumer.${suffix}`), [this.box, command], { env, encoding: "utf8" });
  }

  /** A worker that goes on; a claim of it is due after a second. */
  startWorker(suffix: string, command: string): ChildProcess {
    const env = { ...process.env, HOLD_MS: "1000", HOLD_S: "1" };
    // A group of its own, so that a kill reaches the command that it runs.
    const child = spawn(join(examples, `consumer.${suffix}`), [this.box, command], {
      env,
      detached: true,
      stdio: "ignore",
    });
    this.#children.add(child);
    child.once("exit", () => this.#children.delete(child));
    return child;
  }

  worked(): string[] {
    return existsSync(this.done) ? readFileSync(this.done, "utf8").trim().split("\n").sort() : [];
  }

  /** Names of the files in a state, without directories. */
  ticketsIn(state: string): string[] {
    const directory = join(this.box, state);
    if (!existsSync(directory)) return [];
    const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  }
}

async function kill(child: ChildProcess): Promise<void> {
  const exited = once(child, "exit");
  process.kill(-child.pid!, "SIGKILL");
  await exited;
}

describe.each(languages)("programs in $language", ({ language, suffix, tools }) => {
  const missing = findMissing(tools);
  if (missing !== undefined) {
    it.skip(`are not run: this machine has no ${missing}`, () => undefined);
    return;
  }

  it.each(["producer", "consumer"])("refuse a folder without a box, and write nothing to it: %s", (program) => {
    const folder = makeScratch();
    const run = (...args: string[]) => spawnSync(join(examples, `${program}.${suffix}`), args, { encoding: "utf8" });
    expect(run(folder, "/bin/true")).toMatchObject({
      status: 1,
      stdout: "",
      stderr: `there is no box in ${folder}: is the share mounted?\n`,
    });
    expect(readdirSync(folder)).toEqual([]);
    expect(run(folder)).toMatchObject({ status: 2, stderr: expect.stringMatching(/^usage: \S+ BOX \S+\n$/) });
  });

  it("end when the share with their box is not there any more", async () => {
    const bench = new Bench();
    await (await bench.open()).close();
    const worker = bench.startWorker(suffix, bench.command());
    const exited = once(worker, "exit");
    await until(() => existsSync(join(bench.box, "parked")) || existsSync(join(bench.box, "foreign")));
    renameSync(join(bench.box, "box.json"), join(bench.scratch, "box.json"));
    expect(await exited).toEqual([1, null]);
  });

  it("publish tickets that our worker verifies and works, small and large", async () => {
    const bench = new Bench();
    const box = await bench.open();
    const big = "x".repeat(70_000);
    const ids = [
      bench.publish(suffix, { "a, {b} ü.txt": "small\n", "empty.txt": "" }),
      bench.publish(suffix, { "big.txt": big, "c.txt": "beside" }, "invoice/7"),
    ];
    await drain(box, async (delivery) => {
      const texts = await Promise.all(delivery.files.map(({ name }) => delivery.text(name)));
      expect(texts).toEqual(delivery.key === "invoice/7" ? [big, "beside"] : ["small\n", ""]);
      await delivery.ack();
    });
    expect(bench.ticketsIn("archive").sort()).toEqual(ids.map((id) => `${id}-1.json`).sort());
    expect(bench.ticketsIn("foreign")).toEqual([]);
  });

  it("work our tickets, verify them, and commit to the same ledger", async () => {
    const bench = new Bench();
    const box = await bench.open();
    const meta = { inline: { "a.txt": "no" }, group: "no", key: 'quoted "text"' };
    const first = await box.publish({ "a, {b}.txt": "one\n", "z.txt": "" }, { key: "k/1", meta, priority: 0 });
    const second = await box.publish({ "a.txt": `two\n${"x".repeat(70_000)}` });
    const expired = await box.publish({ "a.txt": "expired\n" }, { expiresMs: 0 });
    const spoilt = await box.publish({ "a.txt": `spoilt\n${"x".repeat(70_000)}` });
    writeFileSync(join(bench.box, "data", spoilt.id.slice(-2), spoilt.id, "a.txt"), "altered\n");
    bench.workAll(suffix, bench.command());
    expect(bench.worked()).toEqual(["one", "two"]);
    expect(bench.ticketsIn("archive").sort()).toEqual([first, second].map(({ id }) => `${id}-1.json`).sort());
    expect(bench.ticketsIn("error").sort()).toEqual([expired, spoilt].map(({ id }) => `${id}-1.json`).sort());
    expect(bench.ticketsIn("notes").sort()).toEqual([expired, spoilt].map(({ id }) => `${id}-1.json`).sort());
    // The key is done for every program.
    expect(await box.publish({ "a.txt": "again" }, { key: "k/1" })).toMatchObject({ id: first.id, duplicate: true });
    bench.publish(suffix, { "b.txt": "again\n" }, "k/1");
    expect(await box.take()).toBeUndefined();
    expect(bench.ticketsIn("archive").filter((name) => name.endsWith("-1-duplicate.json"))).toHaveLength(1);
  });

  it("write no file outside of their directory, whatever a manifest says", async () => {
    const bench = new Bench();
    await (await bench.open()).close();
    const id = makeId(Date.now(), randomBytes(16));
    const text = "outside";
    const target = join(bench.scratch, "outside.txt");
    const name = `../../../../../../..${target}`;
    const file = { name, size: text.length, sha256: createHash("sha256").update(text).digest("hex") };
    const ticket = {
      ...{ id, key: id, isKeyed: false, files: [file], createdAt: new Date(), producer: { host: "h", pid: 1 } },
      ...{ priority: 5, inline: { [name]: Buffer.from(text).toString("base64") } },
    };
    mkdirSync(join(bench.box, "incoming/5/0000000001"), { recursive: true });
    const record = encodeRecord({ kind: "ticket", decode: (body) => body }, ticket);
    writeFileSync(join(bench.box, `incoming/5/0000000001/${id}-0.json`), record);
    bench.workAll(suffix, bench.command());
    expect(existsSync(target)).toBe(false);
    expect(bench.ticketsIn("error")).toEqual([`${id}-1.json`]);
  });

  it("try again what fails, fail what cannot succeed, and leave groups and damaged tickets to ours", async () => {
    const bench = new Bench();
    const box = await bench.open();
    const failed = await box.publish({ "a.txt": "never\n" });
    const grouped = await box.publish({ "a.txt": "grouped\n" }, { group: "g" });
    bench.workAll(suffix, bench.command('echo "no such customer" >&2; exit 65'));
    expect(bench.ticketsIn("error")).toEqual([`${failed.id}-1.json`]);
    const { id } = await box.publish({ "a.txt": "later\n" });
    bench.workAll(suffix, bench.command("echo busy >&2; exit 75"));
    const [delayed = ""] = bench.ticketsIn("delayed");
    const [, attempt = ""] = new RegExp(`^[0-9]{16}-${id}-([0-9]+).json$`).exec(delayed) ?? [];
    const delivered = new Map<string, number>();
    while (delivered.size < 2) {
      const next = (await box.take({ waitMs: 60_000 }))!;
      delivered.set(next.id, next.attempt);
      await next.ack();
    }
    expect(delivered).toEqual(
      new Map([
        [grouped.id, 1],
        [id, Number(attempt) + 1],
      ]),
    );
  });

  it("and ours together work each ticket of both once in the ledger, also when foreign workers are killed", async () => {
    const bench = new Bench();
    const box = await bench.open();
    const ids: string[] = [];
    for (const number of numbers(1, 6)) {
      ids.push((await box.publish({ "n.txt": `ours-${number}\n` })).id);
      ids.push(bench.publish(suffix, { "n.txt": `theirs-${number}\n` }));
    }
    // Killed in the middle of its work: the command never ends by itself.
    const stuck = bench.startWorker(suffix, bench.command("sleep 600"));
    await until(() => bench.ticketsIn("parked").length === 1);
    await kill(stuck);
    bench.startWorker(suffix, bench.command());
    await until(() => bench.worked().length >= 2);
    const ours: string[] = [];
    await using _ = box.consume(async (delivery) => {
      ours.push((await delivery.text("n.txt")).trim());
    });
    await until(() => bench.ticketsIn("archive").length === ids.length);
    expect(
      bench
        .ticketsIn("archive")
        .map((name) => name.slice(0, 36))
        .sort(),
    ).toEqual(ids.sort());
    expect(bench.ticketsIn("ledger")).toHaveLength(ids.length);
    const all = [...bench.worked(), ...ours];
    expect(new Set(all).size).toBe(ids.length);
    for (const state of ["incoming", "parked", "delayed", "error"]) expect(bench.ticketsIn(state)).toEqual([]);
  });

  it(`work on alone: what a killed worker in ${language} had claimed is done by the next one`, async () => {
    const bench = new Bench();
    await (await bench.open()).close();
    const id = bench.publish(suffix, { "n.txt": "one\n" });
    const stuck = bench.startWorker(suffix, bench.command("sleep 600"));
    await until(() => bench.ticketsIn("parked").length === 1);
    await kill(stuck);
    bench.startWorker(suffix, bench.command());
    await until(() => bench.ticketsIn("archive").length === 1);
    expect(bench.ticketsIn("archive")).toEqual([`${id}-2.json`]);
    expect(bench.worked()).toEqual(["one"]);
  });

  it("that take too long commit nothing: the result of our worker counts", async () => {
    const bench = new Bench();
    const box = await bench.open();
    const { id } = await box.publish({ "n.txt": "one\n" });
    // Its claim is over before its work is; it commits only what was not given back.
    const [started, go] = [join(bench.scratch, "started"), join(bench.scratch, "go")];
    bench.startWorker(suffix, bench.command(`touch "${started}"; until [ -e "${go}" ]; do sleep 0.05; done`));
    await until(() => existsSync(started));
    const delivery = await box.take({ waitMs: 60_000 });
    expect(delivery).toMatchObject({ id, attempt: 2 });
    writeFileSync(go, "");
    await until(() => bench.worked().length === 1);
    await delivery!.ack("ours");
    expect(bench.ticketsIn("archive")).toEqual([`${id}-2.json`]);
    const [ledger = ""] = bench.ticketsIn("ledger");
    expect(readFileSync(join(bench.box, "ledger", ledger.slice(0, 3), ledger), "utf8")).toContain('"result":"ours"');
  });
});

it("a result that a foreign worker commits after its time is the result, and our worker is told", async () => {
  const bench = new Bench();
  const box = await bench.open();
  const { id } = await box.publish({ "n.txt": "one\n" });
  await (await box.take())!.retry();
  const delivery = (await box.take({ waitMs: 60_000 }))!;
  // As by a foreign worker with the first claim that was stopped just before it committed.
  const committed = {
    key: id,
    id,
    claims: 1,
    replays: 0,
    holder: "late",
    at: new Date().toISOString(),
    outputs: [],
    sent: [],
  };
  const hash = createHash("sha256").update(id).digest("hex");
  mkdirSync(join(bench.box, "ledger", hash.slice(0, 3)), { recursive: true });
  writeFileSync(join(bench.box, "ledger", hash.slice(0, 3), hash), encodeRecord(committedKind, committed));
  await expect(delivery.ack("ours")).rejects.toMatchObject({ code: "CLAIM_LOST", id });
  expect(bench.ticketsIn("archive")).toEqual([`${id}-2.json`]);
  expect(bench.ticketsIn("processing")).toEqual([]);
});
