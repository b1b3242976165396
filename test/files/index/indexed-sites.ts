// Trees with an index on every kind of disk; each opening acts as another process.
import { onTestFinished } from "vitest";
import { IndexedFiles, type IndexedFilesOptions } from "../../../src/files/indexed-files.ts";
import { openTree } from "../../../src/files/tree/open-tree.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import type { Site } from "../../sites/sites.ts";
import { putFiles, type Texts } from "../file-sites.ts";

export interface IndexedSite extends Site {
  readonly root: string;
  readonly disk: Disk;
  /** Another process on the same tree; closed when the test ends. */
  open(options?: IndexedFilesOptions, on?: (ports: Ports) => Ports): Promise<IndexedFiles>;
  /** A directory outside of the tree, with these files. */
  stage(name: string, files: Texts): Promise<string>;
  /** Where everything is that is not the tree. */
  readonly state: string;
}

/** So that a failing function does not take seconds. */
const quickRetry = { attempts: 3, backoffMs: { min: 1, max: 2 } };

export async function indexedOn(make: () => Promise<Site>): Promise<IndexedSite> {
  const site = await make();
  const root = `${site.directory}/tree`;
  const { disk } = await site.openPorts();
  return {
    ...site,
    root,
    disk,
    state: `${root}/.holdfast/files`,
    open: async (options = {}, on = (ports) => ports) => {
      const opened = await openTree(on(await site.openPorts()), root, { leaseMs: options.leaseMs });
      const files = await IndexedFiles.open(opened, { retry: quickRetry, graceMs: 20, ...options });
      onTestFinished(() => files.close());
      return files;
    },
    stage: async (name, files) => {
      const directory = `${site.directory}/${name}`;
      await putFiles(disk, directory, files);
      return directory;
    },
  };
}

/** The paths that a search gives, in the order of their names. */
export async function found(files: IndexedFiles, text: string, under?: string): Promise<string[]> {
  return (await files.search(text, { under, limit: 100 })).map(({ path }) => path).sort();
}

/** The paths that are locked. Leases have names that begin with a slash. */
export async function locksOf(files: IndexedFiles): Promise<string[]> {
  const held = await (await files.locks()).list();
  return held.map(({ path }) => path).filter((path) => !path.startsWith("/"));
}
