// The state of a key whose row is locked, and the plan of a call for it. The rules are those of a
// folder. The SQL is that of one transaction for the calls of many keys.
import { holdfastError } from "../../errors.ts";
import { settingsOf } from "../../objects/bucket/bucket-config.ts";
import { attributesOf, type KeyVersion } from "../../objects/key/key-versions.ts";
import { entryKind, type BodyFile } from "../../objects/model/entry.ts";
import type { BucketConfig } from "../../objects/model/object.ts";
import { findVersionName, nullVersionId } from "../../objects/model/version-id.ts";

import { uploadKind, type UploadRecord } from "../../objects/multipart/upload-records.ts";
import type { Database } from "../connection/database.ts";

/** A row of `hf_lock_keys_1`. */
export interface KeyRow {
  readonly b: number;
  readonly config: number;
  readonly settings: unknown;
  readonly now_ms: number;
  readonly slot: number;
  readonly null_slot: number | null;
  readonly newest_slot: number | null;
  readonly newest: unknown;
  readonly named_slot: number | null;
  readonly named: unknown;
  readonly versions: readonly { readonly slot: number; readonly entry: unknown }[] | null;
  readonly upload: unknown;
  readonly upload_n: number | null;
  readonly upload_ended: unknown;
  readonly has_blob: boolean | null;
}

export interface KeyState {
  readonly bucket: number;
  readonly key: string;
  readonly config: number;
  readonly settings: BucketConfig;
  /** The time by the clock of the server. */
  readonly nowMs: number;
  /** The slot of the next version. */
  readonly slot: number;
  readonly nullSlot: number | undefined;
  /** The current version, or a delete marker. */
  readonly newest: KeyVersion | undefined;
  /** The version that the call names. */
  readonly named: KeyVersion | undefined;
  /** All versions, oldest first, if the call needs them. */
  readonly versions: readonly KeyVersion[];
  readonly upload: { readonly record: UploadRecord; readonly n: number; readonly ended: unknown } | undefined;
  readonly hasBlob: boolean;
}

export interface NewVersion {
  readonly version: KeyVersion;
  readonly inline?: Uint8Array | undefined;
  readonly parts?: readonly BodyFile[] | undefined;
  /** The upload that this version completes. */
  readonly upload?: string | undefined;
}

/** What a call does to its key, and the answer to its caller. */
export interface Plan<T> {
  readonly answer: T;
  /** Slots of the versions to remove. */
  readonly removed?: readonly number[];
  readonly added?: NewVersion;
  /** A version whose attributes change. */
  readonly changed?: KeyVersion;
  /** Further statements of the same transaction. */
  readonly statements?: readonly string[];
}

/**
 * Returns the slot for `hf_lock_keys_1` and for reads: 0 for the current version, -1 for the null
 * version.
 */
export function slotOfVersionId(versionId: string | undefined): number {
  if (versionId === undefined) return 0;
  // No version has this slot.
  return versionId === nullVersionId ? -1 : (findVersionName(versionId)?.slot ?? Number.MAX_SAFE_INTEGER);
}

/** Decodes a version. Throws CORRUPT. */
export function versionOf(slot: number, value: unknown, where: string): KeyVersion {
  const entry = entryKind.decode(value);
  if (entry.kind !== "put" && entry.kind !== "marker")
    throw holdfastError("CORRUPT", `${where}: slot ${slot} of a key holds no version.`, { path: where });
  return { slot, entry, bodyAt: 0, ...attributesOf(entry) };
}

export function stateOfKey(key: string, row: KeyRow, where: string): KeyState {
  const { newest_slot, named_slot, versions, upload } = row;
  return {
    bucket: row.b,
    key,
    config: row.config,
    settings: settingsOf(row.settings),
    nowMs: row.now_ms,
    slot: row.slot + 1,
    nullSlot: row.null_slot ?? undefined,
    newest: newest_slot === null ? undefined : versionOf(newest_slot, row.newest, where),
    named: named_slot === null ? undefined : versionOf(named_slot, row.named, where),
    versions: (versions ?? []).map(({ slot, entry }) => versionOf(slot, entry, where)),
    upload:
      upload === null
        ? undefined
        : { record: uploadKind.decode(upload), n: row.upload_n ?? 0, ended: row.upload_ended },
    hasBlob: row.has_blob === true,
  };
}

