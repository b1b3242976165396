// PgObjectsEnd: an object store in a database as a side of a copy. Several keys arrive in one
// transaction, after their large bodies are committed.
import { holdfastError } from "../../errors.ts";
import { settingsOf } from "../../objects/bucket/bucket-config.ts";
import { partOf, type BodyFile } from "../../objects/model/entry.ts";
import {
  bucketItem,
  checkedPiece,
  copiedVersion,
  objectKeyItem,
  type BucketItem,
  type CopiedPiece,
  type CopiedVersion,
  type ObjectItem,
  type ObjectKeyItem,
  type ObjectsEnd,
} from "../../objects/transfer/object-items.ts";
import { cannotCopy } from "../../part/transfer/transfer-end.ts";
import { listOf } from "../../format/decoding.ts";
import type { Database, Send } from "../connection/database.ts";
import { untilAnswered } from "../connection/batches.ts";
import { BlobContent, Blobs } from "../objects/blobs.ts";
import { versionOf } from "../objects/key-state.ts";

const keysAtOnce = 64;
/** A larger body gets rows of its own, whatever its source did. */
const inlineMax = 1024 * 1024;

export interface PgObjectsEndParts {
  readonly database: Database;
  readonly part: number;
  readonly newId: () => string;
  readonly close: () => Promise<void>;
}

interface BucketRow extends Record<string, unknown> {
  readonly b: number;
  readonly name: string;
  readonly settings: unknown;
  readonly made_ms: number;
}

interface VersionRow extends Record<string, unknown> {
  readonly key: Buffer;
  readonly slot: number;
  readonly entry: unknown;
  readonly parts: unknown;
}

/** A version, and its body in blobs that are committed; undefined if the body belongs in the row. */
interface ReadyVersion {
  readonly version: CopiedVersion;
  readonly parts: readonly BodyFile[] | undefined;
}

export class PgObjectsEnd implements ObjectsEnd {
  readonly shown: string;
  readonly #database: Database;
  readonly #part: number;
  readonly #blobs: Blobs;
  readonly #close: () => Promise<void>;

  constructor({ database, part, newId, close }: PgObjectsEndParts) {
    this.shown = `${database.location.shown.replace(/#.*$/, "")}#objects`;
    this.#database = database;
    this.#part = part;
    this.#blobs = new Blobs(database, part, newId);
    this.#close = close;
  }

  async settle(): Promise<void> {
    const [upload] = await this.#database.query<{ id: string; name: string; key: Buffer }>(
      `select u.id, b.name, u.key from hf_upload u join hf_bucket b on b.b = u.b where b.p = $1 and u.ended is null limit 1`,
      [this.#part],
    );
    if (upload !== undefined)
      throw cannotCopy(`the upload ${upload.id} of ${JSON.stringify(upload.key.toString())} in the bucket ${upload.name}`, this.shown, "it is in progress. Complete or abort it first."); // prettier-ignore
  }

  async total(): Promise<number> {
    const [row] = await this.#database.query<{ total: number }>(
      `select count(*) as total from hf_object o join hf_bucket b on b.b = o.b where b.p = $1
         and exists (select 1 from hf_version v where v.b = o.b and v.key = o.key)`,
      [this.#part],
    );
    return row?.total ?? 0;
  }

  async *items(): AsyncGenerator<ObjectItem> {
    for (const { b, name, settings, made_ms } of await this.#buckets()) {
      yield bucketItem(name, made_ms, settingsOf(settings));
      yield* this.#keysOf(b, name);
    }
  }

  /** Does nothing: a key appears with all its versions, so programs may use those that have arrived. */
  async begin(): Promise<() => Promise<void>> {
    return async () => undefined;
  }

