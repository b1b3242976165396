// An open log: creates its components, in the order in which a directory must be opened.
import { findGateKind, lockPathOf } from "../../durable/gate/gate-record.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { ensureDirectory } from "../../durable/publish/directory.ts";
import { checkExpectedStore } from "../../durable/publish/record-file.ts";
import { makeId } from "../../format/id.ts";
import { createLateStoreLock, createStoreLock, type StoreLock } from "../../locks/store/store-lock.ts";
import { joinGround, joinOrOpenReadOnly, recordedGround } from "../../part/part.ts";
import type { Ports } from "../../ports/ports.ts";
import { Appender } from "../append/appender.ts";
import { checkMode, decideLog, logPart, type LogRecord } from "../log/format/log-record.ts";
import type { Tip } from "../log/format/tip.ts";
import { LogFiles } from "../log/log-files.ts";
import { LocalPublisher } from "../log/publish/local-publisher.ts";
import type { Publisher } from "../log/publish/publisher.ts";
import { SharePublisher } from "../log/publish/share-publisher.ts";
import { EventReader } from "../log/read/event-reader.ts";
import { LogGrowth } from "../log/read/growth.ts";
import { LogView } from "../log/read/view.ts";
import type { EventCodec } from "../model/codec.ts";
import type { EventStoreOptions } from "../model/event-store.ts";
import { findWholeLog, mustBeNew } from "./lost-log.ts";

export interface LogOptions extends Omit<EventStoreOptions, "schemas" | "keys"> {
  /** For tests that want many segments. */
  readonly segmentBytesMax?: number | undefined;
  /** The ground of the store that opens the log. Default: the log is opened alone. */
  readonly ground?: Ground | undefined;
}

/**
 * Background work yields to the appender at most this many times in a row, which takes about as long as the appender
 * keeps the gate.
 */
const looksMax = 4;
const lookMs = 5;

export class OpenedLog {
  readonly files: LogFiles;
  readonly publisher: Publisher;
  readonly view: LogView;
  readonly reader: EventReader;
  readonly appender: Appender;
  readonly growth: LogGrowth;
  readonly lock: StoreLock;

  /** `AppenderClass`: the real one, or a faulty variant for tests. */
  constructor(
    files: LogFiles,
    publisher: Publisher,
    lock: StoreLock,
    codec: EventCodec,
    AppenderClass: typeof Appender = Appender,
  ) {
    const { ports } = files.ground;
    this.files = files;
    this.publisher = publisher;
    this.lock = lock;
    this.view = new LogView(files, () => this.#giveWay());
    this.reader = new EventReader(files, this.view, codec);
    this.growth = new LogGrowth(files.ground, files.directory, async () => (await publisher.tip()).position);
    this.appender = new AppenderClass({ ports, lock, publisher, view: this.view, reader: this.reader });
  }

  /** Creates the log if there is none. */
  static async open(ports: Ports, directory: string, codec: EventCodec, options: LogOptions): Promise<OpenedLog> {
    checkChoice(options, "mode", ["local", "share"]);
    checkChoice(options, "durability", ["fsync", "none"]);
    const { lockTimeoutMs: timeoutMs, leaseMs, durability, segmentBytesMax } = options;
    // Check before anything is written: this refuses a newer format, a log without its record, and a log that this
    // machine must not open.
    const known = await findWholeLog(ports.disk, directory);
    checkExpectedStore({ what: "event log", path: directory, found: known }, options);
    if (known !== undefined) checkMode(known, directory, ports.disk.volume);
    const { ground, ownsGround } = await joinGround(
      logPart,
      { ports, directory, ground: options.ground },
      { known, leaseMs, prepare: () => ensureDirectory(ports.disk, `${directory}/segments`) },
    );
    const leave = async (): Promise<void> => {
      await lock?.close();
      if (ownsGround) await ground.close();
    };
    let lock: StoreLock | undefined;
    try {
      const inStore = recordedGround(directory, ground).ground === undefined ? {} : { ground };
      const openLock = (): Promise<StoreLock> => createStoreLock(ports, directory, { timeoutMs, leaseMs, ...inStore });
      lock = await joinOrOpenReadOnly(
        logPart,
        directory,
        openLock,
        known && (() => openLate(ports, directory, openLock)),
      );
      const record = known ?? (await decide(ground, directory, lock, options));
      checkMode(record, directory, ports.disk.volume);
      if (record.ground !== recordedGround(directory, ground).ground) {
        // Another process created the log meanwhile, with another ground. Its record decides.
        await leave();
        return await OpenedLog.open(ports, directory, codec, options);
      }
      const isSynced = durability !== "none" || record.mode === "share";
      const files = new LogFiles(ground, directory, record.id, { isSynced, segmentBytesMax, ownsGround });
      const publisher = record.mode === "local" ? await openLocal(files, lock) : await SharePublisher.open(files);
      const log = new OpenedLog(files, publisher, lock, codec);
      try {
        const tip = await log.advance();
        if (tip.segment === 0 && known !== undefined && ports.disk.volume.kind === "local")
          await mustBeNew(ports.disk, directory);
      } catch (error) {
        await log.close();
        throw error;
      }
      // Removes what dead processes left in the ground. This may fail, for example if nothing can
      // be written: the next opening tries again.
      await ground.sweep().catch(() => undefined);
      return log;
    } catch (error) {
      await leave();
      throw error;
    }
  }

  /** Returns the published tip. The view has reached it when this resolves. */
  async advance(): Promise<Tip> {
    const tip = await this.publisher.tip();
    await this.view.advance(tip);
    return tip;
  }

  /**
   * Lets background work pause: a call to a local disk blocks this thread, and all writers wait for the holder of the
   * gate.
   */
  async #giveWay(): Promise<void> {
    const { clock } = this.files.ground.ports;
    await clock.sleep(0);
    for (let look = 0; look < looksMax && this.appender.hasGate; look++) await clock.sleep(lookMs);
  }

  async close(): Promise<void> {
    await this.appender.drained();
    this.growth.close();
    await this.view.close();
    await this.reader.close();
    await this.publisher.close();
    await this.lock.close();
    if (this.files.ownsGround) await this.files.ground.close();
  }
}

function checkChoice(options: LogOptions, name: "mode" | "durability", choices: readonly string[]): void {
  const chosen = options[name];
  if (chosen === undefined || choices.includes(chosen)) return;
  throw new TypeError(
    `${name} is ${choices.map((choice) => JSON.stringify(choice)).join(" or ")}, not ${chosen as string}.`,
  );
}

/** Opens the gate later, for a log that can currently only be read. */
async function openLate(ports: Ports, directory: string, open: () => Promise<StoreLock>): Promise<StoreLock> {
  const gate = (await findGateKind(ports, directory)) ?? "os";
  return createLateStoreLock(lockPathOf(directory), gate, () =>
    joinOrOpenReadOnly(logPart, directory, open, undefined),
  );
}

async function openLocal(files: LogFiles, lock: StoreLock): Promise<LocalPublisher> {
  const publisher = new LocalPublisher(files);
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
  // If one kernel serves all processes, an OS lock excludes all other writers. Otherwise the chain decides.
  const proposal: LogRecord = {
    id,
    mode: mode ?? (lock.gate === "os" ? "local" : "share"),
    ...recordedGround(directory, ground),
  };
  checkMode(proposal, directory, disk.volume);
  return await decideLog(ground.staging, directory, proposal);
}
