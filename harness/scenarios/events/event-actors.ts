// The actors of event scenarios: writers and readers of one log, and the audit of every answer they got.
import { Ground } from "../../../src/durable/liveness/ground.ts";
import { isHoldfastError } from "../../../src/errors.ts";
import type { Appender } from "../../../src/events/append/appender.ts";
import type { AppendRequest } from "../../../src/events/append/call-queue.ts";
import { plainCodec } from "../../../src/events/model/codec.ts";
import { LocalPublisher } from "../../../src/events/log/publish/local-publisher.ts";
import { encodeContent, encodeLine, tipAfter } from "../../../src/events/log/format/line.ts";
import { LogFiles } from "../../../src/events/log/log-files.ts";
import { WriteSessionLost, type Publisher, type WriteSession } from "../../../src/events/log/publish/publisher.ts";
import { SharePublisher } from "../../../src/events/log/publish/share-publisher.ts";
import { OpenedLog } from "../../../src/events/open/opened-log.ts";
import { itemsOf, type Query } from "../../../src/events/model/query.ts";
import {
  createLateStoreLock,
  createStoreLock,
  type StoreHold,
  type StoreLock,
} from "../../../src/locks/store/store-lock.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type ActorContext,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";

const directory = "/log";
/** No process is declared dead for silence: the tenure chain must withstand a sleeper without any clock. */
const leaseMs = 1_000_000;

export interface EventScenarioOptions {
  /** Opens the publisher: the real one, or a known-wrong variant. */
  readonly openPublisher: (files: LogFiles) => Promise<Publisher>;
  readonly openLock?: (ports: Ports) => Promise<StoreLock>;
  readonly AppenderClass?: typeof Appender;
  readonly segmentBytesMax?: number;
  /** Default true. */
  readonly isSynced?: boolean;
  /** True for durability "none": a power cut may remove its appends. */
  readonly mayBeLost?: boolean;
}

export const local: EventScenarioOptions = { openPublisher: async (files) => new LocalPublisher(files) };

/** Runs without any gate: between machines a lock only reduces contention, and no promise depends on it. */
export const share: EventScenarioOptions = {
  openPublisher: (files) => SharePublisher.open(files),
  openLock: async () => openDoor,
};

const release = async (): Promise<void> => undefined;
const openHold: StoreHold = {
  signal: new AbortController().signal,
  acquiredAt: new Date(0),
  release,
  isContended: async () => true,
  assertHeld: release,
  lockId: "",
  [Symbol.asyncDispose]: release,
};
/** A lock that admits every process at once. */
export const openDoor: StoreLock = {
  path: `${directory}/.store.lock`,
  gate: "table",
  tryAcquire: async () => openHold,
  acquire: async () => openHold,
  findHolder: async () => undefined,
  withLock: (work) => work(openHold),
  close: release,
  [Symbol.asyncDispose]: release,
};

/** A lock that is opened with the first append, and uses the lock file that exists then. */
export async function openLate(ports: Ports): Promise<StoreLock> {
  return createLateStoreLock(`${directory}/.store.lock`, "os", () => createStoreLock(ports, directory));
}

async function openLog(ports: Ports, options: EventScenarioOptions): Promise<OpenedLog> {
  const {
    openPublisher,
    AppenderClass,
    openLock = (world) => createStoreLock(world, directory),
    segmentBytesMax,
    isSynced = true,
  } = options;
  const ground = await Ground.open(ports, `${directory}/.holdfast`, { leaseMs });
  const files = new LogFiles(ground, directory, "log", { isSynced, segmentBytesMax });
  return new OpenedLog(files, await openPublisher(files), await openLock(ports), plainCodec, AppenderClass);
}

interface Told {
  readonly id: string;
  readonly position: number;
}

/** Appends events one after the other, each with its own id and all with the same tag. */
export function writer(times: number, options: EventScenarioOptions, condition?: Query): Actor {
  return actor({
    prepare: ({ ports }) => openLog(ports, options),
    run: async (context, log) => {
      const wish = { condition, mayBeLost: options.mayBeLost };
      for (let time = 1; time <= times; time++) await appendOne(context, log, `${context.name}:${time}`, wish);
    },
  });
}

/**
 * Has appended before the scenario, so its next call directly follows its last turn. It pauses the gate between its
 * two appends, and carries on in the same turn if no other process has entered.
 */
export function keeper(options: EventScenarioOptions): Actor {
  return actor({
    prepare: async ({ ports, name }) => {
      const log = await openLog(ports, options);
      await log.appender.append(requestFor(`${name}:0`));
      return log;
    },
    run: async (context, log) => {
      for (const time of [1, 2]) await appendOne(context, log, `${context.name}:${time}`, {});
    },
  });
}

/** Appends an event that another actor may have appended with the same id. */
export function repeater(id: string, options: EventScenarioOptions): Actor {
  return actor({
    prepare: ({ ports }) => openLog(ports, options),
    run: (context, log) => appendOne(context, log, id, { given: true, mayBeLost: options.mayBeLost }),
  });
}

