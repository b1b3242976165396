// The torture of the hand-off: each process publishes tickets and works on deliveries, half of them in groups, some
// with outputs. At the end a fresh process works off the remaining tickets and reads the box.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { isHoldfastError } from "../../src/errors.ts";
import { openBox } from "../../src/handoff/box/open-box.ts";
import { BoxLayout } from "../../src/handoff/box/layout.ts";
import type { Delivery } from "../../src/handoff/model/delivery.ts";
import { BoxHandoff } from "../../src/handoff/handoff.ts";
import { findTicketName } from "../../src/handoff/model/ticket-name.ts";
import { hasErrno } from "../../src/ports/disk-error.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { Chance } from "../processes/chance.ts";
import { sweeper, type TortureTask, type TortureTools } from "./task.ts";

/** The `meta` of a ticket. */
interface Note {
  readonly by: string;
  /** The key of the last acknowledged ticket of its group. */
  readonly before?: string;
}

/** The committed result. */
interface Done {
  readonly by: string;
}

const longRunMin = { appends: 60, kills: 5, killsInside: 1, stops: 20 };
const recordBytesMax = 1_000_000;

export const handoffTask: TortureTask = {
  promise: "loses no ticket, commits each key once and keeps groups in order",
  longRuns: [{ seed: 12, seconds: 12, atLeast: longRunMin }],
  sabotage: { about: "claims a ticket by a second name and commits over what is there", seed: 13 },
  dawdling: 0.003,
  leaseMs: 2000,

  // Does not use the session that the other tasks watch: the box has its own ground, and begins a new session
  // automatically.
  async work(tools, signal) {
    const box = await tryOpen(tools);
    if (box === undefined) return;
    const worker = new Worker(tools, box);
    const sweep = sweeper(tools);
    try {
      while (!signal.aborted) {
        await worker.publishOne();
        // Works on more tickets than it publishes, so that none pile up.
        for (let times = 0; times < 2; times++) await worker.workOne();
        await sweep();
      }
    } finally {
      await box.close();
    }
  },

  async find(tools) {
    const box = await open(tools, tools.ground.ports.disk);
    const worker = new Worker(tools, box);
    const audit = new Audit(tools);
    try {
      // The tickets of killed processes return at once, those of stopped ones after a lease.
      for (const untilMs = performance.now() + 5 * tools.leaseMs; performance.now() < untilMs;) {
        while (await worker.workOne()) continue;
        if ((await audit.unsettled()).length === 0) break;
        await sleep(tools.leaseMs / 10);
      }
    } finally {
      await box.close();
    }
    return await audit.run();
  },
};

async function open({ ground, directory, leaseMs, sync }: TortureTools, disk: Disk): Promise<BoxHandoff> {
  const ports = { ...ground.ports, disk };
  return new BoxHandoff(await openBox(ports, boxIn(directory), { leaseMs, isSynced: sync }), { leaseMs });
}

function boxIn(directory: string): string {
  return `${directory}/box`;
}

/** Returns undefined if the process slept while it opened, and its prepared files were swept. It must open again. */
async function tryOpen(tools: TortureTools): Promise<BoxHandoff | undefined> {
  const { disk } = tools.ground.ports;
  try {
    return await open(tools, tools.sabotage ? withoutRaces(disk) : disk);
  } catch (error) {
    if (!isHoldfastError(error, "IO_ERROR", "LOCK_LOST")) throw error;
    await sleep(10);
    return undefined;
  }
}

class Worker {
  readonly #tools: TortureTools;
  readonly #box: BoxHandoff;
  readonly #layout: BoxLayout;
  readonly #chance: Chance;
  /** Each start has its own group, so the order in the group is the order of its publications. */
  readonly #session: string;
  #last: string | undefined;
  #count = 0;
  #published = 0;
  #done = 0;

  constructor(tools: TortureTools, box: BoxHandoff) {
    this.#tools = tools;
    this.#box = box;
    this.#layout = new BoxLayout(boxIn(tools.directory));
    this.#chance = new Chance(tools.seed ^ process.pid);
    this.#session = `${tools.name}-${randomBytes(6).toString("hex")}`;
  }

