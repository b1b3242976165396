// The world of a history: a server, the processes that work on it with all four capabilities, and what they said.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openPostgres } from "../../../src/postgres/index.ts";
import { until } from "../../waiting.ts";
import type { PostgresServer } from "../server.ts";
import { Report } from "./report.ts";
import { nowUs, Outages } from "./waits.ts";

const program = fileURLToPath(new URL("worker.mjs", import.meta.url));
const library = new URL("../../../dist/index.js", import.meta.url).href;

export const leaseMs = 5_000;

export interface WorkerOptions {
  /** Default: the location that the processes of this world use. */
  readonly url?: string;
  /** How wrong its wall clock is, or "jumps": each second by another hour. Default 0. */
  readonly clock?: number | "jumps";
}

export interface Worker {
  readonly name: string;
  readonly child: ChildProcess;
}

export class World {
  readonly report = new Report();
  readonly outages = new Outages();
  /** When the processes were asked to end. */
  endUs = Infinity;
  /** How long it took after faults until all work went on, in milliseconds. */
  readonly recoveries: number[] = [];
  readonly workers: Worker[] = [];
  /** The server that has the truth in the end. */
  server: PostgresServer;
  /** Where the processes find it. */
  url: string;
  /** Codes of errors that the processes meet besides those that every program must expect. */
  readonly #expected: readonly string[];
  readonly #cleanups: (() => void)[] = [];
  #count = 0;

  constructor(server: PostgresServer, expected: readonly string[]) {
    this.server = server;
    this.url = server.url;
    this.#expected = expected;
  }

  /** Makes what the processes work on. */
  async prepare(): Promise<void> {
    const store = await openPostgres(this.server.url);
    await (await store.objects()).createBucket("bucket", { versioning: "enabled" });
    await store.handoff("box");
    await store.events();
    await store.close();
  }

  start({ url = this.url, clock = 0 }: WorkerOptions = {}): Worker {
    const name = `worker-${++this.#count}`;
    const options = { library, url, name, leaseMs, clock, expected: this.#expected };
    const child = spawn(process.execPath, [program, JSON.stringify(options)], { stdio: ["pipe", "pipe", "inherit"] });
    createInterface({ input: child.stdout }).on("line", (line) => this.report.add(line, name));
    child.stdin.on("error", () => undefined);
    const worker = { name, child };
    this.workers.push(worker);
    return worker;
  }

  /** Waits until these have opened the store. */
  async ready(workers: readonly Worker[] = this.workers): Promise<void> {
    await this.until(() => workers.every(({ name }) => this.report.ready.has(name)));
  }

  async kill(worker: Worker): Promise<void> {
    worker.child.kill("SIGKILL");
    this.report.addDeath(worker.name);
    await once(worker.child, "close");
    this.workers.splice(this.workers.indexOf(worker), 1);
  }

  /** Lets the processes work for this long, and faults hit them at any moment of it. */
  async work(ms: number): Promise<void> {
    // Time passes: nothing else says when a fault hits.
    await sleep(ms);
  }

  /** Waits until every kind of work of every process goes on, and every group. Call it after faults. */
  async recover(): Promise<void> {
    const startMs = Date.now();
    const kinds = ["event", "ticket", "version", "lock"];
    const lanes = this.workers.flatMap(({ name }) => kinds.map((kind) => `${name} ${kind}`));
    for (let group = 0; group < 4; group++) lanes.push(`group-${group}`);
    await this.until(() => lanes.every((lane) => (this.report.progress.get(lane) ?? 0) > startMs));
    this.recoveries.push(Date.now() - startMs);
  }

  /** Lets all finish what they do. Each of them must come to its end. */
  async end(): Promise<void> {
    await this.ready();
    await this.work(1_000);
    this.endUs = nowUs();
    for (const { child } of this.workers) child.stdin?.end();
    await this.until(() => this.workers.every(({ name }) => this.report.closed.has(name)));
  }

  /** Waits, and throws if a process ends by itself meanwhile. */
  async until(hasHappened: () => boolean): Promise<void> {
    await until(() => {
      const fallen = this.workers.find(({ name, child }) => child.exitCode !== null && !this.report.closed.has(name));
      if (fallen !== undefined) throw new Error(`${fallen.name} ended by itself, with ${fallen.child.exitCode}.`);
      return hasHappened();
    });
  }

  /** Calls this when the world is over. */
  onOver(cleanup: () => void): void {
    this.#cleanups.push(cleanup);
  }

  /** Ends what is left. */
  destroy(): void {
    for (const { child } of this.workers) child.kill("SIGKILL");
    for (const cleanup of this.#cleanups) cleanup();
  }
}
