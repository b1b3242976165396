// What the file system client of one machine has cached of the server, and where that is outdated: the source of
// every stale answer.
import { diskError } from "../../ports/disk-error.ts";
import type { DirectoryNode, FileNode, DirectoryEntry, TreeNode } from "../../ports/memory/tree.ts";
import { nameOf, parentOf, prefixesOf } from "./paths.ts";
import { RememberedFiles } from "./remembered-files.ts";
import type { ServerQuirks, SimServer, UnsentWrite } from "./server.ts";

/** How an operation resolves its paths. */
export interface Lookup {
  entry(path: string): DirectoryEntry;
  /** Also resolves the root, which is in no directory. */
  node(path: string): TreeNode;
  directory(path: string): DirectoryNode;
}

export class ClientCache {
  readonly #server: SimServer;
  readonly #quirks: ServerQuirks;
  /** The content of each directory when this machine last listed it. */
  readonly #listings = new Map<string, readonly string[]>();
  /** Names that did not exist when this machine last checked. */
  readonly #absences = new Set<string>();
  /** Names that this machine has opened. */
  readonly #opened = new Set<string>();
  /** The directory that this machine last found under each path. */
  readonly #directories = new Map<string, DirectoryNode>();

  readonly files: RememberedFiles;
  readonly #unsent = new Map<FileNode, UnsentWrite[]>();
  /** True if it can be wrong at all. */
  readonly mayBeOld: boolean;

  constructor(server: SimServer, quirks: ServerQuirks = server.quirks) {
    const { staleListings, staleAbsence, stalePresence, directoryHandles, fileHandles } = quirks;
    this.#server = server;
    this.#quirks = quirks;
    this.files = new RememberedFiles(server, quirks);
    this.mayBeOld = Boolean(staleListings || staleAbsence || stalePresence || directoryHandles || fileHandles);
  }

