// The API of a tree of files: its calls, options and results.
import type {
  Body,
  Cancel,
  Content,
  HolderInfo,
  NameRule,
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

/** Options of calls that change the tree. */
export interface FileOptions extends Waiting {
  /**
   * Works under a lock that the caller already holds, of any path locks that this process opened on
   * the same root. Default: acquires its own lock.
   */
  within?: PathHold | undefined;
}

/** Options of `write`. */
export interface WriteOptions extends FileOptions {
  /**
   * The file must still have this stamp; null: it must not exist. Throws PRECONDITION_FAILED. For
   * callers that take longer than a lock should be held. Default: any.
   */
  ifStamp?: string | null | undefined;
}

/** Options of `add`. */
export interface AddOptions extends FileOptions {
  /**
   * If the path exists: `replace` it, `fail` with FILE_EXISTS, or add a `suffix` (`_1`, `_2` …)
   * without waiting. Default `replace`.
   */
  naming?: "replace" | "fail" | "suffix" | undefined;
}

/** Options of `list`. */
export interface ListOptions extends Cancel {
  /** Lists everything below, not only the direct entries. Default false. */
  deep?: boolean | undefined;
  /**
   * Called for each entry that is omitted because no call can use it: a FIFO or a socket, a link
   * that leads out of the tree or nowhere, a name with a backslash or with bytes that are not
   * UTF-8, a path that is too long, a directory that this user may not read.
   */
  onProblem?: ((problem: TreeProblem) => void) | undefined;
}

/** An entry or a change that cannot be read. The others can be. */
export interface TreeProblem {
  /** Path below the root; for a damaged change, the path of its record. */
  readonly path: string;
  /** The problem, and its remedy. */
  readonly what: string;
}

/** Options of `changes`. */
export interface ChangesOptions extends Cancel {
  /** Returns only changes on or below this path. Default: the whole tree. */
  under?: string | undefined;
  /** Returns changes with a higher number than this. Default: those that follow the call. */
  after?: number | undefined;
}

/** Options of `history`. */
export interface HistoryOptions extends Cancel {
  /** Returns only changes on or below this path. Default: the whole tree. */
  under?: string | undefined;
  /** Returns changes with a higher number than this. Default 0. */
  after?: number | undefined;
  /** Returns changes with a lower number than this, for pages. Default: the latest. */
  before?: number | undefined;
  /** The largest number of changes to return. Default 100. */
  limit?: number | undefined;
}

/** Options of a tree of files. */
export interface FilesOptions {
  /** The search index. False: no index, and no search. Default: a built-in full-text index. */
  index?: DerivedIndex | false | undefined;
  /**
   * Locks of the same root that the caller has opened. They stay open when the tree is closed.
   * Default: the tree opens its own.
   */
  locks?: PathLocks | undefined;
  /** How long each call waits for locks, unless it passes its own. 0 does not wait. Default 5,000. */
  timeoutMs?: number | undefined;
  /** A process that is silent for this long is dead, and loses its locks. Default 30,000. */
  leaseMs?: number | undefined;
  /**
   * Returns the text of a file for the index; undefined: the file is not indexed. Default: UTF-8
   * files are indexed as they are.
   */
  extract?: ((path: string, content: Content, options: Cancel) => Promise<string | undefined>) | undefined;
  /** Returns the vector of a text. Default: none, and search is full text only. */
  embed?: ((text: string, options: Cancel) => Promise<readonly number[]>) | undefined;
  /** Returns the content of `.abstract.md` and `.overview.md` of a directory. Default: none are written. */
  summarize?:
    | ((
        directory: string,
        entries: readonly string[],
        options: Cancel,
      ) => Promise<{ abstract: string; overview: string }>)
    | undefined;
  /** Functions that process the archives of sessions. Default: none. */
  sessions?: SessionFunctions | undefined;
  /**
   * How long a function of the user may take. After that the task is retried, and finally given up.
   * Default 120,000.
   */
  functionTimeoutMs?: number | undefined;
  /** True: this process does the queued work of all processes. False: only while `work()` runs. Default true. */
  work?: boolean | undefined;
}

/** Options of `openFiles`. */
export interface OpenFilesOptions extends FilesOptions, OpenOptions {
  /** Shown to other processes with locks and changes, for example "till 3". Default: none. */
  name?: string | undefined;
  /** As for `openPathLocks`. Default: `portable` for a new tree on a share. */
  names?: NameRule | undefined;
}

/** A file or directory. */
export interface FileInfo {
  /** Path below the root. */
  readonly path: string;
  /** True for a directory. */
  readonly directory: boolean;
  /** Size in bytes; 0 for a directory. */
  readonly size: number;
  /** When it was last modified. */
  readonly modifiedAt: Date;
  /**
   * True if the index contains this content. In a list, only if that is known without reading the
   * file; `stat` reads it.
   */
  readonly indexed: boolean;
  /**
   * Identifies the content. Absent for a directory, and in a list if it is not known without
   * reading the file.
   */
  readonly stamp?: string;
}

/** The result of `add`. */
export interface AddResult {
  /** The path of the added directory. Differs from the requested one if `naming` added a suffix. */
  readonly path: string;
  /** Id of the indexing task that still holds the tree lock; empty if there is nothing to do. */
  readonly task: string;
}

/** @deprecated Use `AddResult`. */
export type Added = AddResult;

/** A change in the change log. */
export interface Change {
  /** Number of the change: 1 for the first one, without gaps. */
  readonly number: number;
  /** The kind of change. */
  readonly kind: "written" | "removed" | "moved";
  /** The file or directory; for a move, its new path. */
  readonly path: string;
  /** For a move, the old path. */
  readonly from?: string;
  /** The process that made the change. Absent in changes of earlier builds. */
  readonly by?: ChangedBy;
  /**
   * When, by the clock of that process. For people: clocks differ between machines. Absent in
   * changes of earlier builds.
   */
  readonly at?: Date;
  /** Why the record of the change cannot be read. Its path is unknown, so `path` is "", the root. */
  readonly damaged?: string;
}

/** The process that made a change. `id` is the id of the holder that locks report. */
export type ChangedBy = Pick<HolderInfo, "id" | "name" | "host" | "pid">;

/**
 * Returns the new content, or undefined to leave the file unchanged. `current` is undefined if
 * there is no file.
 */
export type ChangeContent = (
  current: Uint8Array | undefined,
) => Promise<string | Uint8Array | undefined> | string | Uint8Array | undefined;

/**
 * Returns the new UTF-8 text, or undefined to leave the file unchanged. `current` is undefined if
 * there is no file.
 */
export type ChangeText = (current: string | undefined) => Promise<string | undefined> | string | undefined;

/** The bytes of a file, and the stamp of exactly these bytes. */
export interface StampedBytes {
  /** The content. */
  readonly bytes: Uint8Array;
  /** Identifies the content, for `ifStamp`. */
  readonly stamp: string;
}

/** The text of a file, and the stamp of exactly this text. */
export interface StampedText {
  /** The content. */
  readonly text: string;
  /** Identifies the content, for `ifStamp`. */
  readonly stamp: string;
}

/**
 * Reads and changes the tree. Paths are relative to the root; a call throws INVALID_PATH for a path
 * outside it or a reserved one. After `close` every method throws CLOSED.
 *
 * A call that changes the tree throws RESOURCE_BUSY, with the blocking holders, if it does not get
 * its locks in time; LOCK_LOST if this process was judged dead meanwhile; and OUTCOME_UNKNOWN if
 * the answer of the disk was lost.
 */
export interface FileOperations extends AsyncDisposable {
  /** The absolute path of the root. */
  readonly root: string;
  /** Returns the locks that the operations use. */
  locks(): Promise<PathLocks>;
  /** Reads a file. Throws NO_SUCH_FILE, and TOO_LARGE from 2 GiB on. */
  read(path: string, options?: Cancel): Promise<Uint8Array>;
  /** Reads a file as UTF-8 text. Throws NO_SUCH_FILE, and TOO_LARGE from 2 GiB on. */
  readText(path: string, options?: Cancel): Promise<string>;
  /**
   * Reads a file and its stamp in one step, for a later `write` with `ifStamp`. (`read` and `stat`
   * may see different contents.) Throws NO_SUCH_FILE and TOO_LARGE.
   */
  readStamped(path: string, options?: Cancel): Promise<StampedBytes>;
  /**
   * Reads a file and its stamp as `readStamped` does, as UTF-8 text. Throws NO_SUCH_FILE and
   * TOO_LARGE, and a TypeError if the file is not UTF-8.
   */
  readTextStamped(path: string, options?: Cancel): Promise<StampedText>;
  /** Returns the file or directory at this path, or undefined if there is none. */
  stat(path: string): Promise<FileInfo | undefined>;
  /**
   * Lists the entries of a directory (default: the root). Omits symbolic links, and entries that no
   * call can use: see `onProblem`. Throws NO_SUCH_FILE if `under` does not exist.
   */
  list(under?: string, options?: ListOptions): AsyncIterable<FileInfo>;
  /**
   * Writes a file, and creates missing directories. Throws PRECONDITION_FAILED if `ifStamp` does
   * not match, and FILE_EXISTS if a file blocks a directory of the path.
   *
   * @example
   * ```ts
   * const { stamp } = await files.readTextStamped("notes/today.md");
   * await files.write("notes/today.md", await edit(), { ifStamp: stamp });
   * ```
   */
  write(path: string, body: Body, options?: WriteOptions): Promise<FileInfo>;
  /**
   * Reads, changes and writes a file under one lock, so that no update is lost. Throws FILE_EXISTS
   * if a file blocks a directory of the path, and passes errors of `change` on.
   *
   * @example
   * ```ts
   * await files.update("counter", (current) => String(Number(Buffer.from(current ?? "0")) + 1));
   * ```
   */
  update(path: string, change: ChangeContent, options?: FileOptions): Promise<void>;
  /**
   * Updates a file as `update` does, as UTF-8 text. Throws a TypeError, and writes nothing, if the
   * file is not UTF-8.
   */
  updateText(path: string, change: ChangeText, options?: FileOptions): Promise<void>;
  /**
   * Moves a staged directory into the tree, as a new directory or as the new state of an existing
   * one. `staged` no longer exists afterwards. Throws FILE_EXISTS with `naming: "fail"`,
   * INVALID_PATH if `staged` cannot be used, CROSS_DEVICE if it lies on another file system, and
   * INDEX_FAILED.
   */
  add(path: string, staged: string, options?: AddOptions): Promise<AddResult>;
  /** Removes a file or a directory with its content. Throws NO_SUCH_FILE and INDEX_FAILED. */
  remove(path: string, options?: FileOptions): Promise<void>;
  /**
   * Moves a file or a directory. A file replaces a file; anything else at `to` throws FILE_EXISTS.
   * Throws NO_SUCH_FILE, INVALID_PATH for a move into itself, CROSS_DEVICE and INDEX_FAILED.
   */
  move(from: string, to: string, options?: FileOptions): Promise<void>;
  /** Iterates over the changes of all processes, and waits for new ones. It never misses a change. */
  changes(options?: ChangesOptions): AsyncIterable<Change>;
  /**
   * Returns the latest changes, newest first, without waiting. A change whose author still holds
   * its locks is among them, and may not be visible yet. It looks at no more than the latest 10,000
   * changes in its range.
   */
  history(options?: HistoryOptions): Promise<Change[]>;
  /** Stops the work of this process and closes the tree. */
  close(): Promise<void>;
}

/** Options of `rebuildIndex`. */
export interface RebuildOptions extends Cancel {
  /** Called now and then with the number of files done and the total. */
  onProgress?: ((done: number, total: number) => void) | undefined;
  /**
   * Rebuilds the index without those functions of other processes that this one was opened without. Default false: the
   * rebuild then throws INDEX_FAILED.
   */
  forgetFunctions?: boolean | undefined;
}

/** Counts of a tree, and the progress of the work on its changes. */
export interface TreeStats {
  /** Number of files. */
  readonly files: number;
  /** Size of all files in bytes. */
  readonly bytes: number;
  /** Number of entries that no call can use; `verify` reports them. */
  readonly odd: number;
  /** Number of changes in the change log. */
  readonly changes: number;
  /** Number of changes that are not indexed yet. */
  readonly backlog: number;
  /**
   * Tasks that failed until they were given up, at most 1,000. A task runs again when its file
   * changes, or after a repair.
   */
  readonly givenUp: readonly GivenUpWork[];
  /** Number of sessions. */
  readonly sessions: number;
}

/** A task that failed until it was given up. */
export interface GivenUpWork {
  /** The kind of the task. */
  readonly task: "index" | "summary" | "session";
  /** The file or directory; for a session, its name and the number of the archive. */
  readonly path: string;
  /** Why it failed. */
  readonly reason: string;
}

/** A tree of files and its search index. */
export interface FileTree extends FileOperations {
  /**
   * Searches the files. Every hit is checked against the file before it is returned: search may
   * miss a file, but never returns a deleted or changed one. Throws INDEX_FAILED and TOO_LARGE, and
   * a TypeError if the tree has no index.
   *
   * @example
   * ```ts
   * for (const { path, excerpt } of await files.search("unpaid invoice", { under: "mail", limit: 5 }))
   *   console.log(path, excerpt);
   * ```
   */
  search(text: string, options?: SearchOptions): Promise<SearchHit[]>;
  /**
   * Waits until the work that was queued before the call is done: indexing, summaries, extraction.
   * Throws INDEX_FAILED if a task was given up or needs a function that no live process has, and
   * RESOURCE_BUSY if a committed change cannot be completed.
   */
  settled(options?: Cancel & { under?: string | undefined }): Promise<void>;
  /**
   * Does queued work of all processes, up to `concurrency` tasks at a time (default 4). `openFiles`
   * starts it unless `work` is false.
   */
  work(options?: Cancel & { concurrency?: number | undefined }): Running;
  /**
   * Rebuilds the index, and returns the number of indexed files. Throws INDEX_FAILED if the index
   * needs a function that this process lacks.
   */
  rebuildIndex(options?: RebuildOptions): Promise<number>;
  /**
   * Opens a session, and creates it if it does not exist. `user` is recorded in its archives.
   * Throws INVALID_NAME.
   */
  session(id: string, options?: { user?: string | undefined }): Promise<Session>;
  /**
   * Compares every file with the index, and checks the change log, the sessions and the results of
   * tasks. Entries that no call can use are notes; a damaged record is damage. `repair` indexes
   * differing files again, and sets damaged changes aside.
   */
  verify(options?: VerifyOptions): Promise<VerifyReport>;
  /** Returns the number of the last change; 0 if there was none. Iterate over the latest with `changes`. */
  lastChange(): Promise<number>;
  /** Returns tasks that failed until they were given up. Unlike `stats`, it does not read the tree. */
  givenUp(): Promise<readonly GivenUpWork[]>;
  /** Lists the ids of all sessions. */
  sessions(): Promise<readonly string[]>;
  /** Counts the whole tree. */
  stats(options?: Cancel): Promise<TreeStats>;
}
