// Where everything of a box lies: the one place that knows its directories.
import { createHash } from "node:crypto";

export const laneCount = 64;
const minuteMs = 60_000;
const dayMs = 86_400_000;

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
  /** Of one priority; in it a directory for each minute. */
  incoming(priority: number): string {
    return `${this.directory}/incoming/${priority}`;
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
  archive(atMs: number): string {
    return `${this.directory}/archive/${dayName(atMs)}`;
  }
  error(atMs: number): string {
    return `${this.directory}/error/${dayName(atMs)}`;
  }
  lane(number: number): string {
    return `${this.directory}/lanes/${String(number).padStart(2, "0")}`;
  }
  /** The files of one ticket. By its random end: the beginning of an id is a time, and would fill one directory at a time. */
  payload(id: string): string {
    return `${this.directory}/data/${id.slice(-2)}/${id}`;
  }
  /** The name by which a key is claimed at publish: a second name of its ticket. */
  key(key: string): string {
    return `${this.directory}/keys/${shardedHash(key)}`;
  }
  /** What was committed under a key. A ticket that was replayed from the archive has an entry of its own each time. */
  ledger(key: string, replays: number): string {
    return `${this.directory}/ledger/${shardedHash(replays === 0 ? key : `${key}\n${replays}`)}`;
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

function dayName(atMs: number): string {
  return new Date(Math.floor(atMs / dayMs) * dayMs).toISOString().slice(0, 10).replaceAll("-", "");
}
