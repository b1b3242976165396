// A tree of files as a program holds it: what it may ask for, and what it gets.
import type {
  Body,
  Cancel,
  Content,
  OpenOptions,
  Running,
  VerifyOptions,
  VerifyReport,
  Waiting,
} from "../../common.ts";
import type { PathHold } from "../../locks/path/path-hold.ts";
import type { PathLocks } from "../../locks/path/path-locks.ts";
import type { DerivedIndex, SearchHit, SearchOptions } from "./derived-index.ts";
import type { Session, SessionFunctions } from "./session.ts";

export interface FileOptions extends Waiting {
  /** Work under locks that the caller already holds, of any path locks that this process has opened on the same root. */
  within?: PathHold | undefined;
}

export interface WriteOptions extends FileOptions {
  /**
   * Only if the file is still as it was read (null: only if there is none): PRECONDITION_FAILED. For callers that
   * think longer than a lock should be held.
   */
  ifStamp?: string | null | undefined;
}

export interface AddOptions extends FileOptions {
  /** "suffix": `_1`, `_2` … without waiting. Default "replace". */
  naming?: "replace" | "fail" | "suffix" | undefined;
}

export interface ListOptions extends Cancel {
  /** Default false: only what is directly below. */
  deep?: boolean | undefined;
}

export interface ChangesOptions extends Cancel {
  under?: string | undefined;
  /** Changes with a higher number than this. Default: those that come after the call. */
  after?: number | undefined;
}

export interface FilesOptions {
  /** Default: full text, built in. False: no index, and no search. */
  index?: DerivedIndex | false | undefined;
  /** Locks of the same root that the caller has opened. They are not closed with the tree. */
  locks?: PathLocks | undefined;
  /** For each operation. Default 5_000; 0: RESOURCE_BUSY at once. */
  timeoutMs?: number | undefined;
  leaseMs?: number | undefined;
  /** Text of a file for the index; undefined: not indexed. Default: UTF-8 files as they are. */
  extract?: ((path: string, content: Content, options: Cancel) => Promise<string | undefined>) | undefined;
  /** Without it the search is full text only. */
  embed?: ((text: string, options: Cancel) => Promise<readonly number[]>) | undefined;
  /** Writes `.abstract.md` and `.overview.md` of a directory. Without it there are none. */
  summarize?:
    | ((
        directory: string,
        entries: readonly string[],
        options: Cancel,
      ) => Promise<{ abstract: string; overview: string }>)
    | undefined;
  sessions?: SessionFunctions | undefined;
  /** For each user's function. Default 120_000; then the task is retried, then a dead letter. */
  functionTimeoutMs?: number | undefined;
}

export interface OpenFilesOptions extends FilesOptions, OpenOptions {
  /** Do queued work in this process, for all processes. Default true. */
  work?: boolean | undefined;
}

export interface FileInfo {
  readonly path: string;
  readonly directory: boolean;
  readonly size: number;
  readonly modifiedAt: Date;
  /** In a listing true only where it is known without reading the file; `stat` reads it. */
  readonly indexed: boolean;
  /** Identity of the content; absent for a directory. In a listing only where it is known without reading the file. */
  readonly stamp?: string;
}

export interface Added {
  /** Where it is: differs from what was asked when `naming` added a suffix. */
  readonly path: string;
  /** Ticket of the indexing that still runs under the tree lock; empty when there is nothing to do. */
  readonly task: string;
}

/** A change as the change log numbers it. */
export interface Change {
  /** From 1, without gaps. */
  readonly number: number;
  readonly kind: "written" | "removed" | "moved";
  /** Of a file or a directory; of a move where it is now. */
  readonly path: string;
  /** Of a move: where it was. */
  readonly from?: string;
}

/** Gives the new content, or undefined to leave the file as it is. `current` is undefined when there is none. */
export type ChangeContent = (
  current: Uint8Array | undefined,
) => Promise<string | Uint8Array | undefined> | string | Uint8Array | undefined;

/** What changes and reads the tree. */
export interface FileOperations extends AsyncDisposable {
  readonly root: string;
  /** The locks that the operations take. */
  locks(): Promise<PathLocks>;
  /** NO_SUCH_FILE. */
  read(path: string, options?: Cancel): Promise<Uint8Array>;
  /** As UTF-8. */
  readText(path: string, options?: Cancel): Promise<string>;
  /** Undefined when nothing is there. */
  stat(path: string): Promise<FileInfo | undefined>;
  /** Symbolic links are left out. NO_SUCH_FILE when `under` is not there. */
  list(under?: string, options?: ListOptions): AsyncIterable<FileInfo>;
  write(path: string, body: Body, options?: WriteOptions): Promise<FileInfo>;
  /** Read, change, write under one lock: no update is lost. Undefined in: no such file. Undefined out: leave it. */
  update(path: string, change: ChangeContent, options?: FileOptions): Promise<void>;
  /** Takes the staged directory in: first time, or as a new state of what is there. `staged` is consumed. */
  add(path: string, staged: string, options?: AddOptions): Promise<Added>;
  /** RESOURCE_BUSY names the holder, also in `move`. Directory or file. NO_SUCH_FILE. */
  remove(path: string, options?: FileOptions): Promise<void>;
  /** A file replaces a file; FILE_EXISTS for all else that is at `to`. */
  move(from: string, to: string, options?: FileOptions): Promise<void>;
  /** What changed, by whichever process; a hint may be missing, a change never is. */
  changes(options?: ChangesOptions): AsyncIterable<Change>;
  close(): Promise<void>;
}

export interface RebuildOptions extends Cancel {
  onProgress?: ((done: number, total: number) => void) | undefined;
  /** Functions that other processes were once opened with, and this one was not, are not used any more. Default false. */
  forgetFunctions?: boolean | undefined;
}

/** The whole: the tree, and what is derived from it. */
export interface FileTree extends FileOperations {
  /** Every hit exists and has the indexed content at the moment of the answer. */
  search(text: string, options?: SearchOptions): Promise<SearchHit[]>;
  /** Resolves when the work that was queued before the call is done: indexing, summaries, extraction. */
  settled(options?: Cancel & { under?: string | undefined }): Promise<void>;
  /** Does queued work for all processes. `openFiles` runs one unless `work: false`. */
  work(options?: Cancel & { concurrency?: number | undefined }): Running;
  /** How many files were indexed. */
  rebuildIndex(options?: RebuildOptions): Promise<number>;
  session(id: string, options?: { user?: string | undefined }): Promise<Session>;
  verify(options?: VerifyOptions): Promise<VerifyReport>;
}
