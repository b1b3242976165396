// PgBucket: a bucket in a database.
import type { Body } from "../../common.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { makeId } from "../../format/id.ts";
import { checkChange, type DocumentChange } from "../../objects/bucket/change-settings.ts";
import { mustLock } from "../../objects/bucket/open-bucket.ts";
import { CheckedBucket } from "../../objects/checked-bucket.ts";
import { attributesOf, type KeyVersion } from "../../objects/key/key-versions.ts";
import { pageLimit } from "../../objects/model/arguments.ts";
import type { MarkerEntry, PutEntry } from "../../objects/model/entry.ts";
import type {
  BucketConfig,
  CopyOptions,
  Deleted,
  DeleteOptions,
  ListOptions,
  ListPage,
  ListVersionsOptions,
  ObjectVersion,
  PutOptions,
  ReadOptions,
  StoredObject,
  UploadOptions,
  VersionPage,
} from "../../objects/model/object.ts";
import { uploadInfoOf, type ListUploadsOptions, type UploadList } from "../../objects/multipart/object-upload.ts";
import { noSuchUpload } from "../../objects/multipart/upload-files.ts";
import { uploadKind, uploadRecordOf } from "../../objects/multipart/upload-records.ts";
import type { ChangeRequest } from "../../objects/version/change-version.ts";
import { copyOf, type CopySource } from "../../objects/version/copy-version.ts";
import { mustMeetConditions, mustNotBeRetained } from "../../objects/version/delete-version.ts";
import { describe, noSuchKey, noSuchVersion, versionIdOf } from "../../objects/version/find-version.ts";
import { mustMeet, type WriteConditions } from "../../objects/version/preconditions.ts";
import { factsOf, putEntryOf, type VersionFacts } from "../../objects/version/put-version.ts";
import { readSmall, type DeclaredBody, type StagedBody } from "../../objects/version/stage-body.ts";
import { changeBucket, getBucket } from "./bucket-rows.ts";
import { findVersion, openFound, openVersion } from "./find-rows.ts";
import { keyLiteral, slotOfVersionId, type KeyState, type Plan } from "./key-state.ts";
import { listKey, listPage, listVersionsPage } from "./list-rows.ts";
import type { ObjectsContext } from "./objects-context.ts";
import { PgUpload } from "./pg-upload.ts";

export class PgBucket extends CheckedBucket {
  readonly #context: ObjectsContext;

  constructor(name: string, context: ObjectsContext) {
    super(name, context.directory);
    this.#context = context;
  }

  protected override async putChecked(
    key: string,
    body: Body,
    options: PutOptions,
    wanted: WriteConditions,
  ): Promise<ObjectVersion> {
    return await this.#context.run(() => this.#put(key, body, factsOf(options), options, wanted));
  }

