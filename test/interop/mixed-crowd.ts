// Crowds of Python and Node processes on one lock and one box, some of which are killed.
import { spawn, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { openHandoff } from "../../src/handoff/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { until } from "../waiting.ts";
import { client } from "./python.ts";

const languages = ["python", "node"] as const;
type Language = (typeof languages)[number];

interface Orders {
  readonly task: "hold" | "produce" | "consume";
  readonly keys?: readonly string[];
  readonly [name: string]: unknown;
}

class Member {
  readonly name: string;
  readonly language: Language;
  readonly orders: Orders;
  readonly lines: string[] = [];
  readonly ended: Promise<unknown>;
  readonly #child: ChildProcess;
  #complaints = "";

  constructor(name: string, language: Language, orders: Orders) {
    this.name = name;
    this.language = language;
    this.orders = orders;
    const [program, file] = language === "python" ? ["python3", "member.py"] : [process.execPath, "member.mjs"];
    const args = [join(import.meta.dirname, file), JSON.stringify({ ...orders, name })];
    const env = { ...process.env, PYTHONPATH: client };
    this.#child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    let rest = "";
    this.#child.stdout!.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      this.lines.push(...lines);
    });
    this.#child.stderr!.setEncoding("utf8").on("data", (text: string) => (this.#complaints += text));
    this.ended = once(this.#child, "close");
  }

  get isOver(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.ended;
  }

  /** Throws if it ended with a failure of its own. */
  check(): void {
    if (this.#child.exitCode !== null)
      expect([this.name, this.#child.exitCode, this.#complaints]).toEqual([this.name, 0, ""]);
  }
}

class Crowd {
  readonly killed = new Set<string>();
  #members: Member[] = [];
  #count = 0;

  constructor() {
    onTestFinished(async () => {
      for (const member of this.#members) await member.kill();
    });
  }

  add(language: Language, orders: Orders): void {
    this.#members.push(new Member(`${language}-${++this.#count}`, language, orders));
  }

  /** Kills one of those that still run, and starts another that does what is left. */
  async replaceOne(): Promise<void> {
    const running = this.#members.filter(({ isOver }) => !isOver);
    const member = running[Math.floor(Math.random() * running.length)];
    if (member === undefined) return;
    await member.kill();
    this.killed.add(member.name);
    this.#members = this.#members.filter((each) => each !== member);
    const { keys } = member.orders;
    const left = keys?.filter((key) => !member.lines.includes(key));
    this.add(member.language, left === undefined ? member.orders : { ...member.orders, keys: left });
  }

  isOver(task: Orders["task"]): boolean {
    for (const member of this.#members) member.check();
    return this.#members.every(({ orders, isOver }) => orders.task !== task || isOver);
  }
}

interface Size {
  readonly kills: number;
  readonly processes: number;
}

const linesOf = (path: string): string[] =>
  existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];

/** Kills one process for each `every` things that `progress` counts. */
async function disturb(crowd: Crowd, kills: number, every: number, progress: () => number): Promise<void> {
  for (let kill = 1; kill <= kills; kill++) {
    await until(() => progress() >= kill * every);
    await crowd.replaceOne();
  }
}

/** All members hold one lock, one after the other. Returns how often each language had it. */
export async function holdTogether({
  kills,
  processes,
  rounds,
}: Size & { readonly rounds: number }): Promise<Record<Language, number>> {
  const scratch = makeScratch();
  const journal = join(scratch, "journal");
  const crowd = new Crowd();
  for (const language of languages)
    for (let process = 0; process < processes; process++)
      crowd.add(language, { task: "hold", lock: join(scratch, "job.lock"), journal, rounds });
  await disturb(crowd, kills, rounds / 2, () => linesOf(journal).length);
  await until(() => crowd.isOver("hold"));
  const counts = { python: 0, node: 0 };
  const intruders: string[] = [];
  let inside: string | undefined;
  for (const line of linesOf(journal)) {
    const [what = "", name = ""] = line.split(" ");
    const isFree = inside === undefined || crowd.killed.has(inside);
    if (what === "begin" ? !isFree : inside !== name) intruders.push(`${line} while ${inside ?? "nobody"} was inside`);
    inside = what === "begin" ? name : undefined;
    if (what === "end") counts[name.startsWith("python") ? "python" : "node"]++;
  }
  expect(intruders).toEqual([]);
  return counts;
}

/**
 * Python and Node publish and work tickets in one box; every third key is published by both. Returns how many results of
 * each language count.
 */
export async function handOverTogether({
  kills,
  processes,
  keys,
}: Size & { readonly keys: number }): Promise<Record<Language, number>> {
  const scratch = makeScratch();
  const [box, journal] = [join(scratch, "box"), join(scratch, "journal")];
  writeFileSync(journal, "");
  const handoff = await openHandoff(box);
  onTestFinished(() => handoff.close());
  const all = Array.from({ length: keys }, (_, index) => `k/${index}`);
  const crowd = new Crowd();
  for (const [number, language] of languages.entries()) {
    const own = all.filter((_, index) => index % 3 === number || index % 3 === 2);
    for (let process = 0; process < processes; process++) {
      crowd.add(language, { task: "produce", box, keys: own.filter((_, index) => index % processes === process) });
      crowd.add(language, { task: "consume", box, journal });
    }
  }
  await disturb(crowd, kills, keys / (kills + 2), () => linesOf(journal).length);
  // First the ledger: a listing may miss a ticket that moves on meanwhile.
  await until(() => crowd.isOver("produce") && filesBelow(box, "ledger").length >= keys);
  const waiting = ["incoming", "delayed", "parked", "processing", "staging", "lanes"];
  await until(() => crowd.isOver("produce") && waiting.every((state) => filesBelow(box, state).length === 0));
  const hashes = all.map((key) => createHash("sha256").update(key).digest("hex"));
  const ledger = filesBelow(box, "ledger");
  expect(ledger.toSorted()).toEqual(hashes.toSorted());
  expect(filesBelow(box, "error")).toEqual([]);
  expect(new Set(linesOf(journal).map((line) => line.split(" ")[0]))).toEqual(new Set(all));
  expect(await handoff.verify()).toMatchObject({ ok: true });
  const counts = { python: 0, node: 0 };
  for (const [index, key] of all.entries()) counts[workerOf(box, key, hashes[index]!)]++;
  return counts;
}

/** The language of the worker whose result is in the ledger. */
function workerOf(box: string, key: string, hash: string): Language {
  interface Entry {
    readonly key: string;
    readonly result: string;
  }
  const { body } = JSON.parse(readFileSync(join(box, "ledger", hash.slice(0, 3), hash), "utf8")) as {
    body: Entry & { entries?: Entry[] };
  };
  const entry = (body.entries ?? [body]).find((each) => each.key === key);
  return entry!.result.startsWith("python") ? "python" : "node";
}

function filesBelow(box: string, state: string): string[] {
  if (!existsSync(join(box, state))) return [];
  const entries = readdirSync(join(box, state), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}
