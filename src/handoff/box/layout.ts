// The layout of a box: the only file that knows its directories.
import { createHash } from "node:crypto";
import { sha256Of } from "../../format/checksum.ts";

export const laneCount = 64;
const minuteMs = 60_000;
export const dayMs = 86_400_000;

export class BoxLayout {
  readonly directory: string;
  readonly record: string;
  readonly pauseRecord: string;
  /** While it exists, a backup lists the tickets. */
  readonly scanRecord: string;
  readonly incomings: string;
  readonly delayed: string;
  readonly parked: string;
  readonly processings: string;
  readonly stagings: string;
  readonly trash: string;
  readonly archives: string;
  readonly errors: string;
  readonly lanes: string;
  readonly payloads: string;
  readonly keys: string;
  readonly ledgers: string;
  readonly notes: string;

  constructor(directory: string) {
    this.directory = directory;
    this.record = `${directory}/box.json`;
    this.pauseRecord = `${directory}/pause.json`;
    this.scanRecord = `${directory}/scan.json`;
    this.incomings = `${directory}/incoming`;
    this.delayed = `${directory}/delayed`;
    this.parked = `${directory}/parked`;
    this.processings = `${directory}/processing`;
    this.stagings = `${directory}/staging`;
    this.trash = `${directory}/trash`;
    this.archives = `${directory}/archive`;
    this.errors = `${directory}/error`;
    this.lanes = `${directory}/lanes`;
    this.payloads = `${directory}/data`;
    this.keys = `${directory}/keys`;
    this.ledgers = `${directory}/ledger`;
    this.notes = `${directory}/notes`;
  }

  /** All names that may occur in the directory of a box. */
  get rooms(): readonly string[] {
    const directories =
      "incoming delayed parked lanes processing staging archive error data keys ledger notes trash foreign";
    return ["box.json", "pause.json", "scan.json", ".holdfast", "adopting", "aside", ...directories.split(" ")];
  }
  /** The directory of one priority. It has one directory per minute. */
  incoming(priority: number): string {
    return `${this.incomings}/${priority}`;
  }
  processing(holder: string): string {
    return `${this.processings}/${holder}`;
  }
  staging(holder: string): string {
    return `${this.stagings}/${holder}`;
  }
  archive(atMs: number): string {
    return `${this.archives}/${dayName(atMs)}`;
  }
  error(atMs: number): string {
    return `${this.errors}/${dayName(atMs)}`;
  }
  lane(number: number): string {
    return `${this.lanes}/${String(number).padStart(2, "0")}`;
  }
  /**
   * The files of one ticket. Sharded by the end of the id, which is random: the beginning is a
   * time, and would put all new tickets into one directory.
   */
  payload(id: string): string {
    return `${this.payloads}/${id.slice(-2)}/${id}`;
  }
  /** The file that claims a key at publish: a record of its ticket. */
  key(key: string): string {
    return `${this.keys}/${shardedHash(key)}`;
  }
  /** The ledger entry of a key. Each replay from the archive has an entry of its own. */
  ledger(key: string, replays: number): string {
    return `${this.ledgers}/${shardedHash(replays === 0 ? key : `${key}\n${replays}`)}`;
  }
  note(id: string, what: string): string {
    return `${this.notes}/${id.slice(-3)}/${id}-${what}.json`;
  }
}

/** With 4,096 shards, ten million keys leave each directory small enough to list. */
function shardedHash(text: string): string {
  const hash = sha256Of(text);
  return `${hash.slice(0, 3)}/${hash}`;
}

/**
 * Returns the lane of a group. The lane is a hash of the group, so all processes agree without
 * coordination.
 */
export function laneOf(group: string): number {
  return createHash("sha256").update(group).digest().readUInt32BE(0) % laneCount;
}

/** Ten digits, so that text order is time order. */
export function minuteName(atMs: number): string {
  return String(Math.floor(atMs / minuteMs)).padStart(10, "0");
}

export function findMinuteMs(name: string): number | undefined {
  return /^[0-9]{10}$/.test(name) ? Number(name) * minuteMs : undefined;
}

export function dayName(atMs: number): string {
  return new Date(Math.floor(atMs / dayMs) * dayMs).toISOString().slice(0, 10).replaceAll("-", "");
}

/** Returns when the day of this name begins, in UTC. */
export function findDayMs(name: string): number | undefined {
  const [, year, month, day] = /^([0-9]{4})([0-9]{2})([0-9]{2})$/.exec(name) ?? [];
  const startMs = Date.UTC(Number(year), Number(month) - 1, Number(day));
  return Number.isNaN(startMs) || dayName(startMs) !== name ? undefined : startMs;
}
