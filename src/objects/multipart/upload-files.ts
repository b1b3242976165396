// The files of one upload: parts in files that stay where they are when the upload is completed.
import { removeDirectory, unlinkIfThere } from "../../durable/publish/directory.ts";
import { isStillThere, moveOnce, putIfAbsent, replace } from "../../durable/publish/publish.ts";
import { findRecord, findRecordSurely, getRecord } from "../../durable/publish/record-file.ts";
import { stage } from "../../durable/publish/staging.ts";
import { holdfastError } from "../../errors.ts";
import { encodeRecord } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { namesIn } from "../listing/walk-keys.ts";
import {
  endKind,
  partKind,
  uploadKind,
  type Completion,
  type PartRecord,
  type UploadEnd,
  type UploadRecord,
} from "./upload-records.ts";

const recordName = "upload.json";
const partPattern = /^p[0-9]{5}$/;
const bodyPattern = /^b[0-9a-z]{26}$/;
/** So many parts are read at the same time. */
const readsAtOnce = 32;

export class UploadFiles {
  readonly bucket: OpenBucket;
  readonly id: string;
  readonly directory: string;

  constructor(bucket: OpenBucket, id: string) {
    this.bucket = bucket;
    this.id = id;
    this.directory = `${bucket.layout.uploads}/${id}`;
  }

  get #record(): string {
    return `${this.directory}/${recordName}`;
  }
  /** Where the end is, below the incarnation. */
  get endFile(): string {
    return `uploads/${this.id}/end`;
  }
  get #end(): string {
    return this.bucket.bodyPath(this.endFile);
  }
  #part(number: number): string {
    return `${this.directory}/p${String(number).padStart(5, "0")}`;
  }

  /** Durable when it resolves. */
  async create(record: UploadRecord): Promise<void> {
    const { place, layout } = this.bucket;
    await place.disk.mkdir(this.directory);
    const temp = await stage(place.staging, encodeRecord(uploadKind, record), { sync: place.isSynced });
    await moveOnce(place.disk, temp, this.#record);
    await place.sync(this.directory, layout.uploads);
  }

  async find(): Promise<UploadRecord | undefined> {
    return await findRecord(this.bucket.place.disk, uploadKind, this.#record);
  }

  /** As the server knows. */
  async isThere(): Promise<boolean> {
    return await isStillThere(this.bucket.place.staging, this.#record);
  }

  /** As the server knows: this machine may have looked for it before it was decided. */
  async findEnd(): Promise<UploadEnd | undefined> {
    return await findRecordSurely(this.bucket.place.disk, endKind, this.#end);
  }

  /** A name for the body of a part; each upload of a part has its own. */
  newBodyFile(): string {
    return `uploads/${this.id}/b${this.bucket.place.newId()}`;
  }

  /** The part with this number from now on. Earlier ones stay: a completion may have named them. */
  async setPart(part: PartRecord): Promise<void> {
    const { place } = this.bucket;
    await replace(place.staging, this.#part(part.partNumber), encodeRecord(partKind, part), { sync: place.isSynced });
  }

  async findPart(number: number): Promise<PartRecord | undefined> {
    return await findRecord(this.bucket.place.disk, partKind, this.#part(number));
  }

  /** The parts with these numbers, in the same order. */
  async findParts(numbers: readonly number[]): Promise<(PartRecord | undefined)[]> {
    const found: (PartRecord | undefined)[] = [];
    for (let at = 0; at < numbers.length; at += readsAtOnce)
      found.push(...(await Promise.all(numbers.slice(at, at + readsAtOnce).map((each) => this.findPart(each)))));
    return found;
  }

  /** All parts, by number. */
  async parts(): Promise<PartRecord[]> {
    const names = (await namesIn(this.bucket.place.disk, this.directory)).filter((each) => partPattern.test(each));
    const found = await this.findParts(names.sort().map((name) => Number(name.slice(1))));
    return found.filter((part) => part !== undefined);
  }

  /**
   * The end that holds from now on: `proposal`, or what another process has decided. NO_SUCH_UPLOAD
   * when the upload is gone: its record is removed before its end, so that an end which comes late
   * is seen to be void.
   */
  async decide(proposal: UploadEnd): Promise<UploadEnd> {
    const { place } = this.bucket;
    try {
      const isOurs = await putIfAbsent(place.staging, this.#end, encodeRecord(endKind, proposal), {
        isPermanent: true,
      });
      const end = isOurs ? proposal : await getRecord(place.disk, endKind, this.#end);
      await place.sync(this.directory);
      if (await this.isThere()) return end;
    } catch (error) {
      if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
    }
    throw noSuchUpload(this.id);
  }

  /** False when it was completed: the two cannot both win. NO_SUCH_UPLOAD. */
  async abort(): Promise<boolean> {
    const { place } = this.bucket;
    const { holder } = await place.ground.session();
    const end = await this.decide({ kind: "abort", id: place.newId(), holder: holder.id });
    if (end.kind !== "abort") return false;
    await this.remove();
    return true;
  }

  /** Bodies of parts that were uploaded and not named by the completion. How many. */
  async removeUnnamed({ parts }: Completion): Promise<number> {
    const { disk } = this.bucket.place;
    const named = new Set(parts.map(({ file }) => file));
    const names = await namesIn(disk, this.directory);
    const unnamed = names.filter((name) => bodyPattern.test(name) && !named.has(`uploads/${this.id}/${name}`));
    for (const name of unnamed) await unlinkIfThere(disk, `${this.directory}/${name}`);
    return unnamed.length;
  }

  /** What lies there without a record. False when one has come meanwhile. */
  async removeRest(): Promise<boolean> {
    const { disk } = this.bucket.place;
    for (const name of await namesIn(disk, this.directory))
      if (name !== recordName) await unlinkIfThere(disk, `${this.directory}/${name}`);
    try {
      await disk.rmdir(this.directory);
      return true;
    } catch (error) {
      if (!hasErrno(error, "ENOENT", "ENOTEMPTY", "EEXIST", "EBUSY", "ESTALE")) throw error;
      return false;
    }
  }

  /** After an abort was decided, and after the version of a completion is gone. */
  async remove(): Promise<void> {
    const { place } = this.bucket;
    await unlinkIfThere(place.disk, this.#record);
    await place.sync(this.directory).catch((error: unknown) => {
      if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
    });
    for (const name of await namesIn(place.disk, this.directory))
      if (name !== "end") await unlinkIfThere(place.disk, `${this.directory}/${name}`);
    await removeDirectory(place.disk, this.directory);
  }
}

export function noSuchUpload(uploadId: string): Error {
  const message = `There is no upload ${uploadId}: it was completed or aborted, or never begun. Begin a new one.`;
  return holdfastError("NO_SUCH_UPLOAD", message, { uploadId });
}
