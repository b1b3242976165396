// FolderFiles: the tree of a folder, as programs call it. It checks arguments, tracks calls in
// progress, and delegates to the operations.
import type { Body, Cancel } from "../common.ts";
import { Lifetime } from "../durable/wait/lifetime.ts";
import type { OpenFolder } from "../handoff/foreign/folder.ts";
import type { PathLocks } from "../locks/path/path-locks.ts";
import { traceMethods } from "../telemetry/trace.ts";
import { followChanges, isUnder } from "./change-log/follow-changes.ts";
import {
  checkAdd,
  checkCancel,
  checkChanges,
  checkFileOptions,
  checkHistory,
  checkList,
  checkPath,
  checkUpdate,
  checkWrite,
} from "./model/arguments.ts";
import type {
  AddResult,
  AddOptions,
  Change,
  ChangeContent,
  ChangesOptions,
  ChangeText,
  FileInfo,
  FileOperations,
  FileOptions,
  HistoryOptions,
  ListOptions,
  StampedBytes,
  StampedText,
  WriteOptions,
} from "./model/file-tree.ts";
import type { IndexQueue } from "./model/index-queue.ts";
import { addDirectory } from "./operations/add.ts";
import { movePath } from "./operations/move.ts";
import { removePath } from "./operations/remove.ts";
import { StagedDirectory } from "./operations/staged-directory.ts";
import type { OperationContext } from "./operations/commit.ts";
import { updateFile, writeFile } from "./operations/write.ts";
import type { OpenedTree } from "./tree/open-tree.ts";
import { stampOf, Stamps } from "./tree/stamps.ts";
import { tracedFileMethods } from "./traced-methods.ts";
import { TreeReader } from "./tree/tree-reader.ts";

const timeoutMsDefault = 5_000;
/** The number of changes that `history` looks at. */
const lookedAtMax = 10_000;
/** Keeps a byte order mark, because the text is written back. */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export interface FolderFilesOptions {
  /** Default: the tree has no index. */
  readonly queue?: IndexQueue | undefined;
  readonly timeoutMs?: number | undefined;
  /**
   * Opens the folder of staged directories. Default: they are absolute paths on the tree's disk.
   */
  readonly openFolder?: OpenFolder | undefined;
}

export class FolderFiles implements FileOperations {
  static {
    traceMethods(this, tracedFileMethods, { except: ["close"] });
  }

  readonly root: string;
  readonly #opened: OpenedTree;
  readonly #context: OperationContext;
  readonly #openFolder: OpenFolder;
  readonly #life: Lifetime;

  constructor(opened: OpenedTree, options: FolderFilesOptions = {}) {
    const { tree } = opened;
    const { queue, timeoutMs = timeoutMsDefault } = options;
    this.root = tree.root;
    this.#life = new Lifetime(this.root);
    this.#opened = opened;
    this.#openFolder = options.openFolder ?? (async (path) => ({ path, disk: tree.disk }));
    const stamps = new Stamps(tree.disk, tree.ground.ports.clock);
    this.#context = { tree, reader: new TreeReader(tree, stamps, queue), queue, timeoutMs };
  }

  async locks(): Promise<PathLocks> {
    this.#life.mustBeOpen();
    return this.#context.tree.locks;
  }

  async read(path: string, options: Cancel = {}): Promise<Uint8Array> {
    checkPath("read", "path", path);
    checkCancel("read", options);
    return await this.#life.run(() => this.#context.reader.read(path, options));
  }

  async readText(path: string, options: Cancel = {}): Promise<string> {
    return Buffer.from(await this.read(path, options)).toString();
  }

  async readStamped(path: string, options: Cancel = {}): Promise<StampedBytes> {
    checkPath("readStamped", "path", path);
    checkCancel("readStamped", options);
    return await this.#readStamped(path, options);
  }

  async readTextStamped(path: string, options: Cancel = {}): Promise<StampedText> {
    checkPath("readTextStamped", "path", path);
    checkCancel("readTextStamped", options);
    const { bytes, stamp } = await this.#readStamped(path, options);
    return { text: textOf(path, bytes, "readStamped"), stamp };
  }

  async stat(path: string): Promise<FileInfo | undefined> {
    checkPath("stat", "path", path);
    return await this.#life.run(() => this.#context.reader.stat(path));
  }

  list(under: string = "", options: ListOptions = {}): AsyncGenerator<FileInfo> {
    checkList(under, options);
    this.#life.mustBeOpen();
    return this.#untilClosed(this.#context.reader.list(under, options));
  }

