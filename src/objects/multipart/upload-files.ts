// UploadFiles manages the files of one upload. The files of the parts are not moved when the upload
// is completed.
import { ensureDirectory, listIfThere, removeTree, syncNames, unlinkIfThere } from "../../durable/publish/directory.ts";
import { isStillThere, moveOnce, putIfAbsent, replace } from "../../durable/publish/publish.ts";
import { findRecord, findRecordSurely, getRecord } from "../../durable/publish/record-file.ts";
import { stage } from "../../durable/publish/staging.ts";
import { holdfastError, type HoldfastError } from "../../errors.ts";
import { idTimeMs } from "../../format/id.ts";
import { encodeRecord, recordBytesMax } from "../../format/record.ts";
import { moveAside } from "../../part/aside.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { isSlotDamage } from "../key/entry-file.ts";
import { readVersions } from "../listing/list-page.ts";
import { findUploadOf } from "../version/body-files.ts";
import {
  endKind,
  partKind,
  uploadKind,
  type CompletionRecord,
  type UploadPartRecord,
  type UploadEnd,
  type UploadRecord,
} from "./upload-records.ts";

const recordName = "upload.json";
const partPattern = /^p[0-9]{5}$/;
const bodyPattern = /^b[0-9a-z]{26}$/;
/** How many parts are read in parallel. */
const readsAtOnce = 32;
const keyPattern = /"key":("(?:[^"\\]|\\.)*"),"startedAtMs":/;

/** An upload whose record cannot be read. It can only be aborted. */
export interface DamagedUpload {
  readonly id: string;
  /** Empty if it is not legible. */
  readonly key: string;
  readonly startedAtMs: number;
  readonly error: HoldfastError;
}

export class UploadFiles {
  readonly bucket: OpenBucket;
  readonly id: string;
  readonly directory: string;

  constructor(bucket: OpenBucket, id: string) {
    this.bucket = bucket;
    this.id = id;
    this.directory = `${bucket.layout.uploads}/${id}`;
  }

  get recordPath(): string {
    return `${this.directory}/${recordName}`;
  }
  /** Path of the end, relative to the incarnation. */
  get endFile(): string {
    return `uploads/${this.id}/end`;
  }
  get endPath(): string {
    return this.bucket.bodyPath(this.endFile);
  }
  partPath(number: number): string {
    return `${this.directory}/p${String(number).padStart(5, "0")}`;
  }

  /** Resolves when the record is durable. */
  async create(record: UploadRecord): Promise<void> {
    const { storage, layout } = this.bucket;
    await storage.disk.mkdir(this.directory);
    const temp = await stage(storage.staging, encodeRecord(uploadKind, record), { sync: storage.isSynced });
    await moveOnce(storage.disk, temp, this.recordPath);
    await storage.sync(this.directory, layout.uploads);
  }

  /** Throws CORRUPT or NEWER_FORMAT. */
  async find(): Promise<UploadRecord | undefined> {
    return await findRecord(this.bucket.storage.disk, uploadKind, this.recordPath);
  }

  /** Like `find`, but returns a damaged upload if the record cannot be read. */
  async findOrDamage(): Promise<UploadRecord | DamagedUpload | undefined> {
    const { disk } = this.bucket.storage;
    try {
      return await this.find();
    } catch (error) {
      if (!isSlotDamage(disk, error)) throw error;
      return { id: this.id, key: await this.#legibleKey(), startedAtMs: idTimeMs(this.id), error };
    }
  }

  async #legibleKey(): Promise<string> {
    try {
      const bytes = await this.bucket.storage.disk.readFile(this.recordPath, recordBytesMax);
      const json = keyPattern.exec(Buffer.from(bytes).toString("utf8"))?.[1];
      return json === undefined ? "" : (JSON.parse(json) as string);
    } catch {
      // The record is damaged, so its key is only a hint.
      return "";
    }
  }

  /** True if the record exists. On a share, asks the server. */
  async isThere(): Promise<boolean> {
    return await isStillThere(this.bucket.storage.staging, this.recordPath);
  }

