// The orders of the programs that run as Windows processes, and their reports.

export interface TestOrders {
  readonly files: readonly string[];
  /** For some files the words that the full name of a test must contain. */
  readonly only: Readonly<Record<string, string>>;
  /** Leaves out a test if its file and full name contain one of them. */
  readonly except: readonly string[];
}

/** One line of the file of results. */
export interface TestReport {
  readonly file: string;
  readonly name: string;
  readonly state: "pass" | "fail" | "skip" | "excepted";
  readonly ms: number;
  readonly errors: readonly string[];
}

export interface TortureOrders {
  readonly part: string;
  readonly seconds: number;
  readonly processes: number;
  readonly seed: number;
  readonly parent: string;
  readonly leaseMs: number;
  readonly blowsEveryMsMax: number;
  readonly atLeast: { readonly appends: number; readonly kills: number };
}

/** Paths are those of the system that the member runs on. */
export interface CrowdOrders {
  readonly name: string;
  readonly store: string;
  /** A folder for plain files that only a lock of the store protects. */
  readonly shared: string;
  readonly journal: string;
  /** The members finish when this file exists. */
  readonly finish: string;
  readonly leaseMs: number;
  /** The part to begin with: a member that is killed soon must not always work on the same ones. */
  readonly turn: number;
  /** The pause after each round. */
  readonly restMs: number;
}

/** One line of a journal. */
export type CrowdEntry =
  | { readonly kind: "opened" | "round" | "finished" }
  /** The session of the member ended, because it was too slow. */
  | { readonly kind: "lost"; readonly message: string }
  | { readonly kind: "failed"; readonly code: string; readonly message: string; readonly stack: string }
  | {
      readonly kind: "done";
      readonly part: "locks" | "events" | "publish" | "handoff" | "objects" | "files";
      readonly id: string;
      readonly number?: number;
    };

export interface AuditOrders {
  readonly store: string;
  readonly shared: string;
  readonly journals: readonly string[];
}

/** Every holder of the lock writes its name here, and finds it when it leaves. */
export const insideFile = "inside.txt";
/** Every holder of the lock adds a line with its name and its fence. */
export const linesFile = "lines.txt";
export const bucketName = "counters";
export const noteFiles: readonly string[] = ["notes/a.md", "notes/b.md", "notes/c.md"];
