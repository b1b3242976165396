// HolderRecords reads the records of holders. An unreadable record decides nothing about its
// holder: the heartbeat, which states the lease, shows if the process is alive.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { decodeBeat, type Beat } from "../../format/beat.ts";
import { isId } from "../../format/id.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { getRecord, isUnreadable } from "../publish/record-file.ts";
import { holderKind, type GroundLayout, type HolderRecord } from "./holder-record.ts";

const beatBytesMax = 4096;
/**
 * For a holder with neither a record nor a beat that states its lease. Longer than any lease in
 * use: waiting costs time, but declaring a living process dead costs its work.
 */
const unknownLeaseMs = 3_600_000;

/** An unreadable record, as `verify` reports it. */
export interface DamagedHolder {
  readonly id: string;
  readonly path: string;
  readonly what: string;
  readonly remedy: string;
}

const remedy =
  "It blocks no process: the heartbeat beside it decides whether its holder is alive, and it is removed with that holder.";

export class HolderRecords {
  readonly #disk: Disk;
  readonly #layout: GroundLayout;

  constructor(disk: Disk, layout: GroundLayout) {
    this.#disk = disk;
    this.#layout = layout;
  }

  /** Returns undefined for a holder that has ended or was declared dead. Throws NEWER_FORMAT. */
  async find(id: string): Promise<HolderRecord | undefined> {
    return await this.#read(id, this.#layout.record(id));
  }

  /** Returns the record of a holder that was declared dead. */
  async findDead(id: string): Promise<HolderRecord | undefined> {
    return await this.#read(id, this.#layout.deathRecord(id));
  }

  /** Returns every holder that has joined. */
  async list(): Promise<HolderRecord[]> {
    const holders: HolderRecord[] = [];
    for (const id of await this.#ids()) {
      const holder = await this.find(id);
      // It ended or was declared dead since the listing.
      if (holder !== undefined) holders.push(holder);
    }
    return holders;
  }

  /** Returns the unreadable records. */
  async listDamaged(): Promise<DamagedHolder[]> {
    const damaged: DamagedHolder[] = [];
    for (const id of await this.#ids())
      await this.#attempt(id, this.#layout.record(id)).catch((error: unknown) => {
        if (!isHoldfastError(error) || !isUnreadable(error)) throw error;
        damaged.push({
          id,
          path: this.#layout.record(id),
          what: `The record of holder ${id} cannot be read: ${error.message}`,
          remedy,
        });
      });
    return damaged;
  }

  async #ids(): Promise<string[]> {
    const names = await this.#disk.list(this.#layout.holders);
    // Foreign files are ignored.
    return names.filter((name) => name.endsWith(".json")).map((name) => name.slice(0, -".json".length)).filter(isId); // prettier-ignore
  }

  async #read(id: string, path: string): Promise<HolderRecord | undefined> {
    try {
      return await this.#attempt(id, path);
    } catch (error) {
      // A newer Holdfast works here, and its heartbeat may have another meaning.
      if (!isUnreadable(error) || isHoldfastError(error, "NEWER_FORMAT")) throw error;
      return await this.#knownByBeat(id);
    }
  }

  async #attempt(id: string, path: string): Promise<HolderRecord | undefined> {
    try {
      const holder = await getRecord(this.#disk, holderKind, path);
      if (holder.id === id) return holder;
      const message = `${path} belongs to the holder ${holder.id}: it was copied or renamed. Move it away.`;
      throw holdfastError("CORRUPT", message, { path });
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return undefined;
      throw error;
    }
  }

  /** Returns a record that cannot prove a death: it has no boot, no process, and no identity of a locked file. */
  async #knownByBeat(id: string): Promise<HolderRecord> {
    const unknown = { name: "", host: "", pid: 0, version: "", bootId: "", processSpace: "", startMark: "" };
    const beat = await this.#findBeat(id);
    const { leaseMs = unknownLeaseMs, wallMs: startedAtMs = 0 } = beat ?? {};
    return { ...unknown, id, startedAtMs, leaseMs, isLocal: false, beatIdentity: "" };
  }

  async #findBeat(id: string): Promise<Beat | undefined> {
    try {
      return decodeBeat(await this.#disk.readFile(this.#layout.beat(id), beatBytesMax));
    } catch (error) {
      if (isUnreadable(error) || hasErrno(error, "ENOENT", "ESTALE", "EFBIG")) return undefined;
      throw error;
    }
  }
}