  async add(items: readonly ObjectItem[], signal: AbortSignal): Promise<void> {
    for (const item of items) if (item.kind === "bucket") await this.#addBucket(item);
    const keys = items.filter((item) => item.kind === "key");
    if (keys.length === 0) return;
    const numbers = new Map((await this.#buckets()).map(({ b, name }) => [name, b]));
    const ready = new Map<ObjectKeyItem, readonly ReadyVersion[]>();
    for (const item of keys) ready.set(item, await this.#writeBodies(item, signal));
    await untilAnswered(
      this.#database,
      keys.map(({ id }) => id),
      () =>
        // prettier-ignore
        this.#database.transaction(async (send) => {
        for (const [item, versions] of ready) await this.#insert(send, numbers.get(item.bucket) ?? 0, item, versions);
      }),
    );
  }

  async finish(): Promise<void> {
    // An object store has no state besides its buckets and keys.
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }

  async #buckets(): Promise<BucketRow[]> {
    return await this.#database.query<BucketRow>(
      `select b, name, settings, floor(extract(epoch from made_at) * 1000)::float8 as made_ms from hf_bucket
         where p = $1 order by name`,
      [this.#part],
    );
  }

  async *#keysOf(b: number, name: string): AsyncGenerator<ObjectKeyItem> {
    const text = `with k as (select o.key from hf_object o where o.b = $1 and o.key > $2 order by o.key limit ${keysAtOnce})
      select k.key, v.slot, v.entry, v.parts from k left join hf_version v on v.b = $1 and v.key = k.key order by k.key, v.slot`; // prettier-ignore
    for (let after: Buffer = Buffer.alloc(0); ;) {
      const rows = await this.#database.query<VersionRow & { slot: number | null }>(text, [b, after]);
      const keys = new Map<string, VersionRow[]>();
      for (const row of rows) {
        const list = keys.get(row.key.toString("hex")) ?? [];
        keys.set(row.key.toString("hex"), list);
        if ((row.slot as number | null) !== null) list.push(row);
      }
      for (const list of keys.values()) {
        const [first] = list;
        // The key of a call that is in progress, or was interrupted, has no version.
        if (first === undefined) continue;
        yield objectKeyItem(name, first.key.toString(), list.map((row) => this.#versionOf(b, name, row))); // prettier-ignore
      }
      if (keys.size < keysAtOnce) return;
      after = rows.at(-1)?.key ?? after;
    }
  }

  #versionOf(b: number, bucket: string, row: VersionRow): CopiedVersion {
    const version = versionOf(row.slot, row.entry, this.shown);
    const { entry } = version;
    if (entry.kind === "marker") return copiedVersion(version, [], false);
    if (row.parts === null) {
      const open = (): AsyncIterable<Uint8Array> => this.#readBody(b, row);
      return copiedVersion(version, [{ size: entry.size, sha256: entry.sha256 ?? "", open }], true);
    }
    const failure = async (blob: string, what: string): Promise<Error> => {
      const message = `${this.shown}: the object ${JSON.stringify(entry.key)} of the bucket ${bucket} is not what was written: the blob ${blob}: ${what}. Restore it from a backup.`;
      return holdfastError("CORRUPT", message, { path: this.shown });
    };
    const pieces = listOf(row.parts, partOf).map((part): CopiedPiece => {
      const { size, sha256, sum } = part;
      const open = (): AsyncIterable<Uint8Array> => new BlobContent(this.#blobs, [part], failure).stream(undefined);
      return { size, sha256, ...(sum === undefined ? {} : { sum }), open };
    });
    return copiedVersion(version, pieces, false);
  }

  async *#readBody(b: number, { key, slot }: VersionRow): AsyncGenerator<Uint8Array> {
    const text = "select body from hf_version where b = $1 and key = $2 and slot = $3";
    const [row] = await this.#database.query<{ body: Buffer | null }>(text, [b, key, slot]);
    if (row !== undefined && row.body !== null) yield row.body;
  }