  async write(path: string, body: Body, options: WriteOptions = {}): Promise<FileInfo> {
    checkWrite(path, body, options);
    return await this.#life.run(() => writeFile(this.#context, path, body, options));
  }

  async update(path: string, change: ChangeContent, options: FileOptions = {}): Promise<void> {
    checkUpdate("update", path, change, options);
    await this.#life.run(() => updateFile(this.#context, path, change, options));
  }

  async updateText(path: string, change: ChangeText, options: FileOptions = {}): Promise<void> {
    checkUpdate("updateText", path, change, options);
    const changeBytes = (bytes: Uint8Array | undefined): ReturnType<ChangeText> =>
      change(bytes === undefined ? undefined : textOf(path, bytes, "update"));
    await this.#life.run(() => updateFile(this.#context, path, changeBytes, options));
  }

  async add(path: string, staged: string, options: AddOptions = {}): Promise<AddResult> {
    checkAdd(path, staged, options);
    return await this.#life.run(async () => {
      options.signal?.throwIfAborted();
      const directory = await StagedDirectory.open(this.#context.tree, staged, this.#openFolder);
      return await addDirectory(this.#context, path, directory, options);
    });
  }

  async remove(path: string, options: FileOptions = {}): Promise<void> {
    checkPath("remove", "path", path);
    checkFileOptions("remove", options);
    await this.#life.run(() => this.#context.tree.reserve.use(() => removePath(this.#context, path, options)));
  }

  async move(from: string, to: string, options: FileOptions = {}): Promise<void> {
    checkPath("move", "from", from);
    checkPath("move", "to", to);
    checkFileOptions("move", options);
    await this.#life.run(() => this.#context.tree.reserve.use(() => movePath(this.#context, from, to, options)));
  }

  changes(options: ChangesOptions = {}): AsyncGenerator<Change, void, undefined> {
    checkChanges(options);
    this.#life.mustBeOpen();
    // Read the position now: the caller gets changes made after this call, whenever it begins to
    // iterate.
    const after = options.after === undefined ? this.#context.tree.changes.last() : Promise.resolve(options.after);
    after.catch(() => undefined);
    return this.#follow(after, options);
  }

  async history(options: HistoryOptions = {}): Promise<Change[]> {
    checkHistory(options);
    return await this.#life.run(async () => {
      const { under = "", after = 0, before = Infinity, limit = 100, signal } = options;
      const { path: directory } = await this.#context.tree.locate(under);
      const newest = Math.min(before - 1, await this.#context.tree.changes.last());
      const found: Change[] = [];
      for (let number = newest; number > Math.max(after, newest - lookedAtMax) && found.length < limit; number--) {
        signal?.throwIfAborted();
        const change = await this.#context.tree.changes.find(number);
        if (change !== undefined && isUnder(change, directory)) found.push(change);
      }
      return found;
    });
  }

  /** Waits for calls in progress, then leaves the ground. */
  async close(): Promise<void> {
    await this.#life.close(() => this.#opened.close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async *#follow(
    after: Promise<number>,
    { under = "", signal }: ChangesOptions,
  ): AsyncGenerator<Change, void, undefined> {
    const { path: directory } = await this.#context.tree.locate(under);
    const { closed } = this.#life;
    for await (const change of followChanges(this.#context.tree, { after: await after, signal, closed }))
      if (isUnder(change, directory)) yield change;
  }

  /** Computes the stamp from the bytes that were read, so that no write can come in between. */
  async #readStamped(path: string, options: Cancel): Promise<StampedBytes> {
    const bytes = await this.#life.run(() => this.#context.reader.read(path, options));
    return { bytes, stamp: stampOf(bytes) };
  }

  /** Yields from `found`; throws CLOSED once the tree is closed. */
  async *#untilClosed<T>(found: AsyncIterable<T>): AsyncGenerator<T> {
    for await (const each of found) {
      this.#life.mustBeOpen();
      yield each;
    }
  }
}

/**
 * Decodes UTF-8. Throws TypeError for other bytes, which would be lost when the text is written
 * back. `forBytes` names the call to use for bytes.
 */
function textOf(path: string, bytes: Uint8Array, forBytes: string): string {
  try {
    return utf8.decode(bytes);
  } catch (cause) {
    throw new TypeError(`${path} is not UTF-8 text. Use ${forBytes}, which returns bytes.`, { cause });
  }
}
