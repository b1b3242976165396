// Opens a target by its location: a folder, or `s3://BUCKET/PREFIX`.
import { directoryOf } from "../../ports/node/location.ts";
import { openNodePorts } from "../../ports/node/ports.ts";
import { FolderTarget } from "./folder-target.ts";
import { openS3Target, type S3Options } from "./s3-target.ts";
import type { BackupTarget } from "./target.ts";

/** Options of every function that reads or writes backups. */
export interface TargetOptions {
  /** Access to the bucket. Only for a location that begins with `s3:`. Default: the environment. */
  s3?: S3Options | undefined;
}

/** `directory`: the absolute path of a target in a folder. */
export async function openTarget(
  location: string | URL,
  { s3 }: TargetOptions,
): Promise<BackupTarget & { readonly directory?: string }> {
  const text = String(location);
  if (/^s3:/i.test(text)) return await openS3Target(text, s3 ?? {});
  const directory = directoryOf(location);
  return Object.assign(new FolderTarget(await openNodePorts(directory), directory), { directory });
}
