// The part of an upload that is the same in every engine: it checks the arguments of a call, copies
// parts, and passes on what is left to do.
import type { Body, Cancel } from "../common.ts";
import { checkOptions } from "../format/known-options.ts";
import { traceMethods } from "../telemetry/trace.ts";
import {
  checkPage,
  checkPartOptions,
  checkPreconditions,
  checkSource,
  pageLimit,
  preconditionNames,
} from "./model/arguments.ts";
import type { Upload } from "./model/bucket.ts";
import type {
  BodyOption,
  Checksum,
  ObjectVersion,
  Preconditions,
  PutOptions,
  StoredObject,
  UploadPartInfo,
} from "./model/object.ts";
import { invalidPart, type NamedUploadPart, type NamedUploadParts } from "./multipart/complete-upload.ts";
import type { JoinedKind, UploadPartRecord, UploadRecord } from "./multipart/upload-records.ts";
import { tracedUploadMethods } from "./traced-methods.ts";
import type { CopySource } from "./version/copy-version.ts";
import type { DeclaredBody } from "./version/stage-body.ts";

const partNumberMax = 10_000;

export type PartSource = CopySource & { range?: { start: number; end: number } | undefined };

export abstract class CheckedUpload implements Upload {
  static {
    traceMethods(this, tracedUploadMethods);
  }

  /** The directory of the object store, or its name in a database. */
  readonly directory: string;
  readonly bucketName: string;
  readonly id: string;
  readonly key: string;
  readonly startedAt: Date;
  /** The checksum requested when the upload began. */
  readonly checksum?: JoinedKind;
  readonly initiator?: string;

  constructor(
    { id, key, startedAtMs, checksum, initiator }: Omit<UploadRecord, "facts">,
    { directory, bucket }: { readonly directory: string; readonly bucket: string },
  ) {
    this.directory = directory;
    this.bucketName = bucket;
    this.id = id;
    this.key = key;
    this.startedAt = new Date(startedAtMs);
    if (checksum !== undefined) this.checksum = checksum;
    if (initiator !== undefined) this.initiator = initiator;
  }

  protected abstract putPart(partNumber: number, body: Body, declared: DeclaredBody): Promise<UploadPartRecord>;
  protected abstract openSource(from: PartSource, options: Cancel): Promise<StoredObject>;
  /** Parts with numbers above `after`, in their order: at most `limit`, and one more if there are more. */
  protected abstract listParts(after: number, limit: number): Promise<readonly UploadPartRecord[]>;
  protected abstract completeChecked(named: NamedUploadParts, preconditions: Preconditions): Promise<ObjectVersion>;
  abstract abort(): Promise<void>;

  async put(
    partNumber: number,
    body: Body,
    options: Pick<PutOptions, BodyOption | "signal"> = {},
  ): Promise<UploadPartInfo> {
    if (!Number.isInteger(partNumber) || partNumber < 1 || partNumber > partNumberMax)
      throw new RangeError(`A part number must be a whole number from 1 to ${partNumberMax}.`);
    checkPartOptions("upload.put", options);
    const algorithm = this.checksum?.algorithm;
    const checksum = options.checksum ?? (algorithm && { algorithm });
    return infoOf(await this.putPart(partNumber, body, { ...options, checksum }));
  }

  async copy(partNumber: number, from: PartSource, options: Cancel = {}): Promise<UploadPartInfo> {
    checkOptions("upload.copy", options, { signal: true });
    checkSource("upload.copy", from, true);
    const { signal } = options;
    const source = await this.openSource(from, { signal });
    try {
      return await this.put(partNumber, source.stream(), { signal });
    } finally {
      await source[Symbol.asyncDispose]();
    }
  }

  async parts(
    options: { after?: number | undefined; limit?: number | undefined } = {},
  ): Promise<{ readonly parts: readonly UploadPartInfo[]; readonly next?: number }> {
    checkOptions("parts", options, { after: true, limit: true });
    checkPage("parts", options, []);
    const { after = 0, limit = pageLimit } = options;
    if (!Number.isInteger(after) || after < 0) throw new RangeError("parts: after must be a part number, or 0.");
    const found = await this.listParts(after, limit);
    const page = found.slice(0, limit);
    const last = page.at(-1)?.partNumber;
    return { parts: page.map(infoOf), ...(found.length > page.length && last !== undefined ? { next: last } : {}) };
  }

  async complete(
    parts: readonly NamedUploadPart[],
    options: Preconditions & Cancel & { checksum?: Checksum | undefined } = {},
  ): Promise<ObjectVersion> {
    checkOptions("complete", options, { ...preconditionNames, signal: true, checksum: true });
    const { signal, checksum, ...preconditions } = options;
    checkPreconditions("complete", preconditions);
    if (!Array.isArray(parts)) throw new TypeError("complete takes a list of { partNumber, etag }.");
    for (const part of parts as readonly NamedUploadPart[])
      if (typeof part?.etag !== "string") throw invalidPart(part?.partNumber ?? 0, "it is listed without an ETag");
    signal?.throwIfAborted();
    return await this.completeChecked({ parts, checksum }, preconditions);
  }
}

function infoOf({ partNumber, etag, size, atMs, checksum }: UploadPartRecord): UploadPartInfo {
  const shown = checksum === undefined ? {} : { checksum };
  return { partNumber, etag, size, lastModified: new Date(atMs), ...shown };
}
