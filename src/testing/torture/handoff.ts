// The torture of the hand-off: each process publishes tickets and works on what comes, half of them
// in groups, some with outputs. In the end a fresh process works off what is left and reads the box.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { isHoldfastError } from "../../errors.ts";
import { openBox } from "../../handoff/box/open-box.ts";
import { BoxLayout } from "../../handoff/box/layout.ts";
import type { Delivery } from "../../handoff/consume/delivery.ts";
import { BoxHandoff } from "../../handoff/handoff.ts";
import { findTicketName } from "../../handoff/model/ticket-name.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { Chance } from "../processes/chance.ts";
import { sweeper, type TortureTask, type TortureTools } from "./task.ts";

/** What a ticket says, as its `meta`. */
interface Note {
  readonly by: string;
  /** The key of the last ticket of its group whose publication was acknowledged. */
  readonly before?: string;
}

/** What is committed. */
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

  // Not by the life that the others are told of: the box has a ground of its own, and begins a new
  // life by itself.
  async work(tools, signal) {
    const box = await tryOpen(tools);
    if (box === undefined) return;
    const worker = new Worker(tools, box);
    const sweep = sweeper(tools);
    try {
      while (!signal.aborted) {
        await worker.publishOne();
        // More than comes in, so that nothing piles up.
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
      // What the killed had in hand comes back at once, what the stopped had after a lease.
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

/** Undefined when it slept while it opened, and what it had prepared was swept: then it has to be opened again. */
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
  /** A group of its own for each start: the order in it is the order of its publications. */
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

  /** False when there is nothing to do. */
  async workOne(): Promise<boolean> {
    const delivery = await this.#box.take();
    if (delivery === undefined) return false;
    const { report } = this.#tools;
    report({ kind: "entered" });
    try {
      await this.#handle(delivery);
    } catch (error) {
      if (isHoldfastError(error, "OUTCOME_UNKNOWN")) report({ kind: "unknown" });
      // It slept: the ticket is with another process by now.
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

/** What lies in the box, and what is wrong with it. */
class Audit {
  readonly #disk: Disk;
  readonly #box: string;

  constructor({ ground, directory }: TortureTools) {
    this.#disk = ground.ports.disk;
    this.#box = boxIn(directory);
  }

  /** Tickets that wait or are in hand. */
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
      // Not made yet, removed since, or a file.
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

/** Known to be wrong: of two processes that claim a ticket both have it, and both commit. */
function withoutRaces(disk: Disk): Disk {
  const over: Pick<Disk, "link" | "rename"> = {
    link: async (from, to) => {
      if (!to.includes("/ledger/")) return await disk.link(from, to);
      try {
        await disk.rename(from, to);
      } catch (error) {
        // A commit with outputs is a directory, which no file replaces.
        if (!hasErrno(error, "EISDIR")) throw error;
        await disk.link(from, to);
      }
    },
    rename: async (from, to) => {
      if (!to.includes("/processing/")) return await disk.rename(from, to);
      try {
        await disk.link(from, to);
      } catch (error) {
        // A ticket that came back by its other name: like a rename, this replaces what is there.
        if (!hasErrno(error, "EEXIST")) throw error;
        await disk.rename(from, to);
      }
      // So long that another process can do the same.
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
