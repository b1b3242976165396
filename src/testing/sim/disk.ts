// The simulated disk as one process sees it through its machine. Every call parks, and may end in any way that the
// quirks allow.
import { diskError, findIfThere, hasErrno } from "../../ports/disk-error.ts";
import type { CreateFileOptions, Disk, FileStat } from "../../ports/disk.ts";
import { statOf, type FileNode } from "../../ports/memory/tree.ts";
import { durability, type Park, type Touch } from "./call.ts";
import type { ClientCache } from "./client-cache.ts";
import { DiskCall, type DiskCallContext, type DiskOperation, type InjectedErrors } from "./disk-call.ts";
import { SimFile, type FileStep } from "./file.ts";
import { parentOf } from "./paths.ts";
import type { Machine } from "./machine.ts";
import type { SimServer } from "./server.ts";

export interface SimDiskOptions {
  readonly server: SimServer;
  readonly machine: Machine;
  readonly process: string;
  readonly park: Park;
  readonly errors?: InjectedErrors | undefined;
  /** True for names that are never removed or replaced once they exist. If one is, the scenario is wrong. */
  readonly isPermanent?: ((path: string) => boolean) | undefined;
  /** Called with such an error, because the code under test may swallow it. */
  readonly onImpermanence?: ((what: string) => void) | undefined;
}

export type { InjectedErrors } from "./disk-call.ts";

export function createSimDisk(options: SimDiskOptions): SimDisk {
  return new SimDisk(options);
}

export class SimDisk implements Disk {
  readonly #options: SimDiskOptions;
  readonly #server: SimServer;
  readonly #cache: ClientCache;
  readonly #context: DiskCallContext;

  constructor(options: SimDiskOptions) {
    const { server, machine, errors, isPermanent } = options;
    this.#options = options;
    this.#server = server;
    this.#cache = machine.cacheOf(server);
    this.#context = { server, cache: this.#cache, errors, isPermanent };
  }

  get volume(): Disk["volume"] {
    return this.#options.machine.volumeOf(this.#server);
  }

