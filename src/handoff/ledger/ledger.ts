// The ledger: the entry committed under each key. Each key has one name, won once; result and
// outputs appear with it in one step. An entry without outputs is a file, linked to that name. An
// entry with outputs is a directory, renamed to it. Each of the two calls fails if the name is
// taken.
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { countOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { renameOnce } from "../../durable/publish/publish.ts";
import { findRecord, findRecordSurely } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import { inTurn } from "./windows-turn.ts";
import type { ManifestFile } from "../model/manifest.ts";

/** A ticket for another box, published after the commit under the key in its options. */
export interface SentTicket {
  /** Path of the other box relative to this one: machines may mount a share at different paths. */
  readonly box: string;
  readonly files: readonly string[];
  /** The options of `publish`. An entry of an older build may lack a key here (model/sent-key.ts). */
  readonly options: unknown;
}

export interface Committed {
  readonly key: string;
  /** The ticket and the claim that committed. Together they identify this commit. */
  readonly id: string;
  readonly claims: number;
  /** Number of replays from the archive before this commit. */
  readonly replays: number;
  readonly holder: string;
  readonly at: string;
  readonly result?: unknown;
  readonly outputs: readonly Pick<ManifestFile, "name" | "size" | "sha256">[];
  readonly sent: readonly SentTicket[];
}

export const committedKind: RecordKind<Committed> = {
  kind: "ledger",
  decode: (value) => {
    const fields = objectOf(value);
    return {
      key: textOf(fields.key),
      id: textOf(fields.id),
      claims: countOf(fields.claims),
      replays: countOf(fields.replays ?? 0),
      holder: textOf(fields.holder),
      at: textOf(fields.at),
      ...(fields.result === undefined ? {} : { result: fields.result }),
      outputs: listOf(fields.outputs, (each) => {
        const { name, size, sha256 } = objectOf(each);
        return { name: textOf(name), size: countOf(size), sha256: textOf(sha256) };
      }),
      sent: listOf(fields.sent, (each) => {
        const { box, files, options } = objectOf(each);
        return { box: textOf(box), files: listOf(files, textOf), options };
      }),
    };
  },
};

/** A ledger file: one entry, or a block of entries that several names share. */
export const ledgerFileKind: RecordKind<readonly Committed[]> = {
  mayBeDirectory: true,
  kind: committedKind.kind,
  decode: (value) => {
    const { entries } = objectOf(value);
    return entries === undefined ? [committedKind.decode(value)] : listOf(entries, committedKind.decode);
  },
};

export const blockKind: RecordKind<{ readonly entries: readonly Committed[] }> = {
  kind: committedKind.kind,
  decode: (value) => ({ entries: ledgerFileKind.decode(value) }),
};

/** The record in the directory of a commit with outputs. */
export const recordName = "record.json";

export interface LedgerEntry {
  readonly committed: Committed;
  /** The directory of the outputs; undefined if the entry has none. */
  readonly directory?: string;
}

/**
 * Returns the entry committed under this name, or undefined. On a share, a cache may still report
 * that there is none; `isSure` bypasses the cache.
 */
export async function findCommitted(
  box: Box,
  path: string,
  { isSure = false }: { readonly isSure?: boolean } = {},
): Promise<LedgerEntry | undefined> {
  // Usually there is no entry yet. On a local disk, a stat finds that out more cheaply than a
  // failed open, which creates an error.
  if (box.disk.volume.kind === "local" && !(await box.disk.canOpen(path))) return undefined;
  const find = isSure ? findRecordSurely : findRecord;
  try {
    const entries = await find(box.disk, ledgerFileKind, path);
    return entries && { committed: entryNamed(box, entries, path) };
  } catch (error) {
    if (!hasErrno(error, "EISDIR")) throw error;
  }
  const committed = await find(box.disk, committedKind, `${path}/${recordName}`);
  return committed && { committed, directory: path };
}

/** Returns the entry whose name is `path`. Throws CORRUPT if another program copied or renamed the file. */
export function entryNamed({ layout }: Box, entries: readonly Committed[], path: string): Committed {
  const entry = entries.find(({ key, replays }) => layout.ledger(key, replays) === path);
  if (entry !== undefined) return entry;
  const message = `${path} is the ledger entry of another key: it was copied or renamed. Move it away.`;
  throw holdfastError("CORRUPT", message, { path });
}

/**
 * Commits a directory with outputs and a record: `staged` is renamed to `path`, durably. Returns
 * undefined if `staged` is gone because its session was judged dead.
 */
export async function commitDirectory(
  box: Box,
  staged: string,
  path: string,
  committed: Committed,
): Promise<LedgerEntry | undefined> {
  await box.ensure(parentOf(path));
  try {
    if (await inTurn(box, path, () => renameOnce(box.disk, staged, path))) {
      await box.sync(parentOf(path));
      return { committed, directory: path };
    }
  } catch (error) {
    // The name is taken by another commit, or by this one if a reply was lost. The record tells
    // which.
    if (!hasErrno(error, "ENOTEMPTY", "EEXIST", "ENOTDIR", "EACCES", "EPERM")) throw error;
    const taken = await findCommitted(box, path, { isSure: true });
    if (taken === undefined) throw error;
    await box.sync(parentOf(path));
    return taken;
  }
  const entry = await findCommitted(box, path, { isSure: true });
  if (entry !== undefined) await box.sync(parentOf(path));
  return entry;
}

export function isSameCommit(a: Committed, b: Committed): boolean {
  return a.id === b.id && a.claims === b.claims && a.holder === b.holder;
}