export function bytesLiteral(bytes: Uint8Array): string {
  return `decode('${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("hex")}', 'hex')`;
}

export function keyLiteral(key: string): string {
  return bytesLiteral(Buffer.from(key));
}

export function arrayLiteral(database: Database, texts: readonly string[]): string {
  return `array[${texts.map((text) => database.literal(text)).join(", ")}]::text[]`;
}

/**
 * Returns the statements for the plans of calls with different keys; undefined if there is nothing
 * to do.
 */
export function statementsOf(
  database: Database,
  planned: readonly { readonly state: KeyState; readonly plan: Plan<unknown> | undefined }[],
): string | undefined {
  const [first] = planned;
  if (first === undefined) return undefined;
  const { bucket } = first.state;
  const json = (value: unknown): string => database.literal(JSON.stringify(value));
  const statements: string[] = [];
  const removals: string[] = [];
  const removedSlots: number[] = [];
  const rows: string[] = [];
  const keys: string[] = [];
  const changes: string[] = [];
  const settled: string[] = [];
  let isNothing = true;
  for (const { state, plan = { answer: undefined } } of planned) {
    const key = keyLiteral(state.key);
    const { removed = [], added, changed, statements: own = [] } = plan;
    if (removed.length > 0 || added !== undefined || changed !== undefined || own.length > 0) isNothing = false;
    for (const slot of removed) {
      removals.push(key);
      removedSlots.push(slot);
    }
    if (changed !== undefined)
      statements.push(
        `update hf_version set entry = ${json(changed.entry)} where b = ${bucket} and key = ${key} and slot = ${changed.slot}`,
      );
    if (added !== undefined) {
      const { version, inline, parts, upload } = added;
      const { slot, entry } = version;
      const blobs = parts === undefined ? "null" : arrayLiteral(database, blobsOf(parts));
      const body = inline === undefined ? "null" : bytesLiteral(inline);
      const nullSlot = entry.isNull ? slot : (state.nullSlot ?? "null");
      const bytes = entry.kind === "put" ? entry.size : 0;
      rows.push(
        `(${bucket}, ${key}, ${slot}, ${entry.kind === "marker"}, ${bytes}, ${json(entry)}, ${body},
          ${parts === undefined ? "null" : json(parts)}, ${blobs}, ${upload === undefined ? "null" : database.literal(upload)})`,
      );
      keys.push(key);
      changes.push(`(${key}, ${slot}::bigint, ${nullSlot}::bigint, ${entry.kind !== "marker"})`);
      if (parts !== undefined) statements.push(keepBlobs(database, blobsOf(parts)));
    } else if (removed.length > 0 || state.newest === undefined) settled.push(key);
    statements.push(...own);
  }
  if (isNothing) return undefined;
  if (removals.length > 0)
    statements.push(
      `select hf_remove_1(${bucket}, array[${removals.join(", ")}], array[${removedSlots.join(", ")}]::bigint[])`,
    );
  if (rows.length > 0) {
    statements.push(
      `insert into hf_version (b, key, slot, marker, bytes, entry, body, parts, blobs, upload) values ${rows.join(", ")}`,
      // With the list of keys in the condition, a plan for a table without statistics reads only their rows.
      `update hf_object o set slot = k.slot, null_slot = k.null_slot, live = k.live
         from (values ${changes.join(", ")}) k (key, slot, null_slot, live)
         where o.b = ${bucket} and o.key = any (array[${keys.join(", ")}]) and o.key = k.key`,
    );
  }
  if (settled.length > 0) statements.push(`select hf_settle_keys_1(${bucket}, array[${settled.join(", ")}])`);
  return statements.join("; ");
}

/** Returns a statement that keeps blobs permanently, because something names them now. */
export function keepBlobs(database: Database, blobs: readonly string[]): string {
  return `update hf_blob set gone_after = null where gone_after is not null and blob = any(${arrayLiteral(database, blobs)})`;
}

function blobsOf(parts: readonly BodyFile[]): string[] {
  return parts.map(({ file }) => file);
}
