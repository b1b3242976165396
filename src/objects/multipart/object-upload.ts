// ObjectUpload: an upload in parts as its users have it.
import type { Body, Cancel } from "../../common.ts";
import { checkOptions } from "../../format/known-options.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { compareKeys } from "../listing/index-line.ts";
import { namesIn } from "../listing/walk-keys.ts";
import type {
  Checksum,
  ObjectVersion,
  PartInfo,
  Preconditions,
  PutOptions,
  UploadInfo,
} from "../model/object-store.ts";
import {
  checkPage,
  checkPartOptions,
  checkPreconditions,
  checkSource,
  pageLimit,
  preconditionNames,
} from "../model/arguments.ts";
import type { CopySource } from "../version/copy-version.ts";
import type { Announce } from "../version/put-version.ts";
import { openObject } from "../version/read-version.ts";
import { completeUpload, invalidPart, type NamedPart } from "./complete-upload.ts";
import { putPart } from "./put-part.ts";
import { noSuchUpload, UploadFiles } from "./upload-files.ts";
import type { JoinedKind, PartRecord, UploadRecord } from "./upload-records.ts";

const partNumberMax = 10_000;

export interface UploadUse {
  /** Runs on the bucket as it is at that moment. */
  readonly on: <T>(work: (bucket: OpenBucket) => Promise<T>) => Promise<T>;
  readonly getBucket: (name: string) => Promise<OpenBucket>;
  readonly announce: Announce;
}

export class ObjectUpload {
  readonly id: string;
  readonly key: string;
  readonly startedAt: Date;
  /** As it was asked for when the upload began. */
  readonly checksum?: JoinedKind;
  readonly #use: UploadUse;

  constructor({ id, key, startedAtMs, checksum }: UploadRecord, use: UploadUse) {
    this.id = id;
    this.key = key;
    this.startedAt = new Date(startedAtMs);
    if (checksum !== undefined) this.checksum = checksum;
    this.#use = use;
  }

  async put(
    partNumber: number,
    body: Body,
    options: Pick<PutOptions, "size" | "md5" | "checksum" | "signal"> = {},
  ): Promise<PartInfo> {
    if (!Number.isInteger(partNumber) || partNumber < 1 || partNumber > partNumberMax)
      throw new RangeError(`The number of a part is a whole number from 1 to ${partNumberMax}.`);
    checkPartOptions("upload.put", options);
    return await this.#use.on(async (bucket) => {
      const files = await this.#open(bucket);
      const algorithm = this.checksum?.algorithm;
      const checksum = options.checksum ?? (algorithm && { algorithm });
      return infoOf(await putPart(files, { partNumber, key: this.key, body }, { ...options, checksum }));
    });
  }

  async copy(
    partNumber: number,
    from: CopySource & { range?: { start: number; end: number } | undefined },
    options: Cancel = {},
  ): Promise<PartInfo> {
    checkOptions("upload.copy", options, { signal: true });
    checkSource("upload.copy", from, true);
    const { signal } = options;
    const { bucket, key, versionId, range } = from;
    const open = async (own: OpenBucket): Promise<OpenBucket> =>
      bucket === undefined ? own : await this.#use.getBucket(bucket);
    const source = await this.#use.on(
      async (own) => await openObject(await open(own), key, { versionId, range, signal }),
    );
    try {
      return await this.put(partNumber, source.stream(), { signal });
    } finally {
      await source[Symbol.asyncDispose]();
    }
  }

  async parts(
    options: { after?: number | undefined; limit?: number | undefined } = {},
  ): Promise<{ readonly parts: readonly PartInfo[]; readonly next?: number }> {
    checkOptions("parts", options, { after: true, limit: true });
    checkPage("parts", options, []);
    const { after = 0, limit = pageLimit } = options;
    if (!Number.isInteger(after) || after < 0) throw new RangeError("parts: after is the number of a part, or 0.");
    return await this.#use.on(async (bucket) => {
      const all = (await (await this.#open(bucket)).parts()).filter(({ partNumber }) => partNumber > after);
      const page = all.slice(0, limit);
      const last = page.at(-1)?.partNumber;
      return { parts: page.map(infoOf), ...(all.length > page.length && last !== undefined ? { next: last } : {}) };
    });
  }

  async complete(
    parts: readonly NamedPart[],
    options: Preconditions & Cancel & { checksum?: Checksum | undefined } = {},
  ): Promise<ObjectVersion> {
    checkOptions("complete", options, { ...preconditionNames, signal: true, checksum: true });
    const { signal, checksum, ...preconditions } = options;
    checkPreconditions("complete", preconditions);
    if (!Array.isArray(parts)) throw new TypeError("complete takes a list of { partNumber, etag }.");
    for (const part of parts as readonly NamedPart[])
      if (typeof part?.etag !== "string") throw invalidPart(part?.partNumber ?? 0, "it is named without an ETag");
    signal?.throwIfAborted();
    return await this.#use.on((bucket) =>
      completeUpload(new UploadFiles(bucket, this.id), { parts, checksum }, preconditions, this.#use.announce),
    );
  }

  /** NO_SUCH_UPLOAD when it was completed: the two cannot both win. */
  async abort(): Promise<void> {
    await this.#use.on(async (bucket) => {
      const files = new UploadFiles(bucket, this.id);
      if ((await files.find()) === undefined) throw noSuchUpload(this.id);
      if (!(await files.abort())) throw noSuchUpload(this.id);
    });
  }

  /** NO_SUCH_UPLOAD when it is over. */
  async #open(bucket: OpenBucket): Promise<UploadFiles> {
    const files = new UploadFiles(bucket, this.id);
    if ((await files.find()) === undefined || (await files.findEnd()) !== undefined) throw noSuchUpload(this.id);
    return files;
  }
}

