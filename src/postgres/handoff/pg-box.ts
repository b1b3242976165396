// PgBox: the state that the files of this folder share for one box in a database.
import { holdfastError } from "../../errors.ts";
import { makeId } from "../../format/id.ts";
import { recordBytesMax } from "../../format/record.ts";
import type { Disk } from "../../ports/disk.ts";
import { redacted } from "../../format/database-location.ts";
import type { Database } from "../connection/database.ts";
import type { PgGround } from "../liveness/pg-ground.ts";
import type { PgPart } from "../parts.ts";

/** Makes a new folder for temporary files, which only this user may read. */
export type MakeScratch = () => Promise<{ readonly path: string; readonly disk: Disk }>;

/** Creates the rows of a new box. */
export const boxRows: string = "insert into hf_box (p) select p from made";

export interface PgBoxContext {
  readonly ground: PgGround;
  readonly part: PgPart;
  readonly store: string;
  readonly isSynced: boolean;
  readonly makeScratch: MakeScratch;
}

export class PgBox {
  readonly ground: PgGround;
  readonly part: PgPart;
  readonly isSynced: boolean;
  readonly makeScratch: MakeScratch;
  /** The location of the box, without the password. */
  readonly directory: string;

  constructor({ ground, part, store, isSynced, makeScratch }: PgBoxContext) {
    this.ground = ground;
    this.part = part;
    this.isSynced = isSynced;
    this.makeScratch = makeScratch;
    this.directory = boxLocation(ground.location, store, part.path.slice(part.path.lastIndexOf("/") + 1));
  }

  get database(): Database {
    return this.ground.database;
  }

  get p(): number {
    return this.part.p;
  }

  /** The path of the hints that report settled tickets. */
  get settledPath(): string {
    return `${this.part.path}#settled`;
  }

  newId(): string {
    const { clock, random } = this.ground.ports;
    return makeId(clock.wallMs(), random.bytes(16));
  }

  /** Returns the time by the clock of the server. */
  async nowMs(): Promise<number> {
    const [row] = await this.database.query<{ now_ms: number }>(
      "select (extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms",
    );
    return row?.now_ms ?? 0;
  }

  /** Wakes the consumers of all processes, because tickets entered the queue. */
  wake(): void {
    const { signals, database, ports } = this.ground;
    signals.wake(this.part.path);
    signals.notifyLater(database, ports.clock, this.part.path);
  }
}

/** Returns the location of a box in this database. Equal texts name the same box. */
export function boxLocation(location: string, store: string, name: string): string {
  const url = new URL(redacted(location));
  url.searchParams.set("store", store);
  url.hash = `handoff/${encodeURIComponent(name)}`;
  return url.href;
}

/** Throws TOO_LARGE for JSON that a box in a folder could not store either. */
export function checkSize(what: string, json: string): void {
  const actual = Buffer.byteLength(json);
  if (actual <= recordBytesMax) return;
  const message = `${what} takes ${actual} bytes, over the limit of ${recordBytesMax} bytes. Put large data into a file of the ticket.`;
  throw holdfastError("TOO_LARGE", message, { limit: recordBytesMax, actual });
}
