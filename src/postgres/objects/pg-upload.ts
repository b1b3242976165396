// PgUpload: an upload in parts in a database. Its key is its lock: putting a part, completing and
// aborting are changes of that key.
import { traceMethods } from "../../telemetry/trace.ts";
import { tracedUploadMethods } from "../../objects/traced-methods.ts";
import type { Body, Cancel } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import { objectOf, textOf } from "../../format/decoding.ts";
import { CheckedUpload, type PartSource } from "../../objects/checked-upload.ts";
import { attributesOf } from "../../objects/key/key-versions.ts";
import type { ObjectVersion, Preconditions, StoredObject } from "../../objects/model/object.ts";
import { checksumOf } from "../../objects/model/entry.ts";
import {
  completionOf,
  joinedFactsOf,
  mustBeOf,
  type NamedUploadParts,
} from "../../objects/multipart/complete-upload.ts";
import { noSuchUpload } from "../../objects/multipart/upload-files.ts";
import {
  partKind,
  type CompletionRecord,
  type UploadPartRecord,
  type UploadRecord,
} from "../../objects/multipart/upload-records.ts";
import { describe, versionIdOf } from "../../objects/version/find-version.ts";
import { mustMeet } from "../../objects/version/preconditions.ts";
import { putEntryOf } from "../../objects/version/put-version.ts";
import type { DeclaredBody } from "../../objects/version/stage-body.ts";
import { getBucket } from "./bucket-rows.ts";
import { findVersion, openVersion } from "./find-rows.ts";
import { arrayLiteral, keepBlobs, type KeyState, type Plan } from "./key-state.ts";
import type { ObjectsContext } from "./objects-context.ts";

/** A completion gives up if parts are put during each of this many attempts. */
const attemptsMax = 100;

/** The result of a completed upload, kept for as long as its version exists. */
type Ended = Pick<CompletionRecord, "list" | "checksum"> & { readonly versionId: string };

export class PgUpload extends CheckedUpload {
  static {
    traceMethods(this, tracedUploadMethods);
  }

  readonly #context: ObjectsContext;
  readonly #bucket: string;

  constructor(record: UploadRecord, context: ObjectsContext, bucket: string) {
    super(record, { directory: context.directory, bucket });
    this.#context = context;
    this.#bucket = bucket;
  }

  protected override async putPart(partNumber: number, body: Body, declared: DeclaredBody): Promise<UploadPartRecord> {
    const { run, blobs, calls, database } = this.#context;
    return await run(async () => {
      await this.#mustBeOpen();
      const { blob, checksum, ...written } = await blobs.write(this.key, body, declared);
      try {
        const { key, id: upload } = this;
        return await calls.run({
          bucket: this.#bucket,
          key,
          upload,
          blob,
          judge: (state) => {
            const { bucket, nowMs } = this.#openState(state);
            if (!state.hasBlob) throw this.#lostBlob();
            const shown = checksum === undefined ? {} : { checksum };
            const part = { partNumber, ...written, file: blob, atMs: nowMs, ...shown };
            const where = `b = ${bucket} and id = ${database.literal(upload)}`;
            return {
              answer: part,
              statements: [
                keepBlobs(database, [blob]),
                `select hf_drop_blobs_1(array(select blob from hf_upload_part where ${where} and n = ${partNumber}))`,
                `insert into hf_upload_part (b, id, n, record, blob)
                   values (${bucket}, ${database.literal(upload)}, ${partNumber}, ${database.literal(JSON.stringify(part))}, ${database.literal(blob)})
                   on conflict (b, id, n) do update set record = excluded.record, blob = excluded.blob`,
                `update hf_upload set n = n + 1 where ${where}`,
              ],
            };
          },
        });
      } catch (error) {
        await blobs.discard(blob);
        throw error;
      }
    });
  }

