// The simulated disk as one process sees it through its machine: every call parks, and may end in each of the ways that the quirks allow.
import { diskError, hasErrno } from "../../ports/disk-error.ts";
import type { Disk, DiskFile } from "../../ports/disk.ts";
import { statOf } from "../../ports/memory/disk.ts";
import type { DirectoryNode, FileNode, Place } from "../../ports/memory/tree.ts";
import { durabilityTouch, type Outcome, type Park, type Touch } from "./call.ts";
import type { Machine } from "./machine.ts";
import type { Handle, SimServer } from "./server.ts";

/** Which failures may be injected, and into which operations (all, when none are named). */
export interface InjectedErrors {
  readonly errnos: readonly string[];
  readonly operations?: readonly string[];
}

export interface SimDiskOptions {
  readonly server: SimServer;
  readonly machine: Machine;
  readonly process: string;
  readonly park: Park;
  readonly errors?: InjectedErrors | undefined;
  /** Names that are never removed or replaced once they are there. It is an error of the scenario if one is. */
  readonly isPermanent?: ((path: string) => boolean) | undefined;
}

export function createSimDisk(options: SimDiskOptions): Disk {
  return new SimDisk(options);
}

interface Operation<T> {
  readonly name: string;
  readonly detail: string;
  readonly touches: readonly Touch[];
  readonly run: () => T;
  /** What a client hears that repeats the request after it was done; undefined for operations that may be repeated. */
  readonly repeated?: string;
  /** Other answers that this client may give at this moment, from what it remembers. */
  readonly stale?: () => readonly Outcome<T>[];
  /** What else a failure does. */
  readonly onError?: () => void;
  /** Its answer is settled once this name is there, if that name is permanent. */
  readonly settledBy?: string;
}

class SimDisk implements Disk {
  readonly #options: SimDiskOptions;
  readonly #server: SimServer;
  readonly #machine: Machine;

  constructor(options: SimDiskOptions) {
    this.#options = options;
    this.#server = options.server;
    this.#machine = options.machine;
  }

  get volume(): Disk["volume"] {
    return this.#server.volume;
  }