  /** Asks the server, and remembers the directories that it found. */
  fresh(operation: string): Lookup {
    return new FreshLookup(operation, this.#server, this.#quirks.directoryHandles ? this.#directories : undefined);
  }

  /** Resolves paths in `old`, a directory that was once found under `under`, without asking what is there now. */
  through(under: string, old: DirectoryNode, operation: string): Lookup {
    const server = this.#server;
    const entry = (path: string): DirectoryEntry =>
      parentOf(path) === under ? { directory: old, name: nameOf(path), path } : server.entry(path, operation);
    const node = (path: string): TreeNode => server.tree.node(entry(path), operation);
    return {
      entry,
      node,
      directory: (path) => {
        if (path === under) return old;
        const found = node(path);
        if (found.kind !== "directory") throw diskError("ENOTDIR", operation, path);
        return found;
      },
    };
  }

  /**
   * Returns the directory that this machine still believes to be under `path`, although another one is there now, or
   * none.
   */
  findOldDirectory(path: string): DirectoryNode | undefined {
    if (!this.#quirks.directoryHandles) return undefined;
    const remembered = this.#directories.get(path);
    return remembered === undefined || remembered === this.#server.find(path) ? undefined : remembered;
  }

  /** True if this machine may answer from its cache that `path` does not exist, although it does. */
  isWronglyAbsent(path: string): boolean {
    if (!this.#quirks.staleAbsence || this.#server.find(path) === undefined) return false;
    return prefixesOf(path).some((prefix) => this.#absences.has(prefix));
  }

  /**
   * Returns the node that this machine still believes to be under `path`, although another one is there now, or none.
   */
  findOldNode(path: string): TreeNode | undefined {
    return this.files.findOld(path) ?? this.findOldDirectory(path);
  }

  /**
   * A directory was opened, or searched in vain. From now on this machine asks the server again about it and the
   * names in it.
   */
  asked(path: string): void {
    this.files.asked(path);
    const found = this.#server.find(path);
    if (found?.kind !== "directory") this.#directories.delete(path);
    else if (this.#quirks.directoryHandles) this.#directories.set(path, this.#server.identify(found));
  }

  opened(path: string): void {
    if (this.#quirks.stalePresence) this.#opened.add(path);
  }

  /** True if this machine may answer from its cache that `path` exists, although it was removed. */
  isWronglyPresent(path: string): boolean {
    return this.#opened.has(path) && this.#server.find(path) === undefined;
  }

  /**
   * A request that needed or created these names was answered. From now on this machine believes the state at that
   * time.
   */
  learn(needed: readonly string[], made: readonly string[]): void {
    if (!this.#quirks.staleAbsence) return;
    for (const path of needed) {
      const missing = this.#believePresent(path);
      if (missing !== undefined) this.#absences.add(missing);
    }
    // A failed creation does not prove that the name is absent: no client remembers it.
    for (const path of made) this.#believePresent(path);
  }

  /** Returns the names of a directory as this machine last saw them, if they are different now. */
  findOldListing(path: string): readonly string[] | undefined {
    const remembered = this.#listings.get(path);
    if (!this.#quirks.staleListings || remembered === undefined) return undefined;
    const found = this.#server.find(path);
    // If the directory is gone, its old listing is what a cache still shows.
    const isTrue = found?.kind === "directory" && [...found.entries.keys()].sort().join("/") === remembered.join("/");
    return isTrue ? undefined : remembered;
  }

  listed(path: string, names: readonly string[]): void {
    if (this.#quirks.staleListings) this.#listings.set(path, names);
    // A fresh listing also renews what the client has cached about each name in it.
    for (const name of names) this.#absences.delete(path === "/" ? `/${name}` : `${path}/${name}`);
  }

  /** A client adds names that it created itself to its cached listing. */
  made(path: string): void {
    const listing = this.#listings.get(parentOf(path));
    const name = nameOf(path);
    if (listing !== undefined && !listing.includes(name)) this.#listings.set(parentOf(path), [...listing, name].sort());
  }

  /** A client removes names that it removed itself. */
  removed(path: string): void {
    const listing = this.#listings.get(parentOf(path));
    const name = nameOf(path);
    if (listing !== undefined)
      this.#listings.set(
        parentOf(path),
        listing.filter((other) => other !== name),
      );
  }

  /** Returns the writes to a file on this machine that were not sent yet: one list per file, always the same. */
  unsentTo(file: FileNode): UnsentWrite[] {
    const unsent = this.#unsent.get(file) ?? [];
    this.#unsent.set(file, unsent);
    return unsent;
  }

  /** Returns the node as this machine sees it, including writes that were not sent yet. */
  seen<T extends TreeNode>(node: T): T {
    const unsent = node.kind === "file" ? this.#unsent.get(node) : undefined;
    if (node.kind !== "file" || unsent === undefined || unsent.length === 0) return node;
    const size = Math.max(node.bytes.length, ...unsent.map(({ offset, bytes }) => offset + bytes.length));
    const bytes = new Uint8Array(size);
    bytes.set(node.bytes);
    for (const write of unsent) bytes.set(write.bytes, write.offset);
    return { ...node, bytes };
  }

  /** Returns a text that is equal for caches that can give the same stale answers, now or later. */
  describe(): string {
    const listings = [...this.#listings].map(([path, names]) => `${path}=${names.join()}`).sort();
    const directories = [...this.#directories].map(([path, { ino }]) => `${path}=${ino}`).sort();
    const parts = [listings.join(";"), [...this.#absences].sort().join(), directories.join()];
    return [...parts, [...this.#opened].sort().join(), this.files.describe()].join("|");
  }

  /**
   * Forgets cached absences of `path` and the directories above it, as far as they exist. Returns the first that does
   * not.
   */
  #believePresent(path: string): string | undefined {
    for (const prefix of prefixesOf(path)) {
      if (this.#server.find(prefix) === undefined) return prefix;
      this.#absences.delete(prefix);
    }
    return undefined;
  }
}

class FreshLookup implements Lookup {
  readonly #operation: string;
  readonly #server: SimServer;
  readonly #directories: Map<string, DirectoryNode> | undefined;

  constructor(operation: string, server: SimServer, directories: Map<string, DirectoryNode> | undefined) {
    this.#operation = operation;
    this.#server = server;
    this.#directories = directories;
  }

  entry(path: string): DirectoryEntry {
    this.#remember(parentOf(path));
    return this.#server.entry(path, this.#operation);
  }

  node(path: string): TreeNode {
    this.#remember(parentOf(path));
    return this.#server.node(path, this.#operation);
  }

  directory(path: string): DirectoryNode {
    this.#remember(path);
    return this.#server.directory(path, this.#operation);
  }

  #remember(path: string): void {
    if (this.#directories === undefined) return;
    const now = this.#server.find(path);
    if (now?.kind === "directory") this.#directories.set(path, this.#server.identify(now));
    else this.#directories.delete(path);
  }
}
