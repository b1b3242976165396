// One simulated machine: its clock, its boot, its kernel's locks, and what its file system client remembers of the server.
import type { DirectoryNode } from "../../ports/memory/tree.ts";

export class Machine {
  readonly name: string;
  readonly bootId: string;
  /** How far its wall clock is ahead of the true time; the explorer may change it. */
  wallOffsetMs = 0;
  /** What each directory looked like when this machine last listed it. */
  readonly listings: Map<string, readonly string[]> = new Map();
  /** Names that were absent when this machine last looked. */
  readonly absences: Set<string> = new Set();
  /** The directory that this machine last found under a path. */
  readonly directories: Map<string, DirectoryNode> = new Map();

  constructor(name: string) {
    this.name = name;
    this.bootId = `boot-of-${name}`;
  }

  describeCaches(): string {
    const listings = [...this.listings].map(([path, names]) => `${path}=${names.join()}`).sort();
    const directories = [...this.directories]
      .filter(([, node]) => node.removed)
      .map(([path]) => path)
      .sort();
    return `${listings.join(";")}|${[...this.absences].sort().join()}|${directories.join()}|${this.wallOffsetMs}`;
  }
}