  async createFile(path: string, bytes: Uint8Array, { sync }: { readonly sync: boolean }): Promise<void> {
    // Three steps, as in reality: a crash between them leaves an empty file, or content that is not durable.
    const file = await this.#do({
      name: "create",
      detail: path,
      touches: [changes(path)],
      repeated: "EEXIST",
      run: () => this.#server.create(this.#place(path, "create"), "create"),
      stale: () => this.#throughOldDirectory(path, "create", (place) => this.#server.create(place, "create")),
    });
    this.#sawPresent(path);
    if (bytes.length > 0)
      await this.#do({
        name: "write",
        detail: path,
        touches: [changes(path)],
        run: () => this.#server.write(file, 0, bytes),
      });
    if (sync) await this.#syncFile(file, path);
  }

  async readFile(path: string, bytesMax: number): Promise<Uint8Array> {
    const bytes = await this.#do({
      name: "read",
      detail: path,
      touches: [looks(path)],
      settledBy: path,
      run: () => this.#look(path, "read", () => this.#server.tree.file(this.#place(path, "read"), "read").bytes),
      stale: () => this.#rememberedAbsence(path, "read"),
    });
    if (bytes.length > bytesMax) throw diskError("EFBIG", "read", path);
    return bytes;
  }

  async canOpen(path: string): Promise<boolean> {
    try {
      await this.#do({
        name: "can open",
        detail: path,
        touches: [looks(path)],
        settledBy: path,
        run: () => this.#look(path, "open", () => this.#server.tree.node(this.#place(path, "open"), "open")),
        stale: () => this.#rememberedAbsence(path, "open"),
      });
      return true;
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ENOTDIR", "ESTALE")) return false;
      throw error;
    }
  }

  async open(path: string, mode: "read" | "write" | "create"): Promise<DiskFile> {
    const create = mode === "create";
    const file = await this.#do({
      name: create ? "create" : "open",
      detail: path,
      touches: [create ? changes(path) : looks(path)],
      ...(create ? { repeated: "EEXIST" } : {}),
      run: () => {
        if (create) return this.#server.create(this.#place(path, "open"), "open");
        return this.#look(path, "open", () => this.#server.tree.file(this.#place(path, "open"), "open"));
      },
      stale: () => (create ? [] : this.#rememberedAbsence(path, "open")),
    });
    this.#sawPresent(path);
    return this.#openFile(file, path);
  }

  async link(from: string, to: string): Promise<void> {
    await this.#do({
      name: "link",
      detail: `${from} → ${to}`,
      touches: [looks(from), changes(to)],
      settledBy: to,
      repeated: "EEXIST",
      run: () => this.#server.link(this.#place(from, "link"), this.#place(to, "link")),
      stale: () =>
        this.#throughOldDirectory(to, "link", (place) => this.#server.link(this.#place(from, "link"), place)),
    });
    this.#sawPresent(to);
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#do({
      name: "rename",
      detail: `${from} → ${to}`,
      touches: [changes(from), changes(to)],
      repeated: "ENOENT",
      run: () => this.#server.rename(this.#place(from, "rename"), this.#place(to, "rename")),
      stale: () => [
        ...this.#throughOldDirectory(to, "rename", (place) => this.#server.rename(this.#place(from, "rename"), place)),
        ...this.#throughOldDirectory(from, "rename", (place) => this.#server.rename(place, this.#place(to, "rename"))),
      ],
    });
    this.#sawPresent(to);
  }

  async unlink(path: string): Promise<void> {
    if (this.#options.isPermanent?.(path))
      throw new Error(`The scenario says that ${path} is permanent, but it is removed.`);
    await this.#do({
      name: "unlink",
      detail: path,
      touches: [changes(path)],
      repeated: "ENOENT",
      run: () => this.#server.unlink(this.#place(path, "unlink")),
    });
  }

  async mkdir(path: string): Promise<void> {
    await this.#do({
      name: "mkdir",
      detail: path,
      touches: [changes(path)],
      repeated: "EEXIST",
      run: () => this.#server.mkdir(this.#place(path, "mkdir")),
    });
    this.#sawPresent(path);
  }

  async rmdir(path: string): Promise<void> {
    await this.#do({
      name: "rmdir",
      detail: path,
      touches: [changes(path)],
      repeated: "ENOENT",
      run: () => this.#server.rmdir(this.#place(path, "rmdir")),
    });
  }

  async list(path: string): Promise<string[]> {
    return await this.#do({
      name: "list",
      detail: path,
      touches: [looks(path)],
      run: () => {
        const names = [...this.#server.tree.directory(this.#folded(path), "list").entries.keys()].sort();
        if (this.#server.quirks.staleListings) this.#machine.listings.set(path, names);
        // A fresh listing also renews what the client believes of each name in it.
        for (const name of names) this.#machine.absences.delete(`${path}/${name}`);
        return names;
      },
      stale: () => this.#rememberedListing(path),
    });
  }

  async stat(path: string): Promise<ReturnType<typeof statOf>> {
    return await this.#do({
      name: "stat",
      detail: path,
      touches: [looks(path)],
      run: () => this.#look(path, "stat", () => statOf(this.#server.tree.node(this.#place(path, "stat"), "stat"))),
      stale: () => this.#rememberedAbsence(path, "stat"),
    });
  }

  async syncDirectory(path: string): Promise<void> {
    await this.#do({
      name: "sync directory",
      detail: path,
      touches: [durability],
      run: () => this.#server.syncDirectory(this.#server.tree.directory(this.#folded(path), "sync"), path),
    });
  }

  async #syncFile(file: FileNode, path: string): Promise<void> {
    await this.#do({
      name: "sync",
      detail: path,
      touches: [durability],
      run: () => this.#server.syncFile(file),
      onError: () => this.#server.failSync(file),
    });
  }

  #openFile(file: FileNode, path: string): DiskFile {
    const server = this.#server;
    const late = server.quirks.lateWrites === true;
    const handle: Handle = { process: this.#options.process, file, buffered: [] };
    server.handles.add(handle);
    const step = <T>(name: string, touch: Touch, run: () => T, onError?: () => void): Promise<T> =>
      this.#do({ name, detail: path, touches: [touch], run, ...(onError ? { onError } : {}) });
    return {
      read: (offset, length) => step("read", looks(path), () => withBuffered(handle).slice(offset, offset + length)),
      write: (offset, bytes) =>
        step("write", changes(path), () => {
          if (late) handle.buffered.push({ offset, bytes });
          else server.write(file, offset, bytes);
        }),
      sync: () =>
        step(
          "sync",
          late ? changes(path) : durability,
          () => {
            server.flush(handle);
            server.syncFile(file);
          },
          () => server.failSync(file),
        ),
      stat: () => step("stat", looks(path), () => statOf(file)),
      close: async () => {
        if (server.handles.has(handle)) await step("close", changes(path), () => server.closeHandle(handle));
      },
    };
  }

  async #do<T>(operation: Operation<T>): Promise<T> {
    const { errors, park, isPermanent } = this.#options;
    const { settledBy } = operation;
    return await park({
      operation: operation.name,
      detail: operation.detail,
      touches: operation.touches,
      ...(settledBy !== undefined && isPermanent?.(settledBy) ? { isSettled: () => this.#exists(settledBy) } : {}),
      outcomes: () => {
        const outcomes: Outcome<T>[] = [{ label: "", run: operation.run }, ...(operation.stale?.() ?? [])];
        outcomes.push(...lostReplies(operation));
        if (errors !== undefined && (errors.operations?.includes(operation.name) ?? true))
          for (const errno of errors.errnos) outcomes.push(injected(operation, errno));
        return outcomes;
      },
    });
  }

  #place(path: string, operation: string): Place {
    const place = this.#server.tree.place(this.#folded(path), operation);
    if (this.#server.quirks.directoryHandles) this.#machine.directories.set(parentOf(path), place.directory);
    return { ...place, path };
  }

  #folded(path: string): string {
    return this.#server.quirks.caseInsensitive ? path.toLowerCase() : path;
  }

  /** Looks at the server, and remembers when the name was not there. */
  #look<T>(path: string, operation: string, look: () => T): T {
    try {
      return look();
    } catch (error) {
      if (this.#server.quirks.staleAbsence && hasErrno(error, "ENOENT")) this.#machine.absences.add(path);
      throw error;
    }
  }

  #sawPresent(path: string): void {
    this.#machine.absences.delete(path);
    this.#machine.listings.delete(parentOf(path));
  }

  #rememberedAbsence(path: string, operation: string): Outcome<never>[] {
    if (!this.#server.quirks.staleAbsence || !this.#machine.absences.has(path) || !this.#exists(path)) return [];
    const run = (): never => {
      throw diskError("ENOENT", operation, path);
    };
    return [{ label: "absent, from the cache", trouble: "stale", run }];
  }

  #rememberedListing(path: string): Outcome<string[]>[] {
    const remembered = this.#machine.listings.get(path);
    if (!this.#server.quirks.staleListings || remembered === undefined) return [];
    try {
      const now = [...this.#server.tree.directory(this.#folded(path), "list").entries.keys()].sort();
      if (now.join("/") === remembered.join("/")) return [];
    } catch {
      // The directory is gone: its old listing is what a cache would still show.
    }
    return [{ label: "from the cache", trouble: "stale", run: () => [...remembered] }];
  }

  #throughOldDirectory<T>(path: string, operation: string, run: (place: Place) => T): Outcome<T>[] {
    if (!this.#server.quirks.directoryHandles) return [];
    const remembered = this.#machine.directories.get(parentOf(path));
    if (remembered === undefined || remembered === this.#directoryNow(parentOf(path))) return [];
    const place: Place = { directory: remembered, name: path.slice(path.lastIndexOf("/") + 1), path };
    return [
      {
        label: "through the directory found before",
        trouble: "stale",
        run: () => {
          if (remembered.removed && remembered.entries.size === 0 && !this.#isReachable(remembered))
            throw diskError("ESTALE", operation, path);
          return run(place);
        },
      },
    ];
  }

  #exists(path: string): boolean {
    try {
      this.#server.tree.node(this.#server.tree.place(this.#folded(path), "stat"), "stat");
      return true;
    } catch {
      return false;
    }
  }

  #directoryNow(path: string): DirectoryNode | undefined {
    try {
      return this.#server.tree.directory(this.#folded(path), "stat");
    } catch {
      return undefined;
    }
  }

  #isReachable(directory: DirectoryNode, from: DirectoryNode = this.#server.tree.root): boolean {
    if (from === directory) return true;
    for (const node of from.entries.values())
      if (node.kind === "directory" && this.#isReachable(directory, node)) return true;
    return false;
  }
}

