// The ledger: what was committed under a key. One name for a key, won once; result and outputs appear with it
// in one step. A record without outputs is a file that is linked there, one with outputs is a directory that
// is renamed there; each of the two refuses a name that the other has.
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { countOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { outcomeUnknown, putIfAbsent, renameOnce } from "../../durable/publish/publish.ts";
import { findRecord, findRecordSurely } from "../../durable/publish/record-file.ts";
import type { Staging } from "../../durable/publish/staging.ts";
import type { Box } from "../box/box.ts";
import type { ManifestFile } from "../model/manifest.ts";

/** A ticket for another box, which is published after the commit under the key `<key>/<index>`. */
export interface SentTicket {
  /** Of the other box, relative to this one: machines mount a share in different places. */
  readonly box: string;
  readonly files: readonly string[];
  readonly options: unknown;
}

export interface Committed {
  readonly key: string;
  /** The ticket, and which of its claims has committed: together they are this commit and no other. */
  readonly id: string;
  readonly claims: number;
  /** How often the ticket was replayed from the archive before. */
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

/** What a file of the ledger has: one entry, or a block of them that several names share. */
export const ledgerFileKind: RecordKind<readonly Committed[]> = {
  kind: committedKind.kind,
  decode: (value) => {
    const { entries } = objectOf(value);
    return entries === undefined ? [committedKind.decode(value)] : listOf(entries, committedKind.decode);
  },
};

/** Of a commit that has outputs, in its directory. */
export const recordName = "record.json";

const triesMax = 3;

export interface LedgerEntry {
  readonly committed: Committed;
  /** Where its outputs are; undefined without any. */
  readonly directory?: string;
}

/**
 * What was committed under this name; undefined when nothing was. An absence may be an old answer on a share,
 * unless `isSure` asks for the file system's own.
 */
export async function findCommitted(
  box: Box,
  path: string,
  { isSure = false }: { readonly isSure?: boolean } = {},
): Promise<LedgerEntry | undefined> {
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

/** The entry whose name is `path`. CORRUPT when the file was copied or renamed by another program. */
export function entryNamed({ layout }: Box, entries: readonly Committed[], path: string): Committed {
  const entry = entries.find(({ key, replays }) => layout.ledger(key, replays) === path);
  if (entry !== undefined) return entry;
  const message = `${path} is the ledger's entry of another key: it was copied or renamed. Move it away.`;
  throw holdfastError("CORRUPT", message, { path });
}

/**
 * Commits under `path`, or finds what was committed there before. `staging` is of the session that has the
 * claim: once that session was taken for dead, its directory is gone, and nothing can be committed from it.
 * Durable when it resolves.
 */
export async function commit(box: Box, staging: Staging, path: string, committed: Committed): Promise<LedgerEntry> {
  const options = { sync: box.isSynced, isPermanent: true };
  for (let tries = 1; ; tries++) {
    const bytes = encodeRecord(committedKind, committed);
    const put = (): Promise<boolean> => putIfAbsent(staging, path, bytes, options);
    if (await box.within(parentOf(path), put, { isKept: true })) return { committed };
    const entry = await findCommitted(box, path, { isSure: true });
    if (entry !== undefined) {
      // Durable before it is acted on: the process that committed it may not have come to its sync.
      await box.sync(parentOf(path));
      return entry;
    }
    // Its time was over just now.
    if (tries >= triesMax) throw outcomeUnknown(path, undefined);
  }
}

/** The same for a directory with outputs and a record: `staged` becomes `path`. Undefined when `staged` is gone: its session was taken for dead. */
export async function commitDirectory(
  box: Box,
  staged: string,
  path: string,
  committed: Committed,
): Promise<LedgerEntry | undefined> {
  await box.ensure(parentOf(path));
  try {
    if (await renameOnce(box.disk, staged, path)) {
      await box.sync(parentOf(path));
      return { committed, directory: path };
    }
  } catch (error) {
    // What is there is another's, or our own from a request whose answer was lost: its record tells.
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