/**
 * Has begun a session before the scenario, or has even finished it, and carries on as if nothing had happened since.
 */
export function sleeper(options: EventScenarioOptions, { isDone = false }: { readonly isDone?: boolean } = {}): Actor {
  return actor({
    prepare: async ({ ports, name }) => {
      const session = await (await openLog(ports, options)).publisher.begin(openHold);
      if (isDone) await publishOne(session, `${name}:last`);
      return session;
    },
    run: async ({ note, name }, session) => {
      const id = `${name}:late`;
      const { position } = session.end;
      try {
        await publishOne(session, id);
        note("acknowledged", { id, position: position + 1 } satisfies Told);
      } catch (error) {
        if (error instanceof WriteSessionLost) note("failed", id);
        else if (isHoldfastError(error, "OUTCOME_UNKNOWN")) note("unknown", id);
        else throw error;
      }
      await session.close();
    },
  });
}

async function publishOne(session: WriteSession, id: string): Promise<void> {
  const { end } = session;
  const line = encodeLine(requestFor(id).content, end.position + 1, "2026-01-01T00:00:00.000Z", end.crc);
  await session.publish(Buffer.from(line.text), tipAfter(end, { events: [{ type: "", tags: [], id }] }, line), true);
}

/**
 * Makes two concurrent calls in one batch that exclude each other. The second is refused because of the first, which
 * is not written yet.
 */
export function rivals(options: EventScenarioOptions): Actor {
  return actor({
    prepare: ({ ports }) => openLog(ports, options),
    run: async (context, log) => {
      const [tags, condition] = [["seat"], { tags: ["seat"] }];
      await Promise.all([1, 2].map((each) => appendOne(context, log, `${context.name}:${each}`, { tags, condition })));
    },
  });
}

interface Wish {
  readonly tags?: readonly string[];
  readonly condition?: Query | undefined;
  /** True if the log may already contain the id. */
  readonly given?: true;
  readonly mayBeLost?: boolean | undefined;
}

async function appendOne({ note }: ActorContext, log: OpenedLog, id: string, wish: Wish): Promise<void> {
  try {
    const { first: position } = await log.appender.append(requestFor(id, wish));
    note(wish.mayBeLost ? "appended" : "acknowledged", { id, position } satisfies Told);
  } catch (error) {
    if (isHoldfastError(error, "OUTCOME_UNKNOWN")) note("unknown", id);
    else if (isHoldfastError(error, "APPEND_CONDITION_FAILED"))
      note(
        "refused",
        error.conflicts.map((event) => event.id),
      );
    else if (isHoldfastError(error, "IO_ERROR", "DISK_FULL", "LOCK_LOST")) note("failed", id);
    else throw error;
  }
}

function requestFor(id: string, { tags = ["stock"], condition, given }: Wish = {}): AppendRequest {
  const heads = [{ type: "Sold", tags, id, ...(given ? { given } : {}) }];
  const payload = [JSON.stringify({ data: id })];
  const items = condition === undefined ? undefined : itemsOf(condition);
  const stored = items === undefined ? undefined : { if: items };
  const content = encodeContent({ condition: stored, events: heads, payload });
  const judged = items === undefined ? undefined : { items, after: 0 };
  return { content, heads, payload, condition: judged, timeoutMs: Infinity };
}

/** Deletes the lock file of the log, even while it is held. */
export function deleter(): Actor {
  return actor({ run: async ({ ports }) => ports.disk.unlink(`${directory}/.store.lock`) });
}

/** Holds the gate when the scenario begins, and publishes one line. */
export function insider(options: EventScenarioOptions): Actor {
  return actor({
    prepare: async ({ ports }) => {
      const log = await openLog(ports, options);
      const hold = await log.lock.acquire();
      return { hold, session: await log.publisher.begin(hold) };
    },
    run: async ({ note, name }, { hold, session }) => {
      const id = `${name}:1`;
      const position = session.end.position + 1;
      try {
        await publishOne(session, id);
        note("acknowledged", { id, position } satisfies Told);
      } catch (error) {
        note(isHoldfastError(error, "OUTCOME_UNKNOWN") ? "unknown" : "failed", id);
      }
      await hold.release();
    },
  });
}

/** Deletes the lock file, even while it is held, and writes under a new one. */
export function intruder(options: EventScenarioOptions): Actor {
  return actor({
    prepare: ({ ports }) => openLog(ports, { ...options, openLock: openLate }),
    run: async ({ ports }, log) => {
      await ports.disk.unlink(`${directory}/.store.lock`);
      const hold = await log.lock.acquire();
      await log.publisher.begin(hold).catch((error: unknown) => {
        if (!isHoldfastError(error, "DISK_FULL")) throw error;
      });
      await hold.release();
    },
  });
}

/** Settles the log: accepts the lines behind the head. */
export function settler(options: EventScenarioOptions): Actor {
  return actor({
    prepare: ({ ports }) => openLog(ports, options),
    run: async (_, log) => {
      if (log.publisher instanceof LocalPublisher) await log.publisher.settle(() => log.lock.tryAcquire());
    },
  });
}