  async #put(
    key: string,
    body: Body,
    facts: VersionFacts,
    declared: DeclaredBody,
    wanted: WriteConditions,
  ): Promise<ObjectVersion> {
    const { blobs, inlineMax } = this.#context;
    const read = await readSmall(key, body, { ...declared, inlineMax });
    if ("staged" in read) {
      declared.signal?.throwIfAborted();
      return await this.#putStaged(key, facts, read.staged, wanted);
    }
    const { blob, sha256, ...written } = await blobs.write(key, read.chunks, { ...declared });
    const parts = [{ file: blob, size: written.size, sha256 }];
    try {
      declared.signal?.throwIfAborted();
      return await this.#putStaged(key, facts, { ...written, parts }, wanted, blob);
    } catch (error) {
      // If a version may name the blob, the blob stays.
      if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) await blobs.discard(blob);
      throw error;
    }
  }

  async #putStaged(
    key: string,
    facts: VersionFacts,
    { inline, parts, ...body }: StagedBody,
    wanted: WriteConditions,
    blob?: string,
  ): Promise<ObjectVersion> {
    const { calls, newId } = this.#context;
    const judge = (state: KeyState): Plan<ObjectVersion> => {
      const { config, settings, nowMs, newest, nullSlot, slot } = state;
      if (blob !== undefined && !state.hasBlob) throw this.#lostBlob(key);
      mustMeet(key, newest, wanted);
      const put = putEntryOf({ name: this.name, settings, config, nowMs }, key, facts, newId());
      const entry: PutEntry = { ...put, ...body };
      const version = { slot, entry, bodyAt: 0, ...attributesOf(entry) };
      const removed = entry.isNull && nullSlot !== undefined ? [nullSlot] : [];
      return { answer: describe(version, true), removed, added: { version, inline, parts } };
    };
    return await calls.run({ bucket: this.name, key, blob, bytes: inline?.length, judge });
  }

  protected override async getChecked(key: string, options: ReadOptions): Promise<StoredObject> {
    return await this.#context.run(() => openVersion(this.#context, this.name, key, options));
  }

  protected override async headChecked(
    key: string,
    { versionId, signal }: Omit<ReadOptions, "range">,
  ): Promise<ObjectVersion> {
    return await this.#context.run(async () => {
      signal?.throwIfAborted();
      const { version, isLatest } = await findVersion(this.#context, this.name, key, { versionId, content: "none" });
      return describe(version, isLatest);
    });
  }

  protected override async deleteChecked(key: string, options: DeleteOptions): Promise<Deleted> {
    const { run, calls, newId } = this.#context;
    const { versionId } = options;
    const slot = versionId === undefined ? -1 : slotOfVersionId(versionId);
    const judge = (state: KeyState): Plan<Deleted> =>
      versionId !== undefined || state.settings.versioning === "off"
        ? removalOf(state, options)
        : markerOf(state, newId(), () => mustMeetConditions(key, state.newest, options));
    return await run(() => calls.run({ bucket: this.name, key, slot, judge }));
  }

  protected override async copyChecked(from: CopySource, to: string, options: CopyOptions): Promise<ObjectVersion> {
    const { bucket = this.name, key, versionId } = from;
    return await this.#context.run(async () => {
      const found = await findVersion(this.#context, bucket, key, { versionId, content: "body" });
      const { facts, declared } = copyOf(key, found.version, options);
      await using object = openFound(this.#context, bucket, found, {});
      return await this.#put(to, object.stream(), facts, declared, options);
    });
  }

  protected override async listChecked(options: ListOptions): Promise<ListPage> {
    return await this.#context.run(() => listPage(this.#context, this.name, options));
  }

  protected override async listVersionsChecked(options: ListVersionsOptions): Promise<VersionPage> {
    return await this.#context.run(() => listVersionsPage(this.#context, this.name, options));
  }

  protected override listKey(key: string): AsyncIterable<Pick<VersionPage, "versions">> {
    return listKey(this.#context, this.name, key);
  }

  protected override async tagsChecked(
    key: string,
    versionId: string | undefined,
  ): Promise<Readonly<Record<string, string>>> {
    return await this.#context.run(
      async () => (await findVersion(this.#context, this.name, key, { versionId, content: "none" })).version.tags,
    );
  }

  protected override async partsChecked(
    key: string,
    versionId: string | undefined,
  ): Promise<readonly { readonly size: number; readonly checksum?: string }[]> {
    return await this.#context.run(async () => {
      const { version, parts } = await findVersion(this.#context, this.name, key, { versionId, content: "parts" });
      // Any other ETag: the body was not uploaded in parts.
      if (version.entry.kind !== "put" || !version.entry.etag.includes("-")) return [];
      return parts.map(({ size, sum }) => ({ size, ...(sum === undefined ? {} : { checksum: sum }) }));
    });
  }

  protected override async change(request: ChangeRequest): Promise<void> {
    const { run, calls } = this.#context;
    const { key, versionId, change, needsObjectLock = false, check } = request;
    const judge = (state: KeyState): Plan<void> => {
      if (needsObjectLock) mustLock(this.name, state.settings);
      const found = versionId === undefined ? state.newest : named(state, versionId);
      if (found === undefined) throw versionId === undefined ? noSuchKey(key) : noSuchVersion(key, versionId);
      if (found.entry.kind === "marker") throw noSuchKey(key, versionIdOf(found));
      check?.(found, state.nowMs);
      const { retention: before, ...others } = found.entry;
      const { retention = before, ...changes } = change;
      const entry = { ...others, ...changes, ...(retention === undefined || retention === null ? {} : { retention }) };
      return { answer: undefined, changed: { ...found, entry } };
    };
    await run(() => calls.run({ bucket: this.name, key, slot: slotOfVersionId(versionId), judge }));
  }

  protected override async createUploadChecked(key: string, options: UploadOptions): Promise<PgUpload> {
    const { run, calls, database, random } = this.#context;
    const judge = ({ bucket, nowMs }: KeyState): Plan<PgUpload> => {
      const id = makeId(nowMs, random());
      const record = uploadRecordOf(id, key, nowMs, options);
      const row = `${bucket}, ${database.literal(id)}, ${keyLiteral(key)}, ${database.literal(JSON.stringify(record))}`;
      return {
        answer: new PgUpload(record, this.#context, this.name),
        statements: [`insert into hf_upload (b, id, key, record) values (${row})`],
      };
    };
    return await run(() => calls.run({ bucket: this.name, key, judge }));
  }

  protected override async findUpload(key: string, id: string): Promise<PgUpload> {
    const { run, database } = this.#context;
    return await run(async () => {
      const { b } = await getBucket(this.#context, this.name);
      const [row] = await database.query<{ record: unknown }>(
        "select record from hf_upload where b = $1 and id = $2 and key = $3",
        [b, id, Buffer.from(key)],
      );
      if (row === undefined) throw noSuchUpload(id);
      return new PgUpload(uploadKind.decode(row.record), this.#context, this.name);
    });
  }

  protected override async listUploadsChecked(options: ListUploadsOptions): Promise<UploadList> {
    const { run, database } = this.#context;
    const { prefix = "", keyMarker = "", idMarker = "", limit = pageLimit } = options;
    return await run(async () => {
      const { b } = await getBucket(this.#context, this.name);
      // Sorts after all keys with the prefix: no UTF-8 contains the byte ff.
      const rows = await database.query<{ record: unknown }>(
        `select record from hf_upload where b = $1 and ended is null and key >= $2 and key < $2 || '\\xff'::bytea
           and (key, id) > ($3, $4) order by key, id limit $5`,
        [b, Buffer.from(prefix), Buffer.from(keyMarker), keyMarker === "" ? "" : idMarker, limit + 1],
      );
      const uploads = rows.slice(0, limit).map(({ record }) => uploadInfoOf(uploadKind.decode(record), undefined));
      const last = uploads.at(-1);
      if (rows.length === uploads.length || last === undefined) return { uploads };
      return { uploads, nextKeyMarker: last.key, nextIdMarker: last.id };
    });
  }

  override async config(): Promise<Readonly<BucketConfig>> {
    return await this.#context.run(async () => structuredClone((await getBucket(this.#context, this.name)).settings));
  }

  override knownConfig(): Readonly<BucketConfig> | undefined {
    return this.#context.known.get(this.name);
  }

  protected override async changeConfig(change: Partial<BucketConfig>, document?: DocumentChange): Promise<void> {
    checkChange(change);
    await this.#context.run(() => changeBucket(this.#context, this.name, change, document));
  }

  #lostBlob(key: string): Error {
    const path = this.#context.directory;
    const message = `The body for ${JSON.stringify(key)} was not stored: no bytes arrived for a day, so it was collected. Put it again.`;
    return holdfastError("LOCK_LOST", message, { path });
  }
}

/** Returns the version that the call names, if it has this id. */
function named({ named: found }: KeyState, versionId: string): KeyVersion | undefined {
  return found !== undefined && versionIdOf(found) === versionId ? found : undefined;
}

/** Removes the version with the id, or without one the null version. Throws RETAINED and PRECONDITION_FAILED. */
function removalOf(state: KeyState, options: DeleteOptions): Plan<Deleted> {
  const { key, newest, nowMs } = state;
  const { versionId, bypassGovernance = false } = options;
  mustMeetConditions(key, newest, options);
  const found = versionId === undefined ? state.named : named(state, versionId);
  const answer = {
    key,
    ...(versionId === undefined ? {} : { versionId }),
    deleteMarker: found?.entry.kind === "marker",
  };
  if (found === undefined) return { answer };
  mustNotBeRetained(found, nowMs, bypassGovernance);
  return { answer, removed: [found.slot] };
}

/** Adds a delete marker, unless `check` throws. */
export function markerOf(state: KeyState, id: string, check: () => void): Plan<Deleted> {
  const { key, config, settings, nowMs: atMs, nullSlot, slot } = state;
  check();
  const isNull = settings.versioning !== "enabled";
  const entry: MarkerEntry = { kind: "marker", id, key, config, atMs, isNull };
  const version = { slot, entry, bodyAt: 0, ...attributesOf(entry) };
  const removed = isNull && nullSlot !== undefined ? [nullSlot] : [];
  return { answer: { key, versionId: versionIdOf(version), deleteMarker: true }, removed, added: { version } };
}
