// Folders for temporary files of this process: bodies that a caller reads by a path although their
// store has no files.
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Disk } from "../disk.ts";
import { openNodeFolder } from "./ports.ts";

/** Makes a new folder that only this user may read. Whoever asked for it removes it. */
export async function makeScratch(): Promise<{ readonly path: string; readonly disk: Disk }> {
  return await openNodeFolder(await mkdtemp(join(tmpdir(), "holdfast-")));
}