  async #addBucket({ name, createdAtMs, settings }: BucketItem): Promise<void> {
    // The id identifies this life of the bucket; a repeated statement finds its row.
    await this.#database.query(
      `insert into hf_bucket (p, name, id, made_at, settings) values ($1, $2, $3, to_timestamp($4::float8 / 1000), $5)
         on conflict do nothing`,
      [this.#part, name, `copied-${createdAtMs}`, createdAtMs, JSON.stringify(settings)],
    );
  }

  async #writeBodies({ bucket, key, versions }: ObjectKeyItem, signal: AbortSignal): Promise<ReadyVersion[]> {
    const ready: ReadyVersion[] = [];
    for (const version of versions) {
      const { entry, pieces, isInline } = version;
      if (entry.kind === "marker" || (isInline && entry.size <= inlineMax)) {
        ready.push({ version, parts: undefined });
        continue;
      }
      const parts: BodyFile[] = [];
      for (const piece of pieces) {
        const { size, sha256, sum } = piece;
        const { blob } = await this.#blobs.write(key, checkedPiece(bucket, key, piece), { signal });
        parts.push({ file: blob, size, sha256, ...(sum === undefined ? {} : { sum }) });
      }
      ready.push({ version, parts });
    }
    return ready;
  }

  async #insert(send: Send, b: number, item: ObjectKeyItem, versions: readonly ReadyVersion[]): Promise<void> {
    const key = Buffer.from(item.key);
    const last = versions.at(-1)?.version;
    const nullSlot = versions.find(({ version }) => version.entry.isNull)?.version.slot ?? null;
    // The row may be there without a version: another program has begun to put to this key, and given up.
    await send(
      `insert into hf_object as o (b, key, slot, null_slot, live) values ($1, $2, $3, $4, $5)
         on conflict (b, key) do update set slot = greatest(o.slot, excluded.slot), null_slot = excluded.null_slot, live = excluded.live
         where not exists (select 1 from hf_version v where v.b = o.b and v.key = o.key)`,
      [...[b, key, last?.slot ?? 0, nullSlot], last?.entry.kind === "put"],
    );
    for (const { version, parts } of versions) {
      const { slot, entry } = version;
      const body = parts === undefined && entry.kind === "put" ? await bodyOf(item, version) : undefined;
      const sha256 = body === undefined ? undefined : version.pieces[0]?.sha256;
      const blobs = parts?.map(({ file }) => file);
      await send(
        `insert into hf_version (b, key, slot, marker, bytes, entry, body, parts, blobs)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict do nothing`,
        [
          ...[b, key, slot, entry.kind === "marker", entry.kind === "put" ? entry.size : 0],
          JSON.stringify({ ...entry, config: 1, ...(sha256 === undefined ? {} : { sha256 }) }),
          ...[body ?? null, parts === undefined ? null : JSON.stringify(parts), blobs ?? null],
        ],
      );
      if (blobs !== undefined) await this.#keep(send, item, blobs);
    }
    // The rows are those of this copy, or of another program that has put to this key meanwhile.
    const rows = await send<{ id: string }>(
      "select entry ->> 'id' as id from hf_version where b = $1 and key = $2 order by slot",
      [b, key],
    );
    const ids = versions.map(({ version }) => version.entry.id);
    if (rows.map(({ id }) => id).join() === ids.join()) return;
    const message = `${this.shown}: the ${item.id} was put by another process while it was copied. Nothing of it was replaced.`;
    throw holdfastError("COPY_CONFLICT", message, { path: this.shown, what: item.id });
  }

  /** From here on, the version owns its blobs. Throws LOCK_LOST if a collection removed one of them. */
  async #keep(send: Send, { id }: ObjectKeyItem, blobs: readonly string[]): Promise<void> {
    const kept = await send("update hf_blob set gone_after = null where blob = any ($1) returning blob", [blobs]);
    if (kept.length === new Set(blobs).size) return;
    const message = `${this.shown}: the body of the ${id} was removed, because it took over a day to write. Repeat the copy: it continues.`;
    throw holdfastError("LOCK_LOST", message, { path: this.shown });
  }
}

/** Reads a small body at the moment in which its row is inserted: a key may have thousands of versions. */
async function bodyOf({ bucket, key }: ObjectKeyItem, { pieces }: CopiedVersion): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for (const piece of pieces) for await (const chunk of checkedPiece(bucket, key, piece)) chunks.push(chunk);
  return Buffer.concat(chunks);
}