function infoOf({ partNumber, etag, size, atMs, checksum }: PartRecord): PartInfo {
  const shown = checksum === undefined ? {} : { checksum };
  return { partNumber, etag, size, lastModified: new Date(atMs), ...shown };
}

export interface UploadList {
  readonly uploads: readonly UploadInfo[];
  readonly nextKeyMarker?: string;
  readonly nextIdMarker?: string;
}

export interface ListUploadsOptions {
  prefix?: string | undefined;
  keyMarker?: string | undefined;
  idMarker?: string | undefined;
  limit?: number | undefined;
}

/** Uploads that are under way, by key and then by id. */
export async function listUploads(bucket: OpenBucket, options: ListUploadsOptions): Promise<UploadList> {
  const { prefix = "", keyMarker = "", idMarker = "", limit = pageLimit } = options;
  const found: UploadInfo[] = [];
  for (const { id, key, startedAtMs, checksum } of await uploadsUnderWay(bucket)) {
    const order = compareKeys(key, keyMarker);
    if (!key.startsWith(prefix) || (keyMarker !== "" && (order < 0 || (order === 0 && id <= idMarker)))) continue;
    found.push({ id, key, startedAt: new Date(startedAtMs), ...(checksum === undefined ? {} : { checksum }) });
  }
  found.sort((one, other) => compareKeys(one.key, other.key) || (one.id < other.id ? -1 : 1));
  const uploads = found.slice(0, limit);
  const last = uploads.at(-1);
  if (found.length === uploads.length || last === undefined) return { uploads };
  return { uploads, nextKeyMarker: last.key, nextIdMarker: last.id };
}

export async function uploadsUnderWay(bucket: OpenBucket): Promise<UploadRecord[]> {
  const found: UploadRecord[] = [];
  for (const id of await namesIn(bucket.place.disk, bucket.layout.uploads)) {
    const files = new UploadFiles(bucket, id);
    const record = await files.find();
    if (record !== undefined && (await files.findEnd()) === undefined) found.push(record);
  }
  return found;
}