/** The operation is done, but the process does not hear of it, or hears what a repeated request was told. */
function lostReplies<T>({ name, detail, repeated, run }: Operation<T>): Outcome<T>[] {
  if (repeated === undefined) return [];
  const thenFail = (errno: string) => (): T => {
    run();
    throw diskError(errno, name, detail);
  };
  return [
    { label: "done, but the reply is lost", trouble: "lostReply", run: thenFail("EIO") },
    { label: "done, and the repeated request fails", trouble: "retransmit", run: thenFail(repeated) },
  ];
}

function injected<T>({ name, detail, onError }: Operation<T>, errno: string): Outcome<T> {
  return {
    label: errno,
    trouble: "error",
    run: () => {
      onError?.();
      throw diskError(errno, name, detail);
    },
  };
}

function withBuffered(handle: Handle): Uint8Array {
  let { bytes } = handle.file;
  for (const { offset, bytes: part } of handle.buffered) {
    const result = new Uint8Array(Math.max(bytes.length, offset + part.length));
    result.set(bytes);
    result.set(part, offset);
    bytes = result;
  }
  return bytes;
}

const durability: Touch = { what: durabilityTouch, changes: true };

function looks(path: string): Touch {
  return { what: path, changes: false };
}

function changes(path: string): Touch {
  return { what: path, changes: true };
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(1, path.lastIndexOf("/")));
}