  async publishOne(): Promise<void> {
    const { name, report } = this.#tools;
    const key = `${this.#session}/${++this.#count}`;
    const isInGroup = this.#chance.happens(0.5);
    const before = isInGroup && this.#last !== undefined ? { before: this.#last } : {};
    const meta: Note = { by: name, ...before };
    try {
      await this.#box.publish({ "ticket.txt": key }, { key, meta, ...(isInGroup ? { group: this.#session } : {}) });
    } catch (error) {
      if (isHoldfastError(error, "OUTCOME_UNKNOWN")) report({ kind: "unknown" });
      else if (!isHoldfastError(error, "LOCK_LOST")) throw error;
      return;
    }
    if (isInGroup) this.#last = key;
    report({ kind: "won", count: ++this.#published, of: `${this.#session} published` });
  }

  /** Returns false if there is no ticket. */
  async workOne(): Promise<boolean> {
    const delivery = await this.#box.take();
    if (delivery === undefined) return false;
    const { report } = this.#tools;
    report({ kind: "entered" });
    try {
      await this.#handle(delivery);
    } catch (error) {
      if (isHoldfastError(error, "OUTCOME_UNKNOWN")) report({ kind: "unknown" });
      // The process slept, and another one has the ticket by now.
      else if (!isHoldfastError(error, "CLAIM_LOST", "LOCK_LOST") && !delivery.signal.aborted) throw error;
    } finally {
      report({ kind: "left" });
    }
    return true;
  }

  async #handle(delivery: Delivery): Promise<void> {
    const { name, report, ground } = this.#tools;
    const { key } = delivery;
    const { before } = delivery.meta as Note;
    const isTooEarly = before !== undefined && !(await isThere(ground.ports.disk, this.#layout.ledger(before, 0)));
    if (isTooEarly && !delivery.signal.aborted)
      throw new Error(`${key} was delivered, and ${before} before it is lost`);
    if ((await delivery.text("ticket.txt")) !== key) throw new Error(`${key} was delivered with other bytes`);
    if (this.#chance.happens(0.3)) await delivery.output("output.txt", key);
    await delivery.ack({ by: name } satisfies Done);
    report({ kind: "won", count: ++this.#done, of: `${this.#session} done`, key });
  }
}

/** Reads the box, and collects the errors in it. */
class Audit {
  readonly #disk: Disk;
  readonly #box: string;

  constructor({ ground, directory }: TortureTools) {
    this.#disk = ground.ports.disk;
    this.#box = boxIn(directory);
  }

  /** Returns the tickets that are waiting or claimed. */
  async unsettled(): Promise<string[]> {
    const paths: string[] = [];
    for (const room of ["incoming", "lanes", "delayed", "processing", "staging"])
      paths.push(...(await this.#filesIn(`${this.#box}/${room}`)));
    return paths.filter((path) => findTicketName(nameOf(path)) !== undefined);
  }

  async run(): Promise<{ state: Record<string, number>; epochs: number; wrong: string[] }> {
    const state: Record<string, number> = {};
    const add = (by: string): void => void (state[by] = (state[by] ?? 0) + 1);
    const wrong = (await this.unsettled()).map((path) => `${path} was not settled`);
    for (const path of await this.#filesIn(`${this.#box}/error`)) wrong.push(`${path} is a dead letter`);
    const results = new Map<string, string>();
    for (const path of await this.#filesIn(`${this.#box}/ledger`)) {
      if (path.includes("/outputs/")) continue;
      const { key, id, result } = await this.#body<{ key: string; id: string; result: Done }>(path);
      add(result.by);
      results.set(id, key);
    }
    for (const path of await this.#filesIn(`${this.#box}/archive`)) {
      const { key, id, meta } = await this.#body<{ key: string; id: string; meta: Note }>(path);
      add(meta.by);
      if (results.get(id) !== key) wrong.push(`${key} is in the archive, and its result is lost`);
      results.delete(id);
    }
    for (const key of results.values()) wrong.push(`${key} is done, and its ticket is lost`);
    return { state, epochs: 0, wrong };
  }

  async #body<T>(path: string): Promise<T> {
    const bytes = await this.#disk.readFile(path, recordBytesMax);
    return (JSON.parse(Buffer.from(bytes).toString()) as { body: T }).body;
  }

  async #filesIn(directory: string): Promise<string[]> {
    let names: string[];
    try {
      names = await this.#disk.list(directory);
    } catch (error) {
      // The directory is not created yet, was removed, or is a file.
      if (hasErrno(error, "ENOTDIR")) return [directory];
      if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
      return [];
    }
    const files: string[] = [];
    for (const name of names) files.push(...(await this.#filesIn(`${directory}/${name}`)));
    return files;
  }
}

async function isThere(disk: Disk, path: string): Promise<boolean> {
  try {
    await disk.look(path);
    return true;
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return false;
    throw error;
  }
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** Known to be wrong: two processes that claim one ticket both get it, and both commit. */
function withoutRaces(disk: Disk): Disk {
  const over: Pick<Disk, "link" | "rename"> = {
    link: async (from, to) => {
      if (!to.includes("/ledger/")) return await disk.link(from, to);
      try {
        await disk.rename(from, to);
      } catch (error) {
        // A commit with outputs is a directory, which no file can replace.
        if (!hasErrno(error, "EISDIR")) throw error;
        await disk.link(from, to);
      }
    },
    rename: async (from, to) => {
      if (!to.includes("/processing/")) return await disk.rename(from, to);
      try {
        await disk.link(from, to);
      } catch (error) {
        // A ticket that returned under its other name: like a rename, this replaces the existing file.
        if (!hasErrno(error, "EEXIST")) throw error;
        await disk.rename(from, to);
      }
      // Long enough for another process to do the same.
      await sleep(20);
      await disk.unlink(from).catch(() => undefined);
    },
  };
  return new Proxy(disk, {
    get: (target, name) => {
      const value: unknown = Reflect.get(name in over ? over : target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}
