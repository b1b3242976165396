// Trees of files on every kind of disk; each opening acts as another process.
import { onTestFinished } from "vitest";
import { ensureDirectory, parentOf } from "../../src/durable/publish/directory.ts";
import { FolderFiles, type FolderFilesOptions } from "../../src/files/files.ts";
import type { Change, FileOperations } from "../../src/files/model/file-tree.ts";
import type { IndexQueue } from "../../src/files/model/index-queue.ts";
import { openTree } from "../../src/files/tree/open-tree.ts";
import type { PathHold } from "../../src/locks/path/path-hold.ts";
import type { Disk } from "../../src/ports/disk.ts";
import type { Site } from "../sites/sites.ts";

export type Texts = Readonly<Record<string, string>>;

export interface FileSite extends Site {
  readonly root: string;
  /** Another process on the same tree; closed when the test ends. */
  open(options?: FolderFilesOptions): Promise<FolderFiles>;
  /** A directory outside of the tree, with these files. */
  stage(name: string, files: Texts): Promise<string>;
  /** What the disk has at a path of the tree or of a staged directory. */
  onDisk(path: string): Promise<Texts>;
}

export async function filesOn(make: () => Promise<Site>): Promise<FileSite> {
  const site = await make();
  const root = `${site.directory}/tree`;
  const { disk } = await site.openPorts();
  return {
    ...site,
    root,
    open: async (options = {}) => {
      const files = new FolderFiles(await openTree(await site.openPorts(), root), options);
      onTestFinished(() => files.close());
      return files;
    },
    stage: async (name, files) => {
      const directory = `${site.directory}/${name}`;
      await putFiles(disk, directory, files);
      return directory;
    },
    onDisk: async (path) => await textsIn(disk, path),
  };
}

export async function putFiles(disk: Disk, directory: string, files: Texts): Promise<void> {
  await ensureDirectory(disk, directory);
  for (const [name, text] of Object.entries(files)) {
    await ensureDirectory(disk, parentOf(`${directory}/${name}`));
    await disk.createFile(`${directory}/${name}`, Buffer.from(text), { sync: true });
  }
}

/** Every file below `path`; a directory without entries ends in a slash. */
export async function textsIn(disk: Disk, path: string, prefix = ""): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  const names: string[] = await disk.list(`${path}/${prefix}`).catch(() => []);
  for (const name of names.sort()) {
    if (prefix === "" && name === ".holdfast") continue;
    const at = `${prefix}${name}`;
    if ((await disk.stat(`${path}/${at}`)).kind === "file")
      found[at] = Buffer.from(await disk.readFile(`${path}/${at}`, 1_000_000)).toString();
    else {
      const below = await textsIn(disk, path, `${at}/`);
      Object.assign(found, Object.keys(below).length === 0 ? { [`${at}/`]: "" } : below);
    }
  }
  return found;
}

/** What a tree shows of itself. */
export async function textsOf(files: FileOperations): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for await (const { path, directory } of files.list("", { deep: true }))
    if (!directory) found[path] = await files.readText(path);
  return found;
}

/** Ends the hold of an `add` when the test says so, as a worker does. */
export class QueueInHand implements IndexQueue {
  readonly hidden: Change[] = [];
  readonly queued: { readonly change: Change; readonly token?: string | undefined }[] = [];
  readonly indexedWithin: { readonly change: Change; readonly hold: PathHold }[] = [];
  failure: Error | undefined;

  async hide(change: Change): Promise<void> {
    if (this.failure !== undefined) throw this.failure;
    this.hidden.push(change);
  }
  async enqueue(change: Change, { token }: { readonly token?: string | undefined } = {}): Promise<string> {
    if (this.failure !== undefined) throw this.failure;
    this.queued.push({ change, token });
    return `ticket-${change.number}`;
  }
  async indexWithin(change: Change, hold: PathHold): Promise<string> {
    this.indexedWithin.push({ change, hold });
    return `ticket-${change.number}`;
  }
  async isIndexed(): Promise<boolean> {
    return false;
  }
}

/** The code of the error that a promise rejects with. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
  return "nothing failed";
}
