// The simplest hand-over, without a box: a file appears in a folder complete or not at all, its done file last.
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
import { checkExportRule, type ExportRule } from "./rule.ts";

export interface PublishFileOptions extends Cancel {
  /** Put it in the place of a file of that name. Default: FILE_EXISTS. */
  replace?: boolean | undefined;
  /** With a done file. Default: none. */
  done?: ExportRule | undefined;
  records?: number | undefined;
  key?: string | undefined;
}

type FilePorts = Pick<Ports, "disk" | "clock" | "random">;

/** TypeError, RangeError: before anything is written. */
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
 * `path` is absolute. Durable when it resolves. A failure leaves neither a part of the file nor a done file; a crash
 * may leave a file that begins with ".holdfast-", which no program looks at. FILE_EXISTS, DISK_FULL, INVALID_PATH.
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
    // Before the file can be seen: a full disk must not leave it without its done file.
    if (written !== undefined) await writeBody(disk, doneTemp, written.text, { signal });
    signal?.throwIfAborted();
    // An old done file would say that the new file is complete, with the hash of the old one.
    if (replace && donePath !== undefined) await removeOld(ports, donePath);
    await give(ports, temp, path, replace);
    if (donePath !== undefined) await give(ports, doneTemp, donePath, false);
    return file;
  } catch (error) {
    // INVALID_PATH says more, if it is the folder that is missing.
    if (hasErrno(error, "ENOENT", "ENOTDIR")) await getFolderStat(disk, parentOf(path));
    throw error;
  } finally {
    // What cannot be removed now is as after a crash.
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

/** Early, before a large file is written for nothing. The link decides. */
async function mustBeFree({ disk }: FilePorts, path: string): Promise<void> {
  if ((await findIfThere(disk.look(path))) !== undefined) throw exists(path);
}

function exists(path: string): Error {
  const message = `${path} is there already, and was left as it is. Choose another name, wait until it was taken, or replace it.`;
  return holdfastError("FILE_EXISTS", message, { path });
}
