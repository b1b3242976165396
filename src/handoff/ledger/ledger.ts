// The ledger: what was committed under a key. One name for a key, won once; result and outputs appear with it
// in one step. A record without outputs is a file that is linked there, one with outputs is a directory that
// is renamed there; each of the two refuses a name that the other has.
import { hasErrno } from "../../ports/disk-error.ts";
import { countOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { putIfAbsent, renameOnce } from "../../durable/publish/publish.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
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

/** Of a commit that has outputs, in its directory. */
export const recordName = "record.json";

export interface LedgerEntry {
  readonly committed: Committed;
  /** Where its outputs are; undefined without any. */
  readonly directory?: string;
}

/** What was committed under this name; undefined when nothing was. An absence may be an old answer on a share. */
export async function findCommitted(box: Box, path: string): Promise<LedgerEntry | undefined> {
  try {
    const committed = await findRecord(box.disk, committedKind, path);
    return committed && { committed };
  } catch (error) {
    if (!hasErrno(error, "EISDIR")) throw error;
  }
  const committed = await findRecord(box.disk, committedKind, `${path}/${recordName}`);
  return committed && { committed, directory: path };
}

/**
 * Commits under `path`, or finds what was committed there before. `staging` is of the session that has the
 * claim: once that session was taken for dead, its directory is gone, and nothing can be committed from it.
 * Durable when it resolves.
 */
export async function commit(box: Box, staging: Staging, path: string, committed: Committed): Promise<LedgerEntry> {
  await box.ensure(parentOf(path));
  const options = { sync: box.isSynced, isPermanent: true };
  if (await putIfAbsent(staging, path, encodeRecord(committedKind, committed), options)) return { committed };
  return await getCommitted(box, path);
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
    return await getCommitted(box, path);
  }
  const entry = await findCommitted(box, path);
  if (entry !== undefined) await box.sync(parentOf(path));
  return entry;
}

async function getCommitted(box: Box, path: string): Promise<LedgerEntry> {
  const entry = await findCommitted(box, path);
  if (entry === undefined) throw new Error(`${path} was committed and is gone.`);
  // Durable before it is acted on: the process that committed it may not have come to its sync.
  await box.sync(parentOf(path));
  return entry;
}

export function isSameCommit(a: Committed, b: Committed): boolean {
  return a.id === b.id && a.claims === b.claims && a.holder === b.holder;
}