/** Reads the log `times` times, and notes all events. */
export function reader(times: number, options: EventScenarioOptions): Actor {
  return actor({
    prepare: ({ ports }) => openLog(ports, options),
    run: async ({ note }, log) => {
      for (let time = 1; time <= times; time++) note("seen", await readAll(log));
    },
  });
}

/** Reads once, and notes the checksum of the last line, as a consumer's checkpoint does. */
export function follower(options: EventScenarioOptions): Actor {
  return actor({
    prepare: ({ ports }) => openLog(ports, options),
    run: async ({ note }, log) => {
      const { position } = await log.advance();
      note("checkpoint", { position, checksum: await log.reader.checksumAt(position) } satisfies Remembered);
    },
  });
}

interface Remembered {
  readonly position: number;
  readonly checksum: number;
}

async function readAll(log: OpenedLog): Promise<Told[]> {
  const upTo = (await log.advance()).position;
  const told: Told[] = [];
  const items = itemsOf("all");
  for await (const { position, head } of log.reader.read(items, { after: 0, upTo }, false))
    told.push({ id: head.id, position });
  mustHold(told.length === upTo, `the head is ${upTo}, and ${told.length} events are there`);
  return told;
}

interface EventAudit {
  readonly options: EventScenarioOptions;
  /** True if events that a reader sees at the end of the log are permanent. Default true. */
  readonly isShownForGood?: boolean | undefined;
}

/**
 * Every event that was acknowledged or shown is at its position. Positions have no gap. No event appears twice. A
 * failed append never appears.
 */
export async function logIsWhole(
  { options, isShownForGood = true }: EventAudit,
  ports: Ports,
  facts: readonly Fact[],
): Promise<void> {
  const log = await openLog(ports, options);
  // Checks the log as a reader finds it, and then as the next writer finds it.
  const before = isShownForGood ? await readAll(log) : [];
  const hold = await log.lock.acquire();
  await (await log.publisher.begin(hold)).close();
  await hold.release();
  const events = await readAll(log);
  const ids = events.map(({ id }) => id);
  const shown = ids.join(", ");
  mustHold(new Set(ids).size === ids.length, `an event is there twice: ${shown}`);
  const told = [...valuesOf<Told>(facts, "acknowledged"), ...valuesOf<Told[]>(facts, "seen").flat(), ...before];
  for (const { id, position } of told)
    mustHold(ids[position - 1] === id, `${id} was acknowledged or shown as ${position}, but the log is ${shown}`);
  for (const { position, checksum } of valuesOf<Remembered>(facts, "checkpoint"))
    mustHold(
      position <= ids.length && (await log.reader.checksumAt(position)) === checksum,
      `a consumer had read up to ${position}, which is another line now: the log is ${shown}`,
    );
  for (const id of valuesOf<string>(facts, "failed"))
    mustHold(!ids.includes(id), `${id} was said to have failed, but the log is ${shown}`);
  for (const id of valuesOf<string[]>(facts, "refused").flat())
    mustHold(ids.includes(id), `a call was refused because of ${id}, which never happened: the log is ${shown}`);
}

/** No position was reported for two different events. */
function nothingIsTakenBack(facts: readonly Fact[]): void {
  const at = new Map<number, string>();
  for (const { id, position } of [
    ...valuesOf<Told>(facts, "acknowledged"),
    ...valuesOf<Told[]>(facts, "seen").flat(),
  ]) {
    const known = at.get(position) ?? id;
    mustHold(known === id, `${known} and ${id} are both said to be at ${position}`);
    at.set(position, id);
  }
}

/** Makes a log with one event. */
export async function makeLog(ports: Ports, options: EventScenarioOptions): Promise<OpenedLog> {
  for (const path of [directory, `${directory}/segments`]) await ports.disk.mkdir(path);
  const log = await openLog(ports, options);
  await log.appender.append(requestFor("first"));
  return log;
}

/**
 * Makes a log with two events and an older head, which names only the first one, as after a file system has
 * disappeared.
 */
export async function makeLogWithOldHead(ports: Ports, options: EventScenarioOptions): Promise<void> {
  const log = await makeLog(ports, options);
  const { disk } = ports;
  const path = `${directory}/head`;
  const old = await disk.readFile(path, 4096);
  await log.appender.append(requestFor("second"));
  const head = await disk.open(path, "write");
  await head.write(0, old);
  await head.close();
  await log.close();
}

export function eventScenario(
  options: EventScenarioOptions,
  {
    isShownForGood,
    ...scenario
  }: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario> & Pick<EventAudit, "isShownForGood">,
): Scenario {
  return {
    setup: async (ports) => (await makeLog(ports, options)).close(),
    check: nothingIsTakenBack,
    audit: (ports, facts) => logIsWhole({ options, isShownForGood }, ports, facts),
    ...scenario,
  };
}
