// The simplest hand-over needs no box: a file appears in a folder complete or not at all, and its
// done file appears last.
import type { Body, Cancel } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import { findIfThere, hasErrno } from "../../ports/disk-error.ts";
import { randomName } from "../../format/id.ts";
import { checkOptions } from "../../format/known-options.ts";
import { parentOf, syncNames, unlinkIfThere } from "../../durable/publish/directory.ts";
import { writeBody } from "../../part/body.ts";
import type { Ports } from "../../ports/ports.ts";
import { checkText } from "../model/arguments.ts";
import type { ManifestFile } from "../model/manifest.ts";
import { doneFilesOf, type DoneFile } from "./done-files.ts";
import { getFolderStat } from "./folder.ts";
import { linkInto, renameInto } from "../../durable/publish/foreign-file.ts";
import { checkExportRule, type ExportRule } from "../model/foreign-rule.ts";

/** Options of `publishFile`. */
export interface PublishFileOptions extends Cancel {
  /** Replaces an existing file of that name. Default false: throws FILE_EXISTS. */
  replace?: boolean | undefined;
  /** Writes a done file after the file. Default: none. */
  done?: ExportRule | undefined;
  /** Record count for the done file. Default: none. */
  records?: number | undefined;
  /** Idempotency key for the done file. Default: none. */
  key?: string | undefined;
}

type FilePorts = Pick<Ports, "disk" | "clock" | "random">;

/** Throws a TypeError or RangeError before anything is written. */
export function checkPublishFile(options: PublishFileOptions): void {
  checkOptions("publishFile", options, { replace: true, done: true, records: true, key: true, signal: true });
  const { replace, done, records, key } = options;
  if (replace !== undefined && typeof replace !== "boolean") throw new TypeError("replace must be true or false.");
  if (done !== undefined) checkExportRule(done);
  if (records !== undefined && !(Number.isSafeInteger(records) && records >= 0))
    throw new RangeError(`records must be a whole number from 0, not ${records}.`);
  if (key !== undefined) checkText("key", key);
}

/**
 * `path` is absolute. Durable when it resolves. A failure leaves neither a partial file nor a done
 * file. A crash may leave a file that begins with ".holdfast-", which no program reads. Throws
 * FILE_EXISTS, DISK_FULL, INVALID_PATH.
 */
export async function publishFileOn(
  ports: FilePorts,
  path: string,
  body: Body,
  options: PublishFileOptions = {},
): Promise<ManifestFile> {
  const { disk, clock } = ports;
  const { replace = false, done, records, key, signal } = options;
  const name = path.slice(path.lastIndexOf("/") + 1);
  const describe = (size: number, sha256: string): ManifestFile => ({
    name,
    size,
    sha256,
    ...(records === undefined ? {} : { records }),
  });
  const doneOf = (file: ManifestFile): DoneFile[] =>
    done === undefined ? [] : doneFilesOf([file], done, { key, createdAt: new Date(clock.wallMs()) });
  const [planned] = doneOf(describe(0, ""));
  const donePath = planned && `${parentOf(path)}/${planned.name}`;
  if (!replace) for (const each of [path, donePath]) if (each !== undefined) await mustBeFree(ports, each);
  const temp = newTemp(ports, path);
  const doneTemp = newTemp(ports, path);
  try {
    const { size, sha256 } = await writeBody(disk, temp, body, { signal });
    const file = describe(size, sha256);
    const [written] = doneOf(file);
    // The done file is staged before the file is visible: a full disk must not leave the file
    // without it.
    if (written !== undefined) await writeBody(disk, doneTemp, written.text, { signal });
    signal?.throwIfAborted();
    // An old done file is removed first: it would declare the new file complete, with the hash of
    // the old one.
    if (replace && donePath !== undefined) await removeOld(ports, donePath);
    await give(ports, temp, path, replace);
    if (donePath !== undefined) await give(ports, doneTemp, donePath, false);
    return file;
  } catch (error) {
    // If the folder is missing, INVALID_PATH is more specific.
    if (hasErrno(error, "ENOENT", "ENOTDIR")) await getFolderStat(disk, parentOf(path));
    throw error;
  } finally {
    // A temp file that cannot be removed now stays, as after a crash.
    for (const each of [temp, doneTemp]) await unlinkIfThere(disk, each).catch(() => undefined);
  }
}

function newTemp({ random }: FilePorts, path: string): string {
  return `${parentOf(path)}/.holdfast-${randomName(random.bytes(16))}.tmp`;
}

async function give({ disk }: FilePorts, temp: string, path: string, replace: boolean): Promise<void> {
  if (replace) await renameInto(disk, temp, path);
  else if (!(await linkInto(disk, temp, path))) throw exists(path);
}

async function removeOld({ disk }: FilePorts, path: string): Promise<void> {
  await unlinkIfThere(disk, path);
  await syncNames(disk, parentOf(path));
}

/** An early check spares writing a large file in vain. The link decides. */
async function mustBeFree({ disk }: FilePorts, path: string): Promise<void> {
  if ((await findIfThere(disk.look(path))) !== undefined) throw exists(path);
}

function exists(path: string): Error {
  const message = `${path} already exists, and was left as it is. Choose another name, wait until it is taken, or replace it.`;
  return holdfastError("FILE_EXISTS", message, { path });
}
