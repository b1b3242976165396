// Snapshots of the engine: one process publishes the state of its engine, and the others start with
// it.
import { ensureDirectory, parentOf, removeTree, syncNames } from "../../durable/publish/directory.ts";
import { moveOnce, replace } from "../../durable/publish/publish.ts";
import { getRecord, isUnreadable } from "../../durable/publish/record-file.ts";
import type { Staging } from "../../durable/publish/staging.ts";
import { countOf, objectOf, textOf } from "../../format/decoding.ts";
import { randomName } from "../../format/id.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { isHoldfastError } from "../../errors.ts";
import { describeDamage } from "../../part/findings.ts";
import { writeBody } from "../../part/body.ts";
import { Generations } from "../../part/generations.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { sha256Of } from "../../format/checksum.ts";

/**
 * Version of the engine's schema, and of how words are made. A snapshot of another version is not
 * loaded, and one of an older version is replaced. Version 2 has words of single characters.
 */
const engineVersion = 2;
const snapshotBytesMax = 2 ** 31 - 1;
/** A snapshot that is replaced while it is read is looked up again. */
const readingsMax = 5;

export interface SnapshotRecord {
  /** Id of the index. */
  readonly index: string;
  /** All changes up to this one are in it. */
  readonly position: number;
  readonly file: string;
  readonly sha256: string;
}

export interface Snapshot extends SnapshotRecord {
  readonly bytes: Uint8Array;
}

export interface FoundRecord {
  readonly record: SnapshotRecord;
  readonly path: string;
  /** The version that made it, compared with this one. */
  readonly age: "older" | "own" | "newer";
}

export class Snapshots {
  readonly #staging: Staging;
  readonly #directory: string;
  readonly #bootId: string;

  constructor(staging: Staging, directory: string, bootId: string) {
    this.#staging = staging;
    this.#directory = directory;
    this.#bootId = bootId;
  }

  /**
   * Returns the current snapshot of this index; undefined if there is none, or if it is unreadable.
   */
  async find(index: string): Promise<Snapshot | undefined> {
    for (let reading = 1; reading <= readingsMax; reading++) {
      const found = await this.findRecord(index);
      if (found === undefined || found.age !== "own") return undefined;
      try {
        const bytes = await this.#staging.disk.readFile(found.path, snapshotBytesMax);
        if (sha256Of(bytes) !== found.record.sha256) return undefined;
        return { ...found.record, bytes };
      } catch (error) {
        if (isUnreadable(error)) return undefined;
        if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
      }
    }
    return undefined;
  }

  /**
   * Returns why the current snapshot is unreadable, even if it belongs to another index; undefined
   * if there is none, or if it is intact.
   */
  async findDamage(): Promise<{ readonly path: string; readonly what: string } | undefined> {
    let path = `${this.#directory}/catalog`;
    try {
      if (!(await this.#exists())) return undefined;
      const generations = await this.#open();
      const { current } = await generations.read();
      if (current === undefined) return undefined;
      path = `${generations.directoryOf(current.number)}/snapshot.json`;
      const { file, sha256 } = await getRecord(this.#staging.disk, snapshotKind, path);
      path = `${generations.directoryOf(current.number)}/${file}`;
      const bytes = await this.#staging.disk.readFile(path, snapshotBytesMax);
      const isWhole = sha256Of(bytes) === sha256;
      return isWhole ? undefined : { path, what: "Its content is not the one that was written." };
    } catch (error) {
      // A newer release can read it. A snapshot that is replaced meanwhile is gone.
      if (isHoldfastError(error, "NEWER_FORMAT")) return undefined;
      return { path, what: describeDamage("The snapshot of the index", error).what };
    }
  }

  /** Removes all snapshots. */
  async remove(): Promise<void> {
    const { disk, random } = this.#staging;
    const taken = `${parentOf(this.#directory)}/aside/index.${randomName(random.bytes(16))}`;
    await ensureDirectory(disk, parentOf(taken));
    if (await moveOnce(disk, this.#directory, taken)) await removeTree(disk, taken);
  }

  /**
   * Returns the record, even of another engine version: all documents up to its position exist, and
   * outcomes may be gone.
   */
  async findRecord(index: string): Promise<FoundRecord | undefined> {
    try {
      if (!(await this.#exists())) return undefined;
      const generations = await this.#open();
      const { current } = await generations.read();
      if (current === undefined) return undefined;
      const directory = generations.directoryOf(current.number);
      const record = await getRecord(this.#staging.disk, snapshotKind, `${directory}/snapshot.json`);
      if (record.index !== index) return undefined;
      return { record, path: `${directory}/${record.file}`, age: ageOf(current.version) };
    } catch (error) {
      // A snapshot is derived: an unreadable one is made again.
      if (hasErrno(error, "ENOENT", "ESTALE") || isUnreadable(error)) return undefined;
      throw error;
    }
  }

  /**
   * Publishes a snapshot. Call it under a lease. If two processes publish at once, their files have
   * different names, and one of the two snapshots becomes the current one.
   */
  async publish(index: string, position: number, bytes: Uint8Array): Promise<void> {
    const { disk, random } = this.#staging;
    const generations = await this.#open();
    const { current } = await generations.read();
    const { building } = await generations.nameBuilding(engineVersion, current?.number);
    if (building === undefined) return;
    const directory = generations.directoryOf(building.number);
    await ensureDirectory(disk, directory);
    const file = `${randomName(random.bytes(16))}.sqlite`;
    const { sha256 } = await writeBody(disk, `${directory}/${file}`, bytes);
    await syncNames(disk, directory);
    const record = encodeRecord(snapshotKind, { index, position, file, sha256 });
    await replace(this.#staging, `${directory}/snapshot.json`, record);
    const now = await generations.switchTo(building.number);
    if (now.current?.number === building.number) await generations.removeOld();
  }

  /** Checks first, so that a reader creates nothing. */
  async #exists(): Promise<boolean> {
    return (await this.#staging.disk.findStat(`${this.#directory}/catalog`)) !== undefined;
  }

  /** Opened each time, because a person may have deleted the directory meanwhile. */
  async #open(): Promise<Generations> {
    await ensureDirectory(this.#staging.disk, this.#directory);
    return await Generations.open(this.#staging, this.#directory, this.#bootId);
  }
}

function ageOf(version: number): FoundRecord["age"] {
  return version === engineVersion ? "own" : version < engineVersion ? "older" : "newer";
}

const snapshotKind: RecordKind<SnapshotRecord> = {
  kind: "snapshot",
  decode: (value) => {
    const { index, position, file, sha256 } = objectOf(value);
    return { index: textOf(index), position: countOf(position), file: textOf(file), sha256: textOf(sha256) };
  },
};
