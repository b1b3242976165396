// Where a row of a failure table is played: a tree on one kind of disk, and processes that come to a point of their work.
import type { IndexedFiles } from "../../../src/files/indexed-files.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import type { OpenWorkedOptions, TreeSite, WorkName } from "../../../harness/processes/files/works.ts";

export const leaseMs = 2_000;

/** One process, and where it ends or stands still. */
export interface Doomed {
  readonly work: WorkName;
  readonly at: string;
  readonly time?: number | undefined;
  readonly hasSummaries?: boolean | undefined;
  readonly leaseMs?: number | undefined;
}

/** A process that stands at its point, alive. */
export interface Standing {
  /** Lets it go on; resolves when its work is done and the process still has the tree open. Rejects when it fails. */
  goOn(): Promise<void>;
  end(): Promise<void>;
}

export interface Arena extends TreeSite {
  readonly disk: Disk;
  /** Lets a moment pass. */
  pause(): Promise<void>;
  nowMs(): number;
  open(name: string, options: Omit<OpenWorkedOptions, "at">): Promise<IndexedFiles>;
  /** Resolves when the process is dead. Rejects when it never came to its point. */
  killAt(doomed: Doomed): Promise<void>;
  /** Resolves when the process stands there. */
  holdAt(doomed: Doomed): Promise<Standing>;
}
