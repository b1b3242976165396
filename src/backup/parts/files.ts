// Copies a tree of files, with its change log and its sessions.
import type { Ground } from "../../durable/liveness/ground.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { FilesLayout } from "../../files/tree/layout.ts";
import type { PathLocks } from "../../locks/path/path-locks.ts";
import { inParallel } from "../../durable/wait/in-parallel.ts";
import { findIfThere, hasErrno } from "../../ports/disk-error.ts";
import type { Entry } from "../model.ts";
import { readsAtOnce, type Copier } from "../write/copier.ts";

/** How long a backup waits for programs that hold locks. */
const lockTimeoutMs = 600_000;

/** What a walk found. */
interface Walk {
  readonly files: string[];
  /** By path: directories, and links with their targets. */
  readonly others: Map<string, Entry>;
}

export class FilesCopy {
  readonly #copier: Copier;
  readonly #ground: Ground;
  readonly #locks: PathLocks;

  constructor(copier: Copier, ground: Ground, locks: PathLocks) {
    this.#copier = copier;
    this.#ground = ground;
    this.#locks = locks;
  }

  /**
   * Copies the tree twice: first while programs change it, then, under a shared lock on all of it, what has changed
   * since. So programs wait only while every file is checked again, and the copy is the tree at one moment.
   */
  async copy(signal: AbortSignal | undefined): Promise<void> {
    await this.#copyTree();
    const options = { mode: "tree", shared: true, tag: "backup", timeoutMs: lockTimeoutMs, signal } as const;
    await using hold = await this.#locks.acquire("", options);
    const walk = await this.#copyTree();
    this.#dropGone(walk);
    for (const path of walk.files)
      if (this.#copier.torn.has(path)) this.#problem(`${path} may be torn: it changed each time it was read.`);
    // Nobody can announce a change while the lock is held. So the log has exactly the changes of this copy, and those
    // that were announced and never made.
    await this.#copyChanges();
    await hold.assertHeld();
  }

  /** Copies the sessions, the names of the user's functions, and what was given up. */
  async copySessions(): Promise<void> {
    const { sessions, directory } = this.#layout;
    for (const name of await this.#copier.names(this.#below(sessions)))
      // Archives first: what they name was there before.
      for (const chain of ["archives", "messages"]) {
        const path = `${this.#below(sessions)}/${name}/${chain}`;
        await this.#copier.copyAll((await this.#copier.slots(path)).map((number) => `${path}/${number}`));
      }
    for (const room of ["functions", "aside"]) {
      const path = `${this.#below(directory)}/${room}`;
      await this.#copier.copyAll((await this.#copier.names(path)).map((name) => `${path}/${name}`));
    }
  }

  /** The path of its queue, a box, in the store. */
  get queue(): string {
    return this.#below(this.#layout.queue);
  }

  async #copyTree(): Promise<Walk> {
    const walk: Walk = { files: [], others: new Map() };
    await this.#walk("files", walk);
    for (const entry of walk.others.values()) this.#copier.writer.add(entry);
    const missing = await this.#copier.copyAll(walk.files, { hasMode: true });
    for (const path of missing) this.#copier.writer.entries.delete(path);
    return { ...walk, files: walk.files.filter((path) => this.#copier.writer.entries.has(path)) };
  }

  async #walk(directory: string, walk: Walk): Promise<void> {
    const { disk } = this.#copier;
    walk.others.set(directory, { kind: "directory", path: directory });
    const below: string[] = [];
    const names = await this.#copier.names(directory).catch((error: unknown) => {
      if (hasErrno(error, "ESTALE", "ELOOP")) return [];
      throw error;
    });
    await inParallel(names, readsAtOnce, async (name) => {
      const path = `${directory}/${name}`;
      const target = await disk.readLink(this.#copier.at(path)).catch(() => undefined);
      // A link is copied as it was then: it may vanish or become a file in the next moment.
      const kind = target === undefined ? (await findIfThere(disk.stat(this.#copier.at(path))))?.kind : "link";
      if (target !== undefined) walk.others.set(path, { kind: "link", path, target });
      else if (kind === "file") walk.files.push(path);
      else if (kind === "directory") below.push(path);
      else if (kind === "other") this.#leave(path, "It is neither a file nor a directory nor a link.");
      else if (name.includes("\uFFFD")) this.#leave(path, "Its name is not valid UTF-8.");
    });
    for (const path of below) await this.#walk(path, walk);
  }

  #leave(path: string, why: string): void {
    this.#problem(`${path} is not in the backup: ${why}`);
  }

  #problem(problem: string): void {
    if (!this.#copier.writer.problems.includes(problem)) this.#copier.writer.problems.push(problem);
  }

  /** Removes what the first walk found and the second one did not. */
  #dropGone({ files, others }: Walk): void {
    const there = new Set([...files, ...others.keys()]);
    for (const path of this.#copier.writer.entries.keys())
      if ((path === "files" || path.startsWith("files/")) && !there.has(path)) this.#copier.writer.entries.delete(path);
  }

  /** A block that is folded during the copy is not lost: the segment with its changes is durable before it is removed. */
  async #copyChanges(): Promise<void> {
    const changes = this.#below(this.#layout.changes);
    for (let before = ""; ;) {
      const missing: string[] = [];
      for (const name of await this.#copier.names(changes)) {
        if (await this.#copier.copy(`${changes}/${name}`, { isFinal: true })) continue;
        const block = `${changes}/${name}`;
        const numbers = await this.#copier.slots(block);
        missing.push(
          ...(await this.#copier.copyAll(
            numbers.map((number) => `${block}/${number}`),
            { isFinal: true },
          )),
        );
      }
      if (missing.length === 0) return;
      // The same ones twice: these are no files, and another program made them. Everything else is copied.
      const after = missing.sort().join("\n");
      if (after === before) {
        for (const path of missing) this.#leave(path, "It has the name of a change, and is not a file.");
        return;
      }
      before = after;
      this.#copier.writer.drop(changes);
    }
  }

  get #layout(): FilesLayout {
    return new FilesLayout(this.#ground.layout.directory);
  }

  #below(path: string): string {
    return path.slice(parentOf(this.#copier.at("x")).length + 1);
  }
}
