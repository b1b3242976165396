// Endurance of the console: it stays open beside processes that work on all parts of a store and are killed and stopped.
// Its memory must stay flat. When nothing happens it must cost almost nothing, and it must leave no trace in the store.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { lstatSync, readdirSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openStore } from "../../src/store.ts";
import { Chance } from "../processes/chance.ts";
import { Chaos } from "../processes/chaos.ts";
import { compiledModule } from "../processes/compiled-module.ts";
import { Crew } from "../processes/crew.ts";
import { ProcessFigures } from "./process-figures.ts";
import { Visitor } from "./visitor.ts";

export interface EnduranceOptions {
  /** How long the processes work, and are killed and stopped. */
  readonly stormSeconds: number;
  /** How long nothing happens afterwards. */
  readonly quietSeconds: number;
  readonly processes: number;
  readonly seed: number;
  /** The visitor asks for one action while nothing else happens: the audit must find its traces. Default false. */
  readonly acts?: boolean;
  /** The directory in which to make the store. Default: the directory of temporary files. */
  readonly parent?: string | undefined;
  readonly onSecond?: ((second: number, memoryMb: number) => void) | undefined;
}

export interface EnduranceResult {
  readonly operations: number;
  readonly kills: number;
  readonly stops: number;
  readonly samples: number;
  readonly answers: number;
  /** The memory of the console each second of the storm, in MB. */
  readonly memoryMb: readonly number[];
  /** Processor time for each second in which nothing happened, with one page open. */
  readonly idleCores: number;
  /** Findings: empty in a sound console. */
  readonly openForWriting: readonly string[];
  readonly osLocks: readonly string[];
  readonly asHolder: readonly string[];
  readonly complaints: readonly string[];
  /** Names in the store that changed while nothing happened. */
  readonly changed: readonly string[];
  /** Undefined if the console ran until it was told to end. */
  readonly endedWith: string | undefined;
}

const root = import.meta.url.includes("/dist-harness/") ? "../../../" : "../../";
const commandLine = fileURLToPath(new URL(`${root}dist/cli/bin.cjs`, import.meta.url));
/** A leak fills this soon, and then ends the console. */
const heapMbMax = 64;