  protected override async openSource(from: PartSource, { signal }: Cancel): Promise<StoredObject> {
    const { bucket = this.#bucket, key, versionId, range } = from;
    return await this.#context.run(() => openVersion(this.#context, bucket, key, { versionId, range, signal }));
  }

  protected override async listParts(after: number, limit: number): Promise<readonly UploadPartRecord[]> {
    return await this.#context.run(async () => {
      const b = await this.#mustBeOpen();
      return await this.#readParts(b, "n > $3 order by n limit $4", [after, limit + 1]);
    });
  }

  protected override async completeChecked(
    named: NamedUploadParts,
    preconditions: Preconditions,
  ): Promise<ObjectVersion> {
    const { run, calls, newId } = this.#context;
    const { key, id: upload } = this;
    return await run(async () => {
      for (let attempt = 0; attempt < attemptsMax; attempt++) {
        const found = await this.#find();
        if (found === undefined) throw noSuchUpload(upload);
        const numbers = [...new Set(named.parts.map(({ partNumber }) => partNumber))].filter(Number.isSafeInteger);
        const parts = await this.#readParts(found.b, "n = any($3::bigint[])", [numbers]);
        const byNumber = new Map(parts.map((part) => [part.partNumber, part]));
        const list = named.parts.map(({ partNumber }) => byNumber.get(partNumber));
        const outcome = await calls.run({
          bucket: this.#bucket,
          key,
          upload,
          judge: (state): Plan<ObjectVersion | Ended | "again"> => {
            if (state.upload === undefined) throw noSuchUpload(upload);
            const ended = endedOf(state.upload.ended);
            if (ended !== undefined) return { answer: ended };
            // A part was put after the parts were read.
            if (state.upload.n !== found.n) return { answer: "again" };
            return this.#completion(state, completionOf(newId(), state.upload.record, named, list), preconditions);
          },
        });
        if (outcome === "again") continue;
        if ("key" in outcome) return outcome;
        mustBeOf(key, outcome, named);
        const { versionId } = outcome;
        const { version, isLatest } = await findVersion(this.#context, this.#bucket, key, {
          versionId,
          content: "none",
        }).catch(() => {
          throw noSuchUpload(upload);
        });
        return describe(version, isLatest);
      }
      const path = this.#context.directory;
      const message = `Parts of the upload ${upload} were put again during each of ${attemptsMax} completions. Try again later.`;
      throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
    });
  }

  override async abort(): Promise<void> {
    const { run, calls, database } = this.#context;
    const { key, id: upload } = this;
    const judge = (state: KeyState): Plan<void> => {
      const where = `b = ${this.#openState(state).bucket} and id = ${database.literal(upload)}`;
      return {
        answer: undefined,
        statements: [
          `select hf_drop_blobs_1(array(select blob from hf_upload_part where ${where}))`,
          `delete from hf_upload_part where ${where}`,
          `delete from hf_upload where ${where}`,
        ],
      };
    };
    await run(() => calls.run({ bucket: this.#bucket, key, upload, judge }));
  }

  #completion(
    state: KeyState,
    end: Omit<CompletionRecord, "behind">,
    preconditions: Preconditions,
  ): Plan<ObjectVersion> {
    const { bucket, key, slot, nullSlot, newest, config, settings, nowMs, upload } = state;
    const { database } = this.#context;
    mustMeet(key, newest, preconditions);
    const put = putEntryOf({ name: this.#bucket, settings, config, nowMs }, key, upload?.record.facts ?? none, end.id);
    const entry = { ...put, ...joinedFactsOf(end) };
    const version = { slot, entry, bodyAt: 0, ...attributesOf(entry) };
    const ended: Ended = {
      list: end.list,
      versionId: versionIdOf(version),
      ...(end.checksum === undefined ? {} : { checksum: end.checksum }),
    };
    const where = `b = ${bucket} and id = ${database.literal(this.id)}`;
    const files = arrayLiteral(
      database,
      end.parts.map(({ file }) => file),
    );
    return {
      answer: describe(version, true),
      removed: entry.isNull && nullSlot !== undefined ? [nullSlot] : [],
      added: { version, parts: end.parts, upload: this.id },
      statements: [
        `select hf_drop_blobs_1(array(select blob from hf_upload_part where ${where} and blob <> all(${files})))`,
        `delete from hf_upload_part where ${where}`,
        `update hf_upload set ended = ${database.literal(JSON.stringify(ended))} where ${where}`,
      ],
    };
  }

  /** Throws NO_SUCH_UPLOAD if the upload has ended. */
  #openState(state: KeyState): KeyState {
    if (state.upload === undefined || endedOf(state.upload.ended) !== undefined) throw noSuchUpload(this.id);
    return state;
  }

  async #mustBeOpen(): Promise<number> {
    const found = await this.#find();
    if (found === undefined || found.isEnded) throw noSuchUpload(this.id);
    return found.b;
  }

  async #find(): Promise<{ b: number; n: number; isEnded: boolean } | undefined> {
    const { database } = this.#context;
    const { b } = await getBucket(this.#context, this.#bucket);
    const [row] = await database.query<{ n: number; is_ended: boolean }>(
      "select n, ended is not null as is_ended from hf_upload where b = $1 and id = $2",
      [b, this.id],
    );
    return row && { b, n: row.n, isEnded: row.is_ended };
  }

  async #readParts(b: number, which: string, values: readonly unknown[]): Promise<UploadPartRecord[]> {
    const rows = await this.#context.database.query<{ record: unknown }>(
      `select record from hf_upload_part where b = $1 and id = $2 and ${which}`,
      [b, this.id, ...values],
    );
    return rows.map(({ record }) => partKind.decode(record));
  }

  #lostBlob(): Error {
    const path = this.#context.directory;
    const message = `${path}: the part was not stored: its body did not grow for a day, and was collected. Put it again.`;
    return holdfastError("LOCK_LOST", message, { path });
  }
}

const none: UploadRecord["facts"] = { headers: {}, metadata: {}, tags: {} };

function endedOf(value: unknown): Ended | undefined {
  if (value === null || value === undefined) return undefined;
  const { list, versionId, checksum } = objectOf(value);
  return {
    list: textOf(list),
    versionId: textOf(versionId),
    ...(checksum === undefined ? {} : { checksum: checksumOf(checksum) }),
  };
}
