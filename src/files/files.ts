// The tree as a program holds it: what it calls, in the order in which a call passes through.
import type { Body, Cancel } from "../common.ts";
import { ServerTime } from "../durable/liveness/server-time.ts";
import { holdfastError } from "../errors.ts";
import type { OpenFolder } from "../handoff/foreign/folder.ts";
import type { PathLocks } from "../locks/path/path-locks.ts";
import { followChanges, isUnder } from "./change-log/follow-changes.ts";
import {
  checkAdd,
  checkCancel,
  checkChanges,
  checkFileOptions,
  checkList,
  checkPath,
  checkWrite,
} from "./model/arguments.ts";
import type {
  Added,
  AddOptions,
  Change,
  ChangeContent,
  ChangesOptions,
  FileInfo,
  FileOperations,
  FileOptions,
  ListOptions,
  WriteOptions,
} from "./model/file-tree.ts";
import { noIndex, type IndexQueue } from "./model/index-queue.ts";
import { addDirectory } from "./operations/add.ts";
import { movePath } from "./operations/move.ts";
import { removePath } from "./operations/remove.ts";
import { StagedDirectory } from "./operations/staged-directory.ts";
import { TreeWork } from "./operations/tree-work.ts";
import { updateFile, writeFile } from "./operations/write.ts";
import type { OpenedTree } from "./tree/open-tree.ts";
import { Stamps } from "./tree/stamps.ts";
import type { TreePlace } from "./tree/tree-place.ts";
import { TreeReader } from "./tree/tree-reader.ts";

const timeoutMsDefault = 5_000;

export interface FolderFilesOptions {
  /** Default: no index. */
  readonly queue?: IndexQueue | undefined;
  readonly timeoutMs?: number | undefined;
  /** Without it, staged directories are absolute paths on the disk of the tree. */
  readonly openFolder?: OpenFolder | undefined;
  /** Known-wrong variants, for tests. */
  readonly WorkClass?: typeof TreeWork | undefined;
  readonly StagedClass?: typeof StagedDirectory | undefined;
}

export class FolderFiles implements FileOperations {
  readonly root: string;
  readonly #opened: OpenedTree;
  readonly #place: TreePlace;
  readonly #reader: TreeReader;
  readonly #work: TreeWork;
  readonly #openFolder: OpenFolder;
  readonly #StagedClass: typeof StagedDirectory;
  readonly #closed = new AbortController();
  readonly #underWay = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  constructor(opened: OpenedTree, options: FolderFilesOptions = {}) {
    const { place } = opened;
    const { queue = noIndex, timeoutMs = timeoutMsDefault, WorkClass = TreeWork } = options;
    this.root = place.root;
    this.#opened = opened;
    this.#place = place;
    this.#StagedClass = options.StagedClass ?? StagedDirectory;
    this.#openFolder = options.openFolder ?? (async (path) => ({ path, disk: place.disk }));
    const stamps = new Stamps(place.disk, new ServerTime(place.ground.ports, place.ground.staging));
    this.#reader = new TreeReader(place, stamps, queue);
    this.#work = new WorkClass({ place, reader: this.#reader, queue, timeoutMs });
  }

  async locks(): Promise<PathLocks> {
    this.#mustBeOpen();
    return await this.#place.locks();
  }

  async read(path: string, options: Cancel = {}): Promise<Uint8Array> {
    checkPath("read", "path", path);
    checkCancel("read", options);
    return await this.#run(() => this.#reader.read(path, options));
  }

  async readText(path: string, options: Cancel = {}): Promise<string> {
    return Buffer.from(await this.read(path, options)).toString();
  }

  async stat(path: string): Promise<FileInfo | undefined> {
    checkPath("stat", "path", path);
    return await this.#run(() => this.#reader.stat(path));
  }

  list(under: string = "", options: ListOptions = {}): AsyncGenerator<FileInfo> {
    checkList(under, options);
    this.#mustBeOpen();
    return this.#untilClosed(this.#reader.list(under, options));
  }

  async write(path: string, body: Body, options: WriteOptions = {}): Promise<FileInfo> {
    checkWrite(path, body, options);
    return await this.#run(() => writeFile(this.#work, path, body, options));
  }

  async update(path: string, change: ChangeContent, options: FileOptions = {}): Promise<void> {
    checkPath("update", "path", path);
    if (typeof change !== "function") throw new TypeError("update: change must be a function.");
    checkFileOptions("update", options);
    await this.#run(() => updateFile(this.#work, path, change, options));
  }

  async add(path: string, staged: string, options: AddOptions = {}): Promise<Added> {
    checkAdd(path, staged, options);
    return await this.#run(async () => {
      options.signal?.throwIfAborted();
      const directory = await this.#StagedClass.open(this.#place, staged, this.#openFolder);
      return await addDirectory(this.#work, path, directory, options);
    });
  }

  async remove(path: string, options: FileOptions = {}): Promise<void> {
    checkPath("remove", "path", path);
    checkFileOptions("remove", options);
    await this.#run(() => removePath(this.#work, path, options));
  }

  async move(from: string, to: string, options: FileOptions = {}): Promise<void> {
    checkPath("move", "from", from);
    checkPath("move", "to", to);
    checkFileOptions("move", options);
    await this.#run(() => movePath(this.#work, from, to, options));
  }

  changes(options: ChangesOptions = {}): AsyncGenerator<Change, void, undefined> {
    checkChanges(options);
    this.#mustBeOpen();
    // Asked for now: what changes after this call is told, whenever the caller begins to iterate.
    const after = options.after === undefined ? this.#place.changes.last() : Promise.resolve(options.after);
    after.catch(() => undefined);
    return this.#follow(after, options);
  }

  /** Waits for what is under way, and leaves. */
  async close(): Promise<void> {
    await (this.#closing ??= this.#close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async *#follow(
    after: Promise<number>,
    { under = "", signal }: ChangesOptions,
  ): AsyncGenerator<Change, void, undefined> {
    const { path: directory } = await this.#place.locate(under);
    const { signal: closed } = this.#closed;
    for await (const change of followChanges(this.#place, { after: await after, signal, closed }))
      if (isUnder(change, directory)) yield change;
  }

  /** CLOSED. */
  async *#untilClosed<T>(found: AsyncIterable<T>): AsyncGenerator<T> {
    for await (const each of found) {
      this.#mustBeOpen();
      yield each;
    }
  }

  async #close(): Promise<void> {
    this.#closed.abort(this.#closedError());
    await Promise.allSettled([...this.#underWay]);
    await this.#opened.close();
  }

  async #run<T>(work: () => Promise<T>): Promise<T> {
    this.#mustBeOpen();
    const running = work();
    const ended = running.then(
      () => undefined,
      () => undefined,
    );
    this.#underWay.add(ended);
    void ended.then(() => this.#underWay.delete(ended));
    return await running;
  }

  #mustBeOpen(): void {
    if (this.#closing !== undefined) throw this.#closedError();
  }

  #closedError(): Error {
    return holdfastError("CLOSED", `${this.root} was closed.`, {});
  }
}
