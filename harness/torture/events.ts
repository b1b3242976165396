// The torture of the event log: batches with conditions, names that all processes compete for, and appends repeated by
// their ids. The segments are so small that new ones constantly begin. With an even seed the disk decides the mode; an
// odd seed selects the mode of shares.
import { setTimeout as sleep } from "node:timers/promises";
import type { NewEvent, SequencedEvent } from "../../src/common.ts";
import { isHoldfastError } from "../../src/errors.ts";
import { plainCodec } from "../../src/events/model/codec.ts";
import type { AppendCondition } from "../../src/events/model/event-store.ts";
import { LogEventStore } from "../../src/events/log-store.ts";
import type { Disk, DiskFile } from "../../src/ports/disk.ts";
import type { OsLockFile } from "../../src/ports/os-lock.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { Chance } from "../processes/chance.ts";
import type { Counter } from "../scenarios/durable/counter.ts";
import { sweeper, type TortureTask, type TortureTools } from "./task.ts";

const segmentBytesMax = 8 * 1024;
const batchMax = 4;
/** Longer than a queue of sleepers takes. */
const lockTimeoutMs = 10_000;
/** The number of events for each name that all processes compete for. */
const eventsPerName = 20;

/**
 * The data of every event: the process and append that it belongs to, and where that process's previous append was
 * acknowledged.
 */
interface Part {
  readonly by: string;
  readonly count: number;
  readonly index: number;
  readonly of: number;
  /** The acknowledged position of append `count - 1`; absent if no acknowledgement arrived. */
  readonly before?: number | undefined;
}
type Appended = NewEvent<"Worked" | "Claimed", Part>;

const longRunMin = { appends: 20, kills: 5, killsInside: 1, stops: 20 };

export const eventsTask: TortureTask = {
  promise: "loses no acknowledged event, leaves no gap and tears no batch",
  longRuns: [
    { about: "for one machine", seed: 8, seconds: 10, atLeast: longRunMin },
    { about: "between machines", seed: 9, seconds: 10, atLeast: longRunMin },
  ],
  sabotage: {
    about: "has a lock that excludes callers of its own process only",
    seed: 10,
    // The ledger finds it, or the log itself does first: it refuses lines written without the gate.
    breaks:
      /won twice|is lost|won number|refused for no reason|cannot be read|code: 'CORRUPT'|was replaced, or put back/,
  },
  // One even and one odd seed: the mode of one machine, and the mode of shares.
  shortSeeds: [2, 3],
  dawdling: 0.01,
  leaseMs: 2000,

  // Does not use the session that the other tasks watch: the log has its own ground, and begins a new session
  // automatically.
  async work(tools, signal) {
    const store = await tryOpen(tools);
    if (store === undefined) return;
    const worker = new Worker(tools, store);
    const sweep = sweeper(tools);
    try {
      await worker.resume();
      while (!signal.aborted) {
        await worker.appendOne();
        await sweep();
      }
    } finally {
      await store.close();
    }
  },

  async find(tools) {
    const audit = new Audit();
    const store = await openStore(tools, tools.ground.ports);
    try {
      for await (const event of store.read()) audit.take(event);
      audit.end(await store.head());
    } catch (error) {
      if (!isHoldfastError(error, "CORRUPT")) throw error;
      audit.wrong.push(`the log cannot be read: ${error.message}`);
    } finally {
      await store.close();
    }
    return { state: audit.state, epochs: audit.batches, wrong: audit.wrong };
  },
};

type Store = LogEventStore<Appended>;

async function openStore({ directory, leaseMs, seed, sabotage, sync }: TortureTools, ports: Ports): Promise<Store> {
  const mode = seed % 2 === 0 || sabotage ? undefined : "share";
  const durability = sync ? "fsync" : "none";
  const parts = { ports, directory: `${directory}/log`, codec: plainCodec };
  return await new LogEventStore<Appended>(parts, { mode, durability, leaseMs, lockTimeoutMs, segmentBytesMax }).open();
}

/** Returns undefined if the process slept while it opened, and its prepared files were swept. It must open again. */
async function tryOpen(tools: TortureTools): Promise<Store | undefined> {
  try {
    return await openStore(tools, portsOf(tools));
  } catch (error) {
    if (!isHoldfastError(error, "IO_ERROR", "LOCK_LOST")) throw error;
    await sleep(10);
    return undefined;
  }
}