export async function endure(options: EnduranceOptions): Promise<EnduranceResult> {
  const parent = await realpath(options.parent ?? tmpdir());
  const directory = await mkdtemp(join(parent, "holdfast-endurance-"));
  try {
    return await endureIn(directory, options);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function endureIn(directory: string, options: EnduranceOptions): Promise<EnduranceResult> {
  await (await openStore(directory)).close();
  let operations = 0;
  const crew = new Crew<{ readonly operations: number }>({
    names: Array.from({ length: options.processes }, (_, index) => `till-${index + 1}`),
    module: compiledModule(new URL("./worker.ts", import.meta.url)),
    argsOf: (name) => [directory, name],
    onReport: ({ report }) => void (operations += report.operations),
  });
  const shown = spawn(
    process.execPath,
    [
      `--max-old-space-size=${heapMbMax}`,
      commandLine,
      "console",
      directory,
      "--port",
      "0",
      "--json",
      "--allow-actions",
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  try {
    const watch = await Watch.begin(directory, shown);
    const { kills, stops } = await crew.run(() => storm(crew, watch, options));
    const failures = crew.failures.map(({ child, stderr }) => `${child} ended by itself: ${stderr.trim()}`);
    const quiet = await watch.quiet(options);
    return { operations, kills, stops, ...quiet, complaints: [...quiet.complaints, ...failures] };
  } finally {
    shown.kill("SIGKILL");
  }
}

async function storm(
  crew: Crew<unknown>,
  watch: Watch,
  { stormSeconds, seed, onSecond }: EnduranceOptions,
): Promise<{ readonly kills: number; readonly stops: number }> {
  const chance = new Chance(seed);
  const chaos = new Chaos(crew.children, { chance, everyMsMax: 2000, killPart: 0.3, stopMs: [[100, 4000]] });
  chaos.begin();
  for (let second = 1; second <= stormSeconds; second++) {
    await sleep(1000);
    onSecond?.(second, await watch.second());
  }
  await chaos.end();
  await crew.finish();
  return chaos;
}

/** The eye on the console. */
class Watch {
  readonly #directory: string;
  readonly #shown: ChildProcess;
  readonly #figures: ProcessFigures;
  readonly #visitor: Visitor;
  readonly #following: Promise<void>;
  readonly #memoryMb: number[] = [];
  readonly #openForWriting = new Set<string>();
  readonly #osLocks = new Set<string>();
  readonly #asHolder = new Set<string>();

  private constructor(directory: string, shown: ChildProcess, visitor: Visitor) {
    this.#directory = directory;
    this.#shown = shown;
    this.#figures = new ProcessFigures(shown.pid ?? 0);
    this.#visitor = visitor;
    this.#following = visitor.follow();
    // Awaited at the end: until then a rejection is no news to anybody.
    this.#following.catch(() => undefined);
  }

  static async begin(directory: string, shown: ChildProcess): Promise<Watch> {
    if (shown.stdout === null) throw new Error("The console has no output.");
    const [line] = (await once(createInterface(shown.stdout), "line")) as [string];
    const { url } = JSON.parse(line) as { readonly url: string };
    return new Watch(directory, shown, await Visitor.open(url));
  }

  /** Notes what the console is doing now, and returns its memory. */
  async second(): Promise<number> {
    const memoryMb = this.#figures.memoryMb();
    this.#memoryMb.push(memoryMb);
    for (const path of this.#figures.writableBelow(this.#directory)) this.#openForWriting.add(path);
    for (const line of this.#figures.osLocks()) this.#osLocks.add(line);
    const store = await openStore(this.#directory, { readOnly: true });
    for (const { pid, name } of await store.holders())
      if (pid === this.#shown.pid) this.#asHolder.add(`${pid} ${name ?? ""}`);
    await store.close();
    return memoryMb;
  }

  /** Nothing happens any more, and the page stays open. Then the console is told to end. */
  async quiet({
    quietSeconds,
    acts,
  }: EnduranceOptions): Promise<Omit<EnduranceResult, "operations" | "kills" | "stops">> {
    const visitor = this.#visitor;
    visitor.isIdle = true;
    const settled = visitor.samples + 2;
    // What the last seconds of the storm have left to be loaded is not idle time.
    while (visitor.samples < settled) await sleep(100);
    const before = namesIn(this.#directory);
    const cpuBefore = this.#figures.cpuSeconds();
    const startMs = performance.now();
    if (acts === true) await visitor.act("pause", { box: "labels", reason: "endurance" });
    for (let second = 0; second < quietSeconds; second++) {
      await sleep(1000);
      await this.second();
      this.#memoryMb.pop();
    }
    const idleCores = (this.#figures.cpuSeconds() - cpuBefore) / ((performance.now() - startMs) / 1000);
    const after = namesIn(this.#directory);
    const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
      (name) => before.get(name) !== after.get(name),
    );
    const { exitCode, signalCode } = this.#shown;
    const endedWith = exitCode === null && signalCode === null ? undefined : `${exitCode ?? signalCode}`;
    visitor.leave();
    await this.#following;
    return {
      samples: visitor.samples,
      answers: visitor.answers,
      memoryMb: this.#memoryMb,
      idleCores,
      openForWriting: [...this.#openForWriting],
      osLocks: [...this.#osLocks],
      asHolder: [...this.#asHolder],
      complaints: visitor.complaints,
      changed,
      endedWith,
    };
  }
}

/** Everything below `directory`, with what any change of it changes. */
function namesIn(directory: string): Map<string, string> {
  const names = readdirSync(directory, { recursive: true, encoding: "utf8" });
  return new Map(
    names.map((name) => {
      const { ino, size, mtimeNs, ctimeNs } = lstatSync(join(directory, name), { bigint: true });
      return [name, `${ino} ${size} ${mtimeNs} ${ctimeNs}`];
    }),
  );
}