  /**
   * Finds how the upload ended. On a share, asks the server: this machine may have cached that
   * there is no end.
   */
  async findEnd(): Promise<UploadEnd | undefined> {
    return await findRecordSurely(this.bucket.storage.disk, endKind, this.endPath);
  }

  /** Like `findEnd`, but returns the error if the end cannot be read. */
  async findEndOrDamage(): Promise<UploadEnd | { readonly error: HoldfastError } | undefined> {
    try {
      return await this.findEnd();
    } catch (error) {
      if (!isSlotDamage(this.bucket.storage.disk, error)) throw error;
      return { error };
    }
  }

  /** Returns a new file name for the body of a part. Every attempt to upload a part uses a new one. */
  newBodyFile(): string {
    return `uploads/${this.id}/b${this.bucket.storage.newId()}`;
  }

  /**
   * Makes this the current part of its number. The bodies of earlier ones stay: a completion may
   * have named them.
   */
  async setPart(part: UploadPartRecord): Promise<void> {
    const { storage } = this.bucket;
    await replace(storage.staging, this.partPath(part.partNumber), encodeRecord(partKind, part), {
      sync: storage.isSynced,
    });
  }

  async findPart(number: number): Promise<UploadPartRecord | undefined> {
    return await findRecord(this.bucket.storage.disk, partKind, this.partPath(number));
  }

  /** Returns the parts with these numbers, in the same order. */
  async findParts(numbers: readonly number[]): Promise<(UploadPartRecord | undefined)[]> {
    const found: (UploadPartRecord | undefined)[] = [];
    for (let at = 0; at < numbers.length; at += readsAtOnce)
      found.push(...(await Promise.all(numbers.slice(at, at + readsAtOnce).map((each) => this.findPart(each)))));
    return found;
  }

  /** Returns all parts, by number. */
  async parts(): Promise<UploadPartRecord[]> {
    const found = await this.findParts(await this.partNumbers());
    return found.filter((part) => part !== undefined);
  }

  async partNumbers(): Promise<number[]> {
    const names = (await listIfThere(this.bucket.storage.disk, this.directory)).filter((each) =>
      partPattern.test(each),
    );
    return names.sort().map((name) => Number(name.slice(1)));
  }

  /** Replaces the unreadable record, or the unreadable end, of a completed upload. */
  async writeAgain(what: { readonly record: UploadRecord } | { readonly end: CompletionRecord }): Promise<void> {
    const { storage, layout } = this.bucket;
    const [path, bytes] =
      "record" in what
        ? [this.recordPath, encodeRecord(uploadKind, what.record)]
        : [this.endPath, encodeRecord(endKind, what.end)];
    if ((await storage.disk.findStat(path))?.kind === "directory")
      await moveAside({ disk: storage.disk, directory: layout.directory, newId: () => storage.newId() }, path);
    await replace(storage.staging, path, bytes);
  }

  /**
   * Proposes how the upload ends. Returns the end that was decided, which may be that of another
   * process. Throws NO_SUCH_UPLOAD if the upload is gone: the record is removed before the end, so
   * an end without a record came too late and does not count.
   */
  async decide(proposal: UploadEnd): Promise<UploadEnd> {
    const { storage } = this.bucket;
    try {
      const isOurs = await putIfAbsent(storage.staging, this.endPath, encodeRecord(endKind, proposal), {
        isPermanent: true,
      });
      const end = isOurs ? proposal : await getRecord(storage.disk, endKind, this.endPath);
      await storage.sync(this.directory);
      if (await this.isThere()) return end;
    } catch (error) {
      if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
    }
    throw noSuchUpload(this.id);
  }

  /**
   * Aborts the upload. Returns false if it was completed: only one of the two can win. Throws
   * NO_SUCH_UPLOAD.
   */
  async abort(): Promise<boolean> {
    try {
      if (!(await this.endByAbort())) return false;
    } catch (error) {
      if (!isSlotDamage(this.bucket.storage.disk, error)) throw error;
      // The end exists but cannot be read.
      const aside = await this.moveAway();
      if (aside === undefined) return false;
      await removeTree(this.bucket.storage.disk, aside);
      return true;
    }
    await this.remove();
    return true;
  }

