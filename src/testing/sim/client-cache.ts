// What the file system client of one machine remembers of the server, and where that is no longer
// true: the source of every old answer.
import { diskError } from "../../ports/disk-error.ts";
import type { DirectoryNode, FileNode, Place, TreeNode } from "../../ports/memory/tree.ts";
import { nameOf, parentOf, prefixesOf } from "./paths.ts";
import { RememberedFiles } from "./remembered-files.ts";
import type { Quirks, SimServer, UnsentWrite } from "./server.ts";

/** How an operation finds what its paths mean. */
export interface Lookup {
  place(path: string): Place;
  /** Also of the root, which is in no directory. */
  node(path: string): TreeNode;
  directory(path: string): DirectoryNode;
}

export class ClientCache {
  readonly #server: SimServer;
  readonly #quirks: Quirks;
  /** What each directory looked like when this machine last listed it. */
  readonly #listings = new Map<string, readonly string[]>();
  /** Names that were absent when this machine last looked. */
  readonly #absences = new Set<string>();
  /** Names that this machine has opened. */
  readonly #opened = new Set<string>();
  /** The directory that this machine last found under a path. */
  readonly #directories = new Map<string, DirectoryNode>();

  readonly files: RememberedFiles;
  readonly #unsent = new Map<FileNode, UnsentWrite[]>();
  /** Whether it can be wrong at all. */
  readonly mayBeOld: boolean;

  constructor(server: SimServer, quirks: Quirks = server.quirks) {
    const { staleListings, staleAbsence, stalePresence, directoryHandles, fileHandles } = quirks;
    this.#server = server;
    this.#quirks = quirks;
    this.files = new RememberedFiles(server, quirks);
    this.mayBeOld = Boolean(staleListings || staleAbsence || stalePresence || directoryHandles || fileHandles);
  }

  /** Asks the server, and remembers which directories it found. */
  fresh(operation: string): Lookup {
    return new FreshLookup(operation, this.#server, this.#quirks.directoryHandles ? this.#directories : undefined);
  }

  /**
   * Acts in `old`, the directory that was once found under `under`, without asking what is there
   * now.
   */
  through(under: string, old: DirectoryNode, operation: string): Lookup {
    const server = this.#server;
    const place = (path: string): Place =>
      parentOf(path) === under ? { directory: old, name: nameOf(path), path } : server.place(path, operation);
    const node = (path: string): TreeNode => server.tree.node(place(path), operation);
    return {
      place,
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
   * The directory that this machine still takes for the one under `path`, though another is there
   * now, or none.
   */
  findOldDirectory(path: string): DirectoryNode | undefined {
    if (!this.#quirks.directoryHandles) return undefined;
    const remembered = this.#directories.get(path);
    return remembered === undefined || remembered === this.#server.find(path) ? undefined : remembered;
  }

  /** Whether this machine may say, without asking, that `path` is absent although it is there. */
  isWronglyAbsent(path: string): boolean {
    if (!this.#quirks.staleAbsence || this.#server.find(path) === undefined) return false;
    return prefixesOf(path).some((prefix) => this.#absences.has(prefix));
  }

  /**
   * What this machine still takes for what is under `path`, though something else is there now, or
   * nothing.
   */
  findOldNode(path: string): TreeNode | undefined {
    return this.files.findOld(path) ?? this.findOldDirectory(path);
  }

  /**
   * A directory was opened, or looked for in vain: this machine looks up anew what it and the names
   * in it are.
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

  /** Whether this machine may say, without asking, that `path` is there although it is gone. */
  isWronglyPresent(path: string): boolean {
    return this.#opened.has(path) && this.#server.find(path) === undefined;
  }

  /**
   * A request that needed these names, or made those, was answered: from now on this machine
   * believes what was true then.
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

  /** The names of a directory as this machine saw them before, if they are different now. */
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
    // A fresh listing also renews what the client believes of each name in it.
    for (const name of names) this.#absences.delete(path === "/" ? `/${name}` : `${path}/${name}`);
  }

  /** A client adds what it made itself to the listing that it remembers. */
  made(path: string): void {
    const listing = this.#listings.get(parentOf(path));
    const name = nameOf(path);
    if (listing !== undefined && !listing.includes(name)) this.#listings.set(parentOf(path), [...listing, name].sort());
  }

  /** And takes out what it removed itself. */
  removed(path: string): void {
    const listing = this.#listings.get(parentOf(path));
    const name = nameOf(path);
    if (listing !== undefined)
      this.#listings.set(
        parentOf(path),
        listing.filter((other) => other !== name),
      );
  }

  /**
   * What was written to a file on this machine and not yet sent. One list for each file, for ever.
   */
  unsentTo(file: FileNode): UnsentWrite[] {
    const unsent = this.#unsent.get(file) ?? [];
    this.#unsent.set(file, unsent);
    return unsent;
  }

  /** As this machine sees it: what was written here is there, sent or not. */
  seen<T extends TreeNode>(node: T): T {
    const unsent = node.kind === "file" ? this.#unsent.get(node) : undefined;
    if (node.kind !== "file" || unsent === undefined || unsent.length === 0) return node;
    const size = Math.max(node.bytes.length, ...unsent.map(({ offset, bytes }) => offset + bytes.length));
    const bytes = new Uint8Array(size);
    bytes.set(node.bytes);
    for (const write of unsent) bytes.set(write.bytes, write.offset);
    return { ...node, bytes };
  }

  /** Equal for caches that can give the same old answers, now or later. */
  describe(): string {
    const listings = [...this.#listings].map(([path, names]) => `${path}=${names.join()}`).sort();
    const directories = [...this.#directories].map(([path, { ino }]) => `${path}=${ino}`).sort();
    const parts = [listings.join(";"), [...this.#absences].sort().join(), directories.join()];
    return [...parts, [...this.#opened].sort().join(), this.files.describe()].join("|");
  }

  /**
   * Forgets that anything on the way to `path` was absent, as far as it is there; returns the first
   * that is not.
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

  place(path: string): Place {
    this.#remember(parentOf(path));
    return this.#server.place(path, this.#operation);
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
