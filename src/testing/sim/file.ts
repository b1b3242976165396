// An open file of the simulated disk.
import { diskError } from "../../ports/disk-error.ts";
import type { DiskFile, FileStat } from "../../ports/disk.ts";
import { statOf, type FileNode } from "../../ports/memory/tree.ts";
import { durability, type Touch } from "./call.ts";
import type { ClientCache } from "./client-cache.ts";
import type { ServerHandle, SimServer } from "./server.ts";

/** An operation on an open file. It looks up no names. */
export interface FileStep<T> {
  readonly name: string;
  readonly path: string;
  readonly touches: () => readonly Touch[];
  readonly run: () => T;
  /** A further effect of a failure. */
  readonly onError?: (() => void) | undefined;
  /** Performs the first half, if the operation does not happen in one step. */
  readonly half?: (() => void) | undefined;
}

export interface SimFileOptions {
  readonly server: SimServer;
  readonly cache: ClientCache;
  readonly process: string;
  readonly node: FileNode;
  readonly path: string;
  readonly isWritable: boolean;
  readonly take: <T>(step: FileStep<T>) => Promise<T>;
}

export class SimFile implements DiskFile {
  readonly node: FileNode;
  readonly #options: SimFileOptions;
  readonly #server: SimServer;
  readonly #handle: ServerHandle;
  readonly #users: Set<() => Promise<void>> = new Set();
  readonly #underWay: Set<Promise<unknown>> = new Set();
  #closing: Promise<void> | undefined;

  constructor(options: SimFileOptions) {
    this.node = options.node;
    this.#options = options;
    this.#server = options.server;
    this.#handle = { process: options.process, file: options.node, unsent: options.cache.unsentTo(options.node) };
    this.#server.handles.add(this.#handle);
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    return await this.#take("read", false, () => this.#seen.bytes.slice(offset, offset + length));
  }

  async write(offset: number, bytes: Uint8Array): Promise<void> {
    if (!this.#options.isWritable) throw diskError("EBADF", "write", this.#options.path);
    const write = (part: Uint8Array): void => {
      if (part.length === 0) return;
      if (this.#isLate) this.#handle.unsent.push({ offset, bytes: part.slice() });
      else this.#server.write(this.node, offset, part);
    };
    const half = (): void => write(bytes.subarray(0, Math.ceil(bytes.length / 2)));
    await this.#take("write", true, () => write(bytes), { half });
  }

  async sync(): Promise<void> {
    // With late writes, others see the content only now.
    await this.#take("sync", this.#isLate ? true : "durability", () => this.#server.sync(this.#handle), {
      onError: () => this.#server.failSync(this.node, this.#handle),
    });
  }

  async stat(): Promise<FileStat> {
    return await this.#take("stat", false, () => {
      this.#server.identify(this.node);
      return statOf(this.#seen);
    });
  }

  /** Registers a user that runs independently: `close` calls `end` and waits for it. */
  use(end: () => Promise<void>): void {
    this.#users.add(end);
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    await Promise.allSettled([...this.#underWay, ...[...this.#users].map((end) => end())]);
    const { path, take } = this.#options;
    await take({
      name: "close",
      path,
      touches: () => [this.#touch(true)],
      run: () => this.#server.closeHandle(this.#handle),
      // The handle is closed even so, and writes that were not sent are lost.
      onError: () => this.#server.dropHandle(this.#handle),
    });
  }

  get #seen(): FileNode {
    return this.#options.cache.seen(this.node);
  }

  get #isLate(): boolean {
    return this.#server.quirks.lateWrites === true;
  }

  async #take<T>(
    name: string,
    changes: boolean | "durability",
    run: () => T,
    more: Pick<FileStep<T>, "onError" | "half"> = {},
  ): Promise<T> {
    const { path, take } = this.#options;
    if (this.#closing !== undefined) throw diskError("EBADF", name, path);
    const touches = (): readonly Touch[] => [changes === "durability" ? durability : this.#touch(changes)];
    const taken = take({ name, path, touches, run, ...more });
    this.#underWay.add(taken);
    try {
      return await taken;
    } finally {
      this.#underWay.delete(taken);
    }
  }

  #touch(changes: boolean): Touch {
    return this.#server.touchOfFile(this.node, this.#options.path, changes);
  }
}