  /** Decides that the upload is aborted. Returns false if it was completed. */
  async endByAbort(): Promise<boolean> {
    const { storage } = this.bucket;
    // The end of a completed upload may be lost. Then an abort would destroy the body of its
    // version.
    if (await this.isUsed()) return false;
    const end = await storage.reserve.use(async () => {
      const { holder } = await storage.ground.session();
      return await this.decide({ kind: "abort", id: storage.newId(), holder: holder.id });
    });
    return end.kind === "abort";
  }

  /** True if a version uses the files. False also if the key of the upload is unknown. */
  async isUsed(): Promise<boolean> {
    const record = await this.findOrDamage();
    if (record === undefined || record.key === "") return false;
    const { versions } = await readVersions(this.bucket, record.key);
    return versions.some(({ entry }) => findUploadOf(entry) === this.id);
  }

  /**
   * Moves an upload whose end cannot be read to `aside/` and returns the new path. Returns
   * undefined if a version uses the files: the upload was completed. Checks for such a version
   * again after the move: a completer that comes later finds no record and withdraws its version;
   * if one was faster, the files are moved back.
   */
  async moveAway(): Promise<string | undefined> {
    const { storage, layout } = this.bucket;
    const record = await this.find();
    if (record === undefined) throw noSuchUpload(this.id);
    if (await this.isUsed()) return undefined;
    const aside = `${layout.aside}/${this.id}.${storage.newId()}`;
    await ensureDirectory(storage.disk, layout.aside);
    if (!(await moveOnce(storage.disk, this.directory, aside))) throw noSuchUpload(this.id);
    const { versions } = await readVersions(this.bucket, record.key);
    if (versions.some(({ entry }) => findUploadOf(entry) === this.id)) {
      await moveOnce(storage.disk, aside, this.directory);
      return undefined;
    }
    for (const path of [layout.aside, layout.uploads]) await syncNames(storage.disk, path);
    return aside;
  }

  /** Removes the bodies of parts that the completion did not name. Returns their number. */
  async removeUnnamed({ parts }: CompletionRecord): Promise<number> {
    const { disk } = this.bucket.storage;
    const named = new Set(parts.map(({ file }) => file));
    const names = await listIfThere(disk, this.directory);
    const unnamed = names.filter((name) => bodyPattern.test(name) && !named.has(`uploads/${this.id}/${name}`));
    for (const name of unnamed) await unlinkIfThere(disk, `${this.directory}/${name}`);
    return unnamed.length;
  }

  /** Removes the files of an upload without a record. Returns false if a record appeared meanwhile. */
  async removeRest(): Promise<boolean> {
    const { disk } = this.bucket.storage;
    for (const name of await listIfThere(disk, this.directory))
      if (name !== recordName) await unlinkIfThere(disk, `${this.directory}/${name}`);
    try {
      await disk.rmdir(this.directory);
      return true;
    } catch (error) {
      if (!hasErrno(error, "ENOENT", "ENOTEMPTY", "EEXIST", "EBUSY", "ESTALE")) throw error;
      return false;
    }
  }

  /**
   * Removes the files of the upload. Called after an abort was decided, or after the version of a
   * completion was removed.
   */
  async remove(): Promise<void> {
    const { storage } = this.bucket;
    await removeEntry(storage.disk, this.recordPath);
    await storage.sync(this.directory).catch((error: unknown) => {
      if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
    });
    for (const name of await listIfThere(storage.disk, this.directory))
      if (name !== "end") await removeEntry(storage.disk, `${this.directory}/${name}`);
    await removeTree(storage.disk, this.directory);
  }
}

/** Removes a file, or a directory of that name. */
async function removeEntry(disk: Disk, path: string): Promise<void> {
  try {
    await unlinkIfThere(disk, path);
  } catch (error) {
    if (!hasErrno(error, "EISDIR", "EPERM") || (await disk.findStat(path))?.kind !== "directory") throw error;
    await removeTree(disk, path);
  }
}

export function noSuchUpload(uploadId: string): Error {
  const message = `There is no upload ${uploadId}: it was completed or aborted, or never begun. Begin a new one.`;
  return holdfastError("NO_SUCH_UPLOAD", message, { uploadId });
}