/** The ports of a worker: its disk is slow, and in the known-wrong variant its locks do not see other processes. */
function portsOf({ ground, seed, sabotage }: TortureTools): Ports {
  const ports = { ...ground.ports, disk: dawdlingWrites(ground.ports.disk, new Chance(~seed ^ process.pid)) };
  return sabotage ? withoutOtherProcesses(ports) : ports;
}

class Worker {
  readonly #tools: TortureTools;
  readonly #store: Store;
  readonly #chance: Chance;
  readonly #mine: { readonly tags: readonly string[] };
  #count = 0;
  /** The position of the last known event of this process. */
  #position = 0;
  #acknowledged: number | undefined;
  #last: readonly Appended[] = [];

  constructor(tools: TortureTools, store: Store) {
    this.#tools = tools;
    this.#store = store;
    this.#chance = new Chance(tools.seed ^ process.pid);
    this.#mine = { tags: [`by:${tools.name}`] };
  }

  /** Continues where the previous process of this name stopped. */
  async resume(): Promise<void> {
    const last = await this.#store.last(this.#mine);
    this.#count = last?.data.count ?? 0;
    this.#position = last?.position ?? 0;
    this.#acknowledged = undefined;
    this.#last = [];
  }

  async appendOne(): Promise<void> {
    const { report } = this.#tools;
    if (this.#last.length > 0 && this.#chance.happens(0.1)) await this.#appendAgain();
    const batch = this.#nextBatch();
    const name = claimOf(batch);
    // The name must be free; or no other process has written under this process's name since its last append.
    const free = { failIfEventsMatch: { types: ["Claimed" as const], tags: name } };
    const unseen = { failIfEventsMatch: this.#mine, after: this.#position };
    report({ kind: "entered" });
    try {
      await this.#append(batch, name.length > 0 ? free : unseen);
    } finally {
      report({ kind: "left" });
    }
  }

  async #append(batch: readonly Appended[], condition: AppendCondition<Appended["type"]>): Promise<void> {
    const { report } = this.#tools;
    try {
      const { first, last } = await this.#store.append(batch, { condition });
      this.#count++;
      this.#position = last;
      this.#acknowledged = first;
      this.#last = batch;
      report({ kind: "won", count: this.#count, number: first });
    } catch (error) {
      // The append certainly did not happen: it waited too long, or its prepared files were swept while it slept. If
      // the log contains it after all, the next append is refused.
      if (isHoldfastError(error, "LOCK_TIMEOUT", "IO_ERROR", "LOCK_LOST")) return;
      if (isHoldfastError(error, "APPEND_CONDITION_FAILED")) return this.#refused(batch, error.conflicts);
      if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) throw error;
      report({ kind: "unknown" });
      await this.resume();
    }
  }

  /**
   * A refusal is right only if the name is taken. No other process writes under this process's name, with one
   * exception: the next writer completes the lines that a killed predecessor of the same name had written. That may
   * happen after this process has checked where its predecessor stopped, so it checks again.
   */
  async #refused(batch: readonly Appended[], conflicts: readonly SequencedEvent[]): Promise<void> {
    const [tag] = claimOf(batch);
    const isTaken = tag !== undefined && conflicts.length > 0 && conflicts.every(({ tags }) => tags.includes(tag));
    const isCompleted =
      this.#acknowledged === undefined &&
      conflicts.length > 0 &&
      conflicts.every(({ id, tags }) => tags.includes(`by:${this.#tools.name}`) && !id.endsWith(`-${process.pid}`));
    if (isCompleted) return await this.resume();
    if (!isTaken) throw new Error(`refused for no reason: ${JSON.stringify({ batch, conflicts })}`);
  }

  /** Repeats the append, as after a lost reply. The log must recognise it. */
  async #appendAgain(): Promise<void> {
    const again = await this.#store.append(this.#last).catch((error: unknown) => {
      if (isHoldfastError(error, "LOCK_TIMEOUT", "OUTCOME_UNKNOWN", "IO_ERROR", "LOCK_LOST")) return undefined;
      throw error;
    });
    if (again !== undefined && !(again.repeated && again.first === this.#acknowledged))
      throw new Error(
        `append ${this.#count} was acknowledged with ${this.#acknowledged} and is lost: made again, it says ${JSON.stringify(again)}`,
      );
  }

  #nextBatch(): Appended[] {
    const { name } = this.#tools;
    const of = 1 + Math.floor(this.#chance.fraction() * batchMax);
    const wanted = this.#chance.happens(0.5) ? [`name:${Math.floor(this.#position / eventsPerName)}`] : [];
    return Array.from({ length: of }, (_, index) => ({
      type: wanted.length > 0 && index === 0 ? "Claimed" : "Worked",
      data: { by: name, count: this.#count + 1, index, of, before: this.#acknowledged },
      tags: [`by:${name}`, ...(index === 0 ? wanted : [])],
      id: `${name}-${this.#count + 1}-${index}-${process.pid}`,
    }));
  }
}

function claimOf([first]: readonly Appended[]): string[] {
  return (first?.tags ?? []).filter((tag) => tag.startsWith("name:"));
}

/** Reads all events and finds every error in them. */
class Audit {
  readonly wrong: string[] = [];
  readonly state: Record<string, number> = {};
  batches = 0;
  readonly #firsts = new Map<string, number>();
  readonly #names = new Map<string, number>();
  #position = 0;
  #open: Part | undefined;

  take({ position, type, tags, data }: SequencedEvent<Appended>): void {
    if (position !== ++this.#position) this.#say(`position ${position} comes where ${this.#position} should`);
    const open = this.#open;
    const goesOn =
      open !== undefined && open.by === data.by && open.count === data.count && open.index + 1 === data.index;
    if (open !== undefined && !goesOn) this.#say(`append ${open.count} of ${open.by} is torn after part ${open.index}`);
    else if (open === undefined && data.index !== 0)
      this.#say(`append ${data.count} of ${data.by} begins with part ${data.index}`);
    if (data.index === 0) this.#begin(position, data);
    this.#open = data.index + 1 < data.of ? data : undefined;
    if (type === "Claimed") this.#claim(position, tags);
  }

  end(head: number): void {
    if (this.#open !== undefined) this.#say("the last append is torn");
    if (head !== this.#position) this.#say(`the head is ${head}, and ${this.#position} events are there`);
  }

  #begin(position: number, { by, count, before }: Part): void {
    this.batches++;
    const counts: Counter = this.state;
    if (count !== (counts[by] ?? 0) + 1)
      this.#say(`append ${count} of ${by} comes after its append ${counts[by] ?? 0}`);
    this.state[by] = (counts[by] ?? 0) + 1;
    const found = this.#firsts.get(by);
    if (before !== undefined && before !== found)
      this.#say(`append ${count - 1} of ${by} was acknowledged with ${before} and is lost: ${found} is there`);
    this.#firsts.set(by, position);
  }

  #claim(position: number, tags: readonly string[]): void {
    for (const tag of tags.filter((each) => each.startsWith("name:"))) {
      const other = this.#names.get(tag);
      if (other !== undefined) this.#say(`${tag} was won twice, at ${other} and at ${position}`);
      this.#names.set(tag, position);
    }
  }

  #say(what: string): void {
    if (this.wrong.length < 20) this.wrong.push(what);
  }
}

/**
 * Known to be wrong, like the time before there was a lock file: callers of one process exclude each other, and
 * processes do not.
 */
function withoutOtherProcesses(ports: Ports): Ports {
  const free: OsLockFile = {
    tryLock: async () => true,
    lock: async () => undefined,
    isIntact: async () => true,
    identity: "",
    unlock: async () => undefined,
    close: async () => undefined,
  };
  // This also works on a share: a process that takes its disk for a local one uses the mode of one machine.
  const disk = { ...ports.disk, volume: { ...ports.disk.volume, kind: "local" as const } };
  return { ...ports, disk, osLock: { open: async () => free } };
}

/** Delays writes to the log and to its head too: lines that are not yet published lie between them. */
function dawdlingWrites(disk: Disk, chance: Chance): Disk {
  const late = async (): Promise<void> => {
    if (chance.happens(0.05)) await sleep(100 * chance.fraction() ** 4);
  };
  const slowed = (file: DiskFile): DiskFile => ({
    read: (offset, length) => file.read(offset, length),
    write: async (offset, bytes) => {
      await late();
      await file.write(offset, bytes);
      await late();
    },
    sync: () => file.sync(),
    stat: () => file.stat(),
    close: () => file.close(),
  });
  const isLog = (path: string): boolean => path.endsWith(".ndjson") || path.endsWith("/head");
  return {
    ...disk,
    open: async (path, mode) => {
      const file = await disk.open(path, mode);
      return isLog(path) ? slowed(file) : file;
    },
  };
}
