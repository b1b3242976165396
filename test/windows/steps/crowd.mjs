// The steps in which a crowd of processes works on one store and some are killed: Windows processes, or both kinds.
import { spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { windowsPath } from "../wine.mjs";

const leaseMs = 3000;
/** Kills are spread over the work, but no two are further apart than this. */
const killEveryMsMax = 6000;
/** Without a pause, processes of Linux are so much faster than those under Wine that these get few turns. */
const restOfLinuxMs = 400;
/** The longest time that the crowd may take for its figures, and a member for a round when nobody is killed any more. */
const workMsMax = 240_000;
const calmMsMax = 60_000;

export async function runCrowd(prefix, tools) {
  const members = Array.from({ length: 4 }, (_, index) => ({ name: `w${index + 1}`, isWindows: true }));
  return await new Crowd(prefix, tools, "crowd", members).run();
}

export async function runMixedCrowd(prefix, tools) {
  const members = Array.from({ length: 6 }, (_, index) => ({ name: `m${index + 1}`, isWindows: index % 2 === 0 }));
  return await new Crowd(prefix, tools, "mixed", members).run();
}

class Crowd {
  #prefix;
  #tools;
  #directory;
  #members;
  #journals = [];
  #problems = [];
  #kills = 0;

  constructor(prefix, tools, name, members) {
    this.#prefix = prefix;
    this.#tools = tools;
    // On the drive C: of Windows, where names are case-insensitive.
    this.#directory = join(prefix.driveC, name);
    this.#members = members.map((member) => ({ ...member, starts: 0 }));
  }

  async run() {
    mkdirSync(join(this.#directory, "shared"), { recursive: true });
    for (const member of this.#members) this.#start(member);
    await this.#workAndKill();
    await this.#calmDown();
    writeFileSync(join(this.#directory, "finish"), "");
    await this.#mustEnd();
    await this.#audit();
    const counts = this.#counts();
    for (const [part, count] of Object.entries(counts))
      if (count < this.#tools.atLeast.appends) this.#problems.push(`only ${count} operations of ${part}`);
    if (this.#kills < this.#tools.atLeast.kills) this.#problems.push(`only ${this.#kills} kills`);
    const text = Object.entries(counts).map(([part, count]) => `${count} ${part}`);
    return {
      figures: `${text.join(", ")}, ${this.#kills} kills, ${this.#lost()} sessions lost`,
      problems: this.#problems,
    };
  }

  #start(member) {
    const { name, isWindows } = member;
    member.starts++;
    member.journal = join(this.#directory, `${name}-${member.starts}.jsonl`);
    writeFileSync(member.journal, "");
    this.#journals.push(member.journal);
    const local = isWindows ? (path) => this.#windowsPath(path) : (path) => path;
    const at = (path) => local(join(this.#directory, path));
    const orders = {
      name,
      store: at("store"),
      shared: at("shared"),
      journal: local(member.journal),
      finish: at("finish"),
      leaseMs,
      turn: member.starts,
      restMs: isWindows ? 0 : restOfLinuxMs,
    };
    const started = this.#run(isWindows, "crowd-member.js", [JSON.stringify(orders)]);
    member.child = started.child;
    member.ending = undefined;
    member.isKilled = false;
    member.ended = started.ended.then((ending) => {
      member.ending = ending;
      if (!member.isKilled && ending.code !== 0)
        this.#problems.push(`${name} ended by itself with ${ending.code ?? ending.signal}: ${this.#lastWords(member)}`);
    });
  }

  #run(isWindows, program, args) {
    const log = join(this.#prefix.directory, `${program}.log`);
    const path = join(this.#tools.programs, program);
    if (isWindows) return this.#prefix.start([windowsPath(path), ...args], { log, cwd: this.#prefix.driveC });
    const file = openSync(log, "a");
    const child = spawn(process.execPath, [path, ...args], { stdio: ["ignore", file, file] });
    closeSync(file);
    return { child, ended: new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal }))) };
  }

  async #workAndKill() {
    const { appends, kills } = this.#tools.atLeast;
    const until = performance.now() + workMsMax;
    const progress = () => Math.min(...Object.values(this.#counts())) / appends;
    let lastKillAt = performance.now();
    while ((this.#kills < kills || progress() < 1) && performance.now() < until && this.#problems.length === 0) {
      await sleep(200);
      if (progress() < this.#kills / kills && performance.now() - lastKillAt < killEveryMsMax) continue;
      const member = this.#members[this.#kills % this.#members.length];
      // Not before it has done something: a kill at the start of a process proves little.
      if (member.ending !== undefined || !this.#entries(member.journal).some(({ kind }) => kind === "done")) continue;
      await this.#kill(member);
      lastKillAt = performance.now();
      this.#start(member);
    }
  }

  async #kill(member) {
    member.isKilled = true;
    member.child.kill("SIGKILL");
    await member.ended;
    this.#kills++;
  }

  /** When nobody is killed any more, every member must finish a round. */
  async #calmDown() {
    const rounds = (member) => this.#entries(member.journal).filter(({ kind }) => kind === "round").length;
    const before = new Map(this.#members.map((member) => [member, rounds(member)]));
    const stuck = () => this.#members.filter((member) => rounds(member) <= before.get(member));
    const until = performance.now() + calmMsMax;
    while (stuck().length > 0 && performance.now() < until && this.#problems.length === 0) await sleep(200);
    if (this.#problems.length === 0)
      for (const { name } of stuck()) this.#problems.push(`${name} got nothing done within ${calmMsMax} ms of peace`);
  }

  async #mustEnd() {
    await Promise.race([
      Promise.all(this.#members.map(({ ended }) => ended)),
      sleep(calmMsMax, undefined, { ref: false }),
    ]);
    for (const member of this.#members) {
      if (member.ending !== undefined) continue;
      this.#problems.push(`${member.name} did not end when it was told to`);
      await this.#kill(member);
    }
  }

  /** By a process of either kind that takes part, because each sees the folder in its own way. */
  async #audit() {
    for (const isWindows of new Set(this.#members.map((member) => member.isWindows))) {
      const local = isWindows ? (path) => this.#windowsPath(path) : (path) => path;
      const findings = join(this.#directory, `findings-${isWindows}.json`);
      const journals = this.#journals.map(local);
      const orders = join(this.#directory, "audit.json");
      const at = (path) => local(join(this.#directory, path));
      writeFileSync(orders, JSON.stringify({ store: at("store"), shared: at("shared"), journals }));
      const { ended } = this.#run(isWindows, "crowd-audit.js", [local(findings), local(orders)]);
      const { code, signal } = await ended;
      if (existsSync(findings)) this.#problems.push(...JSON.parse(readFileSync(findings, "utf8")));
      else this.#problems.push(`the audit ended with ${code ?? signal}`);
    }
  }

  #windowsPath(path) {
    return path.replace(this.#prefix.driveC, "C:").replaceAll("/", "\\");
  }

  #entries(journal) {
    const lines = readFileSync(journal, "utf8").split("\n").slice(0, -1);
    return lines.map((line) => JSON.parse(line));
  }

  #counts() {
    const counts = { locks: 0, events: 0, publish: 0, handoff: 0, objects: 0, files: 0 };
    for (const entry of this.#journals.flatMap((journal) => this.#entries(journal)))
      if (entry.kind === "done") counts[entry.part]++;
    return counts;
  }

  #lost() {
    return this.#journals.flatMap((journal) => this.#entries(journal)).filter(({ kind }) => kind === "lost").length;
  }

  #lastWords({ journal }) {
    const { code, message, stack } = this.#entries(journal).find(({ kind }) => kind === "failed") ?? {};
    return `${code} ${message}\n    ${stack}`;
  }
}
