// Snapshots of the engine: one process publishes what its engine has, so that the others begin with that.
import { createHash } from "node:crypto";
import { ensureDirectory, syncNames } from "../../durable/publish/directory.ts";
import { replace } from "../../durable/publish/publish.ts";
import { getRecord, isUnreadable } from "../../durable/publish/record-file.ts";
import type { Staging } from "../../durable/publish/staging.ts";
import { countOf, objectOf, textOf } from "../../format/decoding.ts";
import { randomName } from "../../format/id.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { writeBody } from "../../part/body.ts";
import { Generations } from "../../part/generations.ts";
import { hasErrno } from "../../ports/disk-error.ts";

/** Of the schema of the engine. Snapshots of an older one are replaced. */
const engineVersion = 1;
const snapshotBytesMax = 2 ** 31 - 1;
/** A snapshot that is replaced while it is read is looked for anew. */
const readingsMax = 5;

export interface SnapshotRecord {
  /** Of the index. */
  readonly index: string;
  /** All changes up to this one are in it. */
  readonly position: number;
  readonly file: string;
  readonly sha256: string;
}

export interface Snapshot extends SnapshotRecord {
  readonly bytes: Uint8Array;
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

  /** The current one of this index; undefined when there is none, or none that can be read. */
  async find(index: string): Promise<Snapshot | undefined> {
    for (let reading = 1; reading <= readingsMax; reading++) {
      const found = await this.findRecord(index);
      if (found === undefined) return undefined;
      try {
        const bytes = await this.#staging.disk.readFile(found.path, snapshotBytesMax);
        if (createHash("sha256").update(bytes).digest("hex") !== found.record.sha256) return undefined;
        return { ...found.record, bytes };
      } catch (error) {
        if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
      }
    }
    return undefined;
  }

  async findRecord(index: string): Promise<{ readonly record: SnapshotRecord; readonly path: string } | undefined> {
    try {
      if (!(await this.#exists())) return undefined;
      const generations = await this.#open();
      const { current } = await generations.read();
      if (current?.version !== engineVersion) return undefined;
      const directory = generations.directoryOf(current.number);
      const record = await getRecord(this.#staging.disk, snapshotKind, `${directory}/snapshot.json`);
      return record.index === index ? { record, path: `${directory}/${record.file}` } : undefined;
    } catch (error) {
      // It is derived: what cannot be read is made anew.
      if (hasErrno(error, "ENOENT", "ESTALE") || isUnreadable(error)) return undefined;
      throw error;
    }
  }

  /**
   * To be called under a lease. If two processes do it at once, each one's files have names of their own, and one of the
   * two snapshots is the current one.
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
    if (now.current?.number === building.number) await generations.removeOlderThan(building.number);
  }

  /** A reader makes nothing. */
  async #exists(): Promise<boolean> {
    return (await this.#staging.disk.findStat(`${this.#directory}/catalog`)) !== undefined;
  }

  /** Each time: a person may have deleted it meanwhile. */
  async #open(): Promise<Generations> {
    await ensureDirectory(this.#staging.disk, this.#directory);
    return await Generations.open(this.#staging, this.#directory, this.#bootId);
  }
}

const snapshotKind: RecordKind<SnapshotRecord> = {
  kind: "snapshot",
  decode: (value) => {
    const { index, position, file, sha256 } = objectOf(value);
    return { index: textOf(index), position: countOf(position), file: textOf(file), sha256: textOf(sha256) };
  },
};