  async createFile(path: string, bytes: Uint8Array, { sync }: CreateFileOptions): Promise<void> {
    // Three steps, as in reality: a crash between them leaves an empty file, or content that is not durable.
    const node = await this.#create(path);
    const touches = (): Touch[] => [this.#server.touchOfFile(node, path, true)];
    if (bytes.length > 0)
      await this.#take({
        name: "write",
        path,
        touches,
        run: () => this.#server.write(node, 0, bytes),
        half: () => this.#server.write(node, 0, bytes.subarray(0, Math.ceil(bytes.length / 2))),
      });
    if (!sync) return;
    await this.#take({
      name: "sync",
      path,
      touches: () => [durability],
      run: () => this.#server.syncFile(node),
      onError: () => this.#server.failSync(node),
    });
  }

  async readFile(path: string, bytesMax: number): Promise<Uint8Array> {
    const bytes = await this.#do({
      name: "read",
      detail: path,
      touches: [this.#looks(path)],
      needs: [path],
      settledBy: path,
      run: (at) => {
        const node = at.node(path);
        if (node.kind === "directory") throw diskError("EISDIR", "read", path);
        this.#server.mustBeSharedWith(this.#options.process, node, "read", path);
        return this.#cache.seen(node).bytes;
      },
      onOldFile: { path, run: (file) => file.bytes },
    });
    if (bytes.length > bytesMax) throw diskError("EFBIG", "read", path);
    // A copy: the caller may change it, but all nodes share the content of a file, which must never change.
    return bytes.slice();
  }

  async canOpen(path: string): Promise<boolean> {
    try {
      await this.#do({
        name: "can open",
        detail: path,
        touches: [this.#looks(path)],
        needs: [path],
        settledBy: path,
        run: (at) => {
          this.#cache.asked(path);
          at.node(path);
          this.#cache.opened(path);
        },
        onOldFile: { path, run: () => undefined },
        remembered: () => (this.#cache.isWronglyPresent(path) ? { answer: undefined } : undefined),
      });
      return true;
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ENOTDIR", "ESTALE")) return false;
      throw error;
    }
  }

  async open(path: string, mode: "read" | "write" | "create"): Promise<SimFile> {
    if (mode === "create") return this.#openFile(await this.#create(path), path, true);
    const node = await this.#do({
      name: "open",
      detail: path,
      // While it is open, others may not be able to rename or remove it.
      touches: [this.#isNoticed ? this.#changes(path) : this.#looks(path)],
      needs: [path],
      run: (at) => {
        const file = this.#server.tree.file(at.entry(path), "open");
        this.#server.mustBeSharedWith(this.#options.process, file, "open", path);
        return file;
      },
    });
    return this.#openFile(node, path, mode === "write");
  }

  /** Opens a file as the OS lock does: creates it if it does not exist. */
  async openOrCreate(path: string): Promise<SimFile> {
    const node = await this.#do({
      name: "open lock",
      detail: path,
      touches: [this.#changes(path)],
      makes: [path],
      run: (at) => {
        const entry = at.entry(path);
        const isThere = entry.directory.entries.has(entry.name);
        return isThere ? this.#server.tree.file(entry, "open") : this.#server.create(entry, "open");
      },
    });
    return this.#openFile(node, path, true);
  }

  async link(from: string, to: string): Promise<void> {
    await this.#do({
      name: "link",
      detail: `${from} → ${to}`,
      touches: [this.#looks(from), this.#changes(to)],
      needs: [from],
      makes: [to],
      repeated: "EEXIST",
      settledBy: this.#server.quirks.linkReplaces ? undefined : to,
      run: (at) => this.#server.link(at.entry(from), at.entry(to)),
      onOldFile: {
        path: from,
        run: (file, at) => this.#server.link(at.entry(this.#server.nameOf(file) ?? from), at.entry(to)),
      },
    });
  }

  async rename(from: string, to: string): Promise<void> {
    this.#mustNotBePermanent(from);
    await this.#do({
      name: "rename",
      detail: `${from} → ${to}`,
      touches: [this.#changes(from), this.#changes(to)],
      needs: [from],
      makes: [to],
      removes: [from],
      repeated: "ENOENT",
      run: (at) => {
        if (this.#server.find(to) !== undefined) this.#mustNotBePermanent(to);
        this.#server.rename(at.entry(from), at.entry(to));
      },
      half: this.#server.quirks.renameVacates ? () => this.#vacate(from, to) : undefined,
    });
  }

  #vacate(from: string, to: string): void {
    const [source, target] = [this.#server.find(from), this.#server.find(to)];
    if (source?.kind === "file" && target?.kind === "file" && source !== target)
      this.#server.unlink(this.#server.entry(to, "rename"));
  }

  async unlink(path: string): Promise<void> {
    this.#mustNotBePermanent(path);
    await this.#do({
      name: "unlink",
      detail: path,
      touches: [this.#changes(path)],
      needs: [path],
      removes: [path],
      repeated: "ENOENT",
      run: (at) => this.#server.unlink(at.entry(path)),
    });
  }

  async mkdir(path: string): Promise<void> {
    await this.#do({
      name: "mkdir",
      detail: path,
      touches: [this.#changes(path)],
      makes: [path],
      repeated: "EEXIST",
      run: (at) => this.#server.mkdir(at.entry(path)),
    });
  }

  async rmdir(path: string): Promise<void> {
    this.#mustNotBePermanent(path);
    await this.#do({
      name: "rmdir",
      detail: path,
      touches: [this.#changes(path)],
      needs: [path],
      removes: [path],
      repeated: "ENOENT",
      run: (at) => this.#server.rmdir(at.entry(path)),
    });
  }

  async list(path: string): Promise<string[]> {
    return await this.listSome(path, Infinity);
  }

  async listSome(path: string, count: number): Promise<string[]> {
    const names = await this.#do({
      name: "list",
      detail: path,
      touches: [this.#looks(path)],
      needs: [path],
      directory: path,
      run: (at) => {
        const names = [...at.directory(path).entries.keys()].sort();
        this.#cache.listed(path, names);
        this.#cache.files.asked(path);
        return [...names];
      },
      remembered: () => {
        const names = this.#cache.findOldListing(path);
        return names === undefined ? undefined : { answer: [...names] };
      },
    });
    return names.slice(0, count);
  }

  async stat(path: string): Promise<FileStat> {
    return await this.#do({
      name: "stat",
      detail: path,
      touches: [this.#looks(path)],
      needs: [path],
      run: (at) => statOf(this.#cache.seen(this.#server.identify(at.node(path)))),
      remembered: () => {
        const old = this.#cache.findOldNode(path);
        return old === undefined ? undefined : { answer: statOf(old) };
      },
    });
  }

  async findStat(path: string): Promise<FileStat | undefined> {
    return await findIfThere(this.stat(path));
  }

  async look(path: string): Promise<FileStat> {
    return await this.#do({
      name: "look",
      detail: path,
      touches: [this.#looks(path)],
      needs: [path],
      isFresh: true,
      run: (at) => {
        this.#cache.asked(parentOf(path));
        this.#cache.asked(path);
        return statOf(this.#cache.seen(this.#server.identify(at.node(path))));
      },
    });
  }

  /** This disk has no symbolic links. */
  async realPath(path: string): Promise<string> {
    await this.#lookAt("resolve", path);
    return path;
  }

  async hasLink(): Promise<boolean> {
    return false;
  }

  async readLink(path: string): Promise<string> {
    await this.#lookAt("read link", path);
    throw diskError("EINVAL", "read link", path);
  }

  async syncDirectory(path: string): Promise<string | void> {
    let identity: string | undefined;
    await this.#do({
      name: "sync directory",
      detail: path,
      // Depends on whether the directory exists, not on its content: another process may have removed it.
      touches: this.#options.isPermanent?.(path) ? [durability] : [durability, this.#looks(`${path}/(itself)`)],
      needs: [path],
      directory: path,
      run: (at) => {
        const directory = at.directory(path);
        this.#server.syncDirectory(directory, path);
        identity = String(directory.ino);
      },
    });
    return identity;
  }

  async #lookAt(name: string, path: string): Promise<void> {
    const touches = [this.#looks(path)];
    await this.#do({ name, detail: path, touches, needs: [path], run: (at) => void at.node(path) });
  }

  async #create(path: string): Promise<FileNode> {
    const node = await this.#do({
      name: "create",
      detail: path,
      touches: [this.#changes(path)],
      makes: [path],
      repeated: "EEXIST",
      run: (at) => this.#server.create(at.entry(path), "create"),
    });
    const touches = (): Touch[] => [this.#server.touchOfFile(node, path, true)];
    if (this.#server.quirks.lateStamps)
      await this.#take({ name: "stamp", path, touches, run: () => this.#server.stamp(node) });
    return node;
  }

  #openFile(node: FileNode, path: string, isWritable: boolean): SimFile {
    return new SimFile({
      server: this.#server,
      cache: this.#cache,
      process: this.#options.process,
      node,
      path,
      isWritable,
      take: (step) => this.#take(step),
    });
  }

  async #take<T>({ path, ...step }: FileStep<T>): Promise<T> {
    return await this.#do({ ...step, detail: path });
  }

  #do<T>(operation: DiskOperation<T>): Promise<T> {
    return this.#options.park(new DiskCall(operation, this.#context));
  }

  get #isNoticed(): boolean {
    const { pendingDeletes, busyRenames, unshared } = this.#server.quirks;
    return Boolean(pendingDeletes || busyRenames || unshared);
  }

  #mustNotBePermanent(path: string): void {
    if (!this.#options.isPermanent?.(path)) return;
    const what = `The scenario says that ${path} is permanent, but it is removed or replaced.`;
    this.#options.onImpermanence?.(what);
    throw new Error(what);
  }

  #looks(path: string): Touch {
    return this.#server.touch(path, false);
  }

  #changes(path: string): Touch {
    return this.#server.touch(path, true);
  }
}
