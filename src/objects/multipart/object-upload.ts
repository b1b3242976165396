// ObjectUpload is a multipart upload in a directory.
import { traceMethods } from "../../telemetry/trace.ts";
import { tracedUploadMethods } from "../traced-methods.ts";
import { listIfThere } from "../../durable/publish/directory.ts";
import type { Body, Cancel } from "../../common.ts";
import { isId } from "../../format/id.ts";
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { compareKeys } from "../listing/index-line.ts";
import { CheckedUpload, type PartSource } from "../checked-upload.ts";
import type { ObjectVersion, Preconditions, StoredObject, UploadInfo } from "../model/object.ts";
import { pageLimit } from "../model/arguments.ts";
import type { DeclaredBody } from "../version/stage-body.ts";
import type { AnnounceKey } from "../version/put-version.ts";
import { openObject } from "../version/read-version.ts";
import { completeUpload, type NamedUploadParts } from "./complete-upload.ts";
import { putPart } from "./put-part.ts";
import { noSuchUpload, UploadFiles, type DamagedUpload } from "./upload-files.ts";
import type { UploadPartRecord, UploadRecord } from "./upload-records.ts";

export interface UploadUse {
  /** Runs `work` on the bucket's current state. */
  /** The directory of the object store. */
  readonly directory: string;
  /** The name of the bucket. */
  readonly bucket: string;
  readonly on: <T>(work: (bucket: OpenBucket) => Promise<T>) => Promise<T>;
  readonly getBucket: (name: string) => Promise<OpenBucket>;
  readonly announce: AnnounceKey;
}

export class ObjectUpload extends CheckedUpload {
  static {
    traceMethods(this, tracedUploadMethods);
  }

  readonly #use: UploadUse;

  constructor(record: Omit<UploadRecord, "facts">, use: UploadUse) {
    super(record, use);
    this.#use = use;
  }

  protected override async putPart(partNumber: number, body: Body, declared: DeclaredBody): Promise<UploadPartRecord> {
    return await this.#use.on(async (bucket) =>
      putPart(await this.#open(bucket), { partNumber, key: this.key, body }, declared),
    );
  }

  protected override async openSource(from: PartSource, { signal }: Cancel): Promise<StoredObject> {
    const { bucket, key, versionId, range } = from;
    return await this.#use.on(async (own) =>
      openObject(bucket === undefined ? own : await this.#use.getBucket(bucket), key, { versionId, range, signal }),
    );
  }

  protected override async listParts(after: number): Promise<readonly UploadPartRecord[]> {
    return await this.#use.on(async (bucket) => {
      const all = await (await this.#open(bucket)).parts();
      return all.filter(({ partNumber }) => partNumber > after);
    });
  }

  protected override async completeChecked(
    named: NamedUploadParts,
    preconditions: Preconditions,
  ): Promise<ObjectVersion> {
    return await this.#use.on((bucket) =>
      completeUpload(new UploadFiles(bucket, this.id), named, preconditions, this.#use.announce),
    );
  }

  /** Throws NO_SUCH_UPLOAD if the upload was completed: only one of the two can win. */
  override async abort(): Promise<void> {
    await this.#use.on(async (bucket) => {
      const files = new UploadFiles(bucket, this.id);
      if ((await files.findOrDamage()) === undefined) throw noSuchUpload(this.id);
      if (!(await files.abort())) throw noSuchUpload(this.id);
    });
  }

  /** Throws NO_SUCH_UPLOAD if the upload has ended. */
  async #open(bucket: OpenBucket): Promise<UploadFiles> {
    const files = new UploadFiles(bucket, this.id);
    if ((await files.find()) === undefined || (await files.findEnd()) !== undefined) throw noSuchUpload(this.id);
    return files;
  }
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

/** Lists uploads in progress, including damaged ones, by key and then by id. */
export async function listUploads(bucket: OpenBucket, options: ListUploadsOptions): Promise<UploadList> {
  const { prefix = "", keyMarker = "", idMarker = "", limit = pageLimit } = options;
  const found = (await uploadsInProgress(bucket)).filter(({ id, key }) => {
    const order = compareKeys(key, keyMarker);
    return key.startsWith(prefix) && (keyMarker === "" || order > 0 || (order === 0 && id > idMarker));
  });
  found.sort((one, other) => compareKeys(one.key, other.key) || (one.id < other.id ? -1 : 1));
  const uploads = found.slice(0, limit);
  const last = uploads.at(-1);
  if (found.length === uploads.length || last === undefined) return { uploads };
  return { uploads, nextKeyMarker: last.key, nextIdMarker: last.id };
}

export async function uploadsInProgress(bucket: OpenBucket): Promise<UploadInfo[]> {
  const found: UploadInfo[] = [];
  for (const id of await listIfThere(bucket.storage.disk, bucket.layout.uploads)) {
    if (!isId(id)) continue;
    const files = new UploadFiles(bucket, id);
    const record = await files.findOrDamage();
    if (record === undefined) continue;
    const end = await files.findEndOrDamage();
    if (end === undefined || "error" in end) found.push(uploadInfoOf(record, end?.error));
  }
  return found;
}

export function uploadInfoOf(record: UploadRecord | DamagedUpload, endError: Error | undefined): UploadInfo {
  const { id, key, startedAtMs } = record;
  const damaged = "error" in record ? record.error : endError;
  const { checksum, initiator } = "error" in record ? {} : record;
  return {
    id,
    key,
    startedAt: new Date(startedAtMs),
    ...(checksum === undefined ? {} : { checksum }),
    ...(initiator === undefined ? {} : { initiator }),
    ...(damaged === undefined ? {} : { damaged }),
  };
}
