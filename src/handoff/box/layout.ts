// Where everything of a box lies: the one place that knows its directories.
import { createHash } from "node:crypto";

export const laneCount = 64;
const minuteMs = 60_000;
export const dayMs = 86_400_000;

export class BoxLayout {
  readonly directory: string;

  constructor(directory: string) {
    this.directory = directory;
  }

  get record(): string {
    return `${this.directory}/box.json`;
  }
  get pauseRecord(): string {
    return `${this.directory}/pause.json`;
  }
  /** All names that the directory of a box has. */
  get rooms(): readonly string[] {
    const directories =
      "incoming delayed parked lanes processing staging archive error data keys ledger notes trash foreign";
    return ["box.json", "pause.json", ".holdfast", "adopting", "aside", ...directories.split(" ")];
  }
  get incomings(): string {
    return `${this.directory}/incoming`;
  }
  /** Of one priority; in it a directory for each minute. */
  incoming(priority: number): string {
    return `${this.incomings}/${priority}`;
  }
  get delayed(): string {
    return `${this.directory}/delayed`;
  }
  get parked(): string {
    return `${this.directory}/parked`;
  }
  get processings(): string {
    return `${this.directory}/processing`;
  }
  processing(holder: string): string {
    return `${this.processings}/${holder}`;
  }
  get stagings(): string {
    return `${this.directory}/staging`;
  }
  staging(holder: string): string {
    return `${this.stagings}/${holder}`;
  }
  get trash(): string {
    return `${this.directory}/trash`;
  }
  get archives(): string {
    return `${this.directory}/archive`;
  }
  archive(atMs: number): string {
    return `${this.archives}/${dayName(atMs)}`;
  }
  get errors(): string {
    return `${this.directory}/error`;
  }
  error(atMs: number): string {
    return `${this.errors}/${dayName(atMs)}`;
  }
  get lanes(): string {
    return `${this.directory}/lanes`;
  }
  lane(number: number): string {
    return `${this.lanes}/${String(number).padStart(2, "0")}`;
  }
  get payloads(): string {
    return `${this.directory}/data`;
  }
  /** The files of one ticket. By its random end: the beginning of an id is a time, and would fill one directory at a time. */
  payload(id: string): string {
    return `${this.payloads}/${id.slice(-2)}/${id}`;
  }
  get keys(): string {
    return `${this.directory}/keys`;
  }
  /** The name by which a key is claimed at publish: a second name of its ticket. */
  key(key: string): string {
    return `${this.keys}/${shardedHash(key)}`;
  }
  get ledgers(): string {
    return `${this.directory}/ledger`;
  }
  /** What was committed under a key. A ticket that was replayed from the archive has an entry of its own each time. */
  ledger(key: string, replays: number): string {
    return `${this.ledgers}/${shardedHash(replays === 0 ? key : `${key}\n${replays}`)}`;
  }
  note(id: string, what: string): string {
    return `${this.directory}/notes/${id.slice(-3)}/${id}-${what}.json`;
  }
}

/** 4,096 shards, so that ten million keys leave a directory with few enough names to be listed. */
function shardedHash(text: string): string {
  const hash = createHash("sha256").update(text).digest("hex");
  return `${hash.slice(0, 3)}/${hash}`;
}

/** The lane of a group: by its hash, so that all processes agree without a word. */
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

/** When that day begins, in UTC. */
export function findDayMs(name: string): number | undefined {
  const [, year, month, day] = /^([0-9]{4})([0-9]{2})([0-9]{2})$/.exec(name) ?? [];
  const startMs = Date.UTC(Number(year), Number(month) - 1, Number(day));
  return Number.isNaN(startMs) || dayName(startMs) !== name ? undefined : startMs;
}
