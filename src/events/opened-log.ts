// A log that is open: its parts, put together.
import { ensureDirectory } from "../durable/publish/directory.ts";
import { Ground } from "../durable/liveness/ground.ts";
import { mustBeMeant } from "../durable/publish/record-file.ts";
import { findGateKind, lockPathOf } from "../durable/gate/gate-record.ts";
import { createLateStoreLock, createStoreLock, type StoreLock } from "../locks/store/store-lock.ts";
import { makeId } from "../format/id.ts";
import type { Ports } from "../ports/ports.ts";
import { Appender } from "./append/appender.ts";
import type { EventCodec } from "./model/codec.ts";
import type { EventStoreOptions } from "./model/event-store.ts";
import { EventReader } from "./log/read/event-reader.ts";
import { LogGrowth } from "./log/read/growth.ts";
import { joinOrLook } from "./log/open-permission.ts";
import { LocalPublisher } from "./log/publish/local-publisher.ts";
import { checkMode, decideLog, type LogRecord } from "./log/format/log-record.ts";
import { findWholeLog, mustBeNew } from "./log/lost-log.ts";
import { LogFiles } from "./log/log-files.ts";
import type { Publisher } from "./log/publish/publisher.ts";
import { SharePublisher } from "./log/publish/share-publisher.ts";
import type { Tip } from "./log/format/tip.ts";
import { LogView } from "./log/read/view.ts";

export interface LogOptions extends Omit<EventStoreOptions, "schemas" | "keys"> {
  /** For tests that want many segments. */
  readonly segmentBytesMax?: number | undefined;
}

/** Together as long as a turn with the gate. */
const looksMax = 4;
const lookMs = 5;

export class OpenedLog {
  readonly place: LogFiles;
  readonly publisher: Publisher;
  readonly view: LogView;
  readonly reader: EventReader;
  readonly appender: Appender;
  readonly hints: LogGrowth;
  readonly lock: StoreLock;

  /** `AppenderClass`: what appends here, the real one or a known-wrong variant. */
  constructor(
    place: LogFiles,
    publisher: Publisher,
    lock: StoreLock,
    codec: EventCodec,
    AppenderClass: typeof Appender = Appender,
  ) {
    const { ports } = place.ground;
    this.place = place;
    this.publisher = publisher;
    this.lock = lock;
    this.view = new LogView(place, () => this.#giveWay());
    this.reader = new EventReader(place, this.view, codec);
    this.hints = new LogGrowth(ports, place.directory, async () => (await publisher.tip()).position);
    this.appender = new AppenderClass({ ports, lock, publisher, view: this.view, reader: this.reader });
  }

  /** Makes the log if there is none. */
  static async open(ports: Ports, directory: string, codec: EventCodec, options: LogOptions): Promise<OpenedLog> {
    checkChoice(options, "mode", ["local", "share"]);
    checkChoice(options, "durability", ["fsync", "none"]);
    const { lockTimeoutMs: timeoutMs, leaseMs, durability, segmentBytesMax } = options;
    // Before anything is written: a newer format is refused here, a log that has lost its record, and one that this machine must not touch.
    const known = await findWholeLog(ports.disk, directory);
    mustBeMeant({ what: "event log", path: directory, found: known }, options);
    if (known !== undefined) checkMode(known, directory, ports.disk.volume);
    const groundPath = `${directory}/.holdfast`;
    const join = async (): Promise<Ground> => {
      await ensureDirectory(ports.disk, `${directory}/segments`);
      return await Ground.open(ports, groundPath, { leaseMs });
    };
    const look = known && (() => Ground.look(ports, groundPath, { leaseMs }));
    const ground = await joinOrLook(directory, join, look);
    let lock: StoreLock | undefined;
    try {
      const openLock = (): Promise<StoreLock> => createStoreLock(ports, directory, { timeoutMs, leaseMs });
      lock = await joinOrLook(directory, openLock, known && (() => openLate(ports, directory, openLock)));
      const record = known ?? (await decide(ground, directory, lock, options));
      checkMode(record, directory, ports.disk.volume);
      const isSynced = durability !== "none" || record.mode === "share";
      const place = new LogFiles(ground, directory, record.id, { isSynced, segmentBytesMax });
      const publisher = record.mode === "local" ? await openLocal(place, lock) : await SharePublisher.open(place);
      const log = new OpenedLog(place, publisher, lock, codec);
      try {
        const tip = await log.advance();
        if (tip.segment === 0 && known !== undefined && ports.disk.volume.kind === "local")
          await mustBeNew(ports.disk, directory);
      } catch (error) {
        await log.close();
        throw error;
      }
      // What dead processes have left in the ground. Whatever stands in the way, as where nothing can be written: the next one who opens it comes by here too.
      await ground.sweep().catch(() => undefined);
      return log;
    } catch (error) {
      await lock?.close();
      await ground.close();
      throw error;
    }
  }

  /** The published tip, with the view on it. */
  async advance(): Promise<Tip> {
    const tip = await this.publisher.tip();
    await this.view.advance(tip);
    return tip;
  }

  /** For work in the background. Calls to a local disk let nobody else in between, and whoever has the gate is waited for by all: but not for ever. */
  async #giveWay(): Promise<void> {
    const { clock } = this.place.ground.ports;
    await clock.sleep(0);
    for (let look = 0; look < looksMax && this.appender.hasGate; look++) await clock.sleep(lookMs);
  }

  async close(): Promise<void> {
    await this.appender.drained();
    this.hints.close();
    await this.view.close();
    await this.reader.close();
    await this.publisher.close();
    await this.lock.close();
    await this.place.ground.close();
  }
}

function checkChoice(options: LogOptions, name: "mode" | "durability", choices: readonly string[]): void {
  const chosen = options[name];
  if (chosen === undefined || choices.includes(chosen)) return;
  throw new TypeError(
    `${name} is ${choices.map((choice) => JSON.stringify(choice)).join(" or ")}, not ${chosen as string}.`,
  );
}

/** For a log that can only be read now. */
async function openLate(ports: Ports, directory: string, open: () => Promise<StoreLock>): Promise<StoreLock> {
  const gate = (await findGateKind(ports, directory)) ?? "os";
  return createLateStoreLock(lockPathOf(directory), gate, () => joinOrLook(directory, open, undefined));
}

async function openLocal(place: LogFiles, lock: StoreLock): Promise<LocalPublisher> {
  const publisher = new LocalPublisher(place);
  try {
    await publisher.settle(() => lock.tryAcquire());
  } catch (error) {
    await publisher.close();
    throw error;
  }
  return publisher;
}

async function decide(ground: Ground, directory: string, lock: StoreLock, { mode }: LogOptions): Promise<LogRecord> {
  const { clock, random, disk } = ground.ports;
  const id = makeId(clock.wallMs(), random.bytes(16));
  // An OS lock is a fence where one kernel serves all; anywhere else the chain has to be.
  const proposal: LogRecord = { id, mode: mode ?? (lock.gate === "os" ? "local" : "share") };
  checkMode(proposal, directory, disk.volume);
  return await decideLog(ground.staging, directory, proposal);
}
