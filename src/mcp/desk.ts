// What one connection works with: the tree, the box, and the locks and tasks that it holds. They end
// with the connection: whatever it held is free again.
import { posix } from "node:path";
import type { PathHold, PathLocks } from "../locks/index.ts";
import type { FileTree } from "../files/index.ts";
import type { Delivery, Handoff } from "../handoff/index.ts";
import { Refusal } from "./answer.ts";
import { heldMax } from "./limits.ts";
import { SeenTexts } from "./seen-texts.ts";

export interface DeskParts {
  /** The tree of the store. Opened on first use. */
  files(): Promise<FileTree>;
  /** The box of tasks. Opened on first use. */
  tasks(): Promise<Handoff>;
  /** The directory that memories of sessions are written to; undefined if the user extracts them. */
  readonly memories?: string | undefined;
}

export class Desk {
  readonly seen: SeenTexts = new SeenTexts();
  readonly #parts: DeskParts;
  readonly #holds = new Map<string, PathHold>();
  readonly #tasks = new Map<string, Delivery>();
  #isClosed = false;

  constructor(parts: DeskParts) {
    this.#parts = parts;
  }

  get memories(): string | undefined {
    return this.#parts.memories;
  }

  async files(): Promise<FileTree> {
    return await this.#parts.files();
  }

  async locks(): Promise<PathLocks> {
    return await (await this.files()).locks();
  }

  async tasks(): Promise<Handoff> {
    return await this.#parts.tasks();
  }

  /** Keeps a lock for this connection. If the connection has ended meanwhile, releases it. */
  async keepHold(hold: PathHold): Promise<void> {
    this.#holds.set(hold.id, hold);
    hold.signal.addEventListener("abort", () => this.#holds.delete(hold.id), { once: true });
    if (this.#isClosed) await this.close();
  }

  /** Throws a refusal for a lock that this connection does not hold. */
  async releaseHold(id: string): Promise<PathHold> {
    const hold = this.#holds.get(id);
    if (hold === undefined)
      throw new Refusal("LOCK_LOST", `This connection holds no lock ${id}: it was released, or lost.`, "Take it again if you still need it, and read again what it protected."); // prettier-ignore
    this.#holds.delete(id);
    await hold.release();
    return hold;
  }

  /** The lock of this connection that covers all of these paths, for calls that work below it. */
  holdOver(...paths: readonly string[]): PathHold | undefined {
    const covers = ({ requests }: PathHold): boolean =>
      paths.every((path) =>
        requests.some((held) => !held.shared && isCovered(posix.normalize(path), held.path, held.mode === "tree")),
      );
    return [...this.#holds.values()].find(covers);
  }

  /** The locks that this connection holds. */
  get holds(): readonly PathHold[] {
    return [...this.#holds.values()];
  }

  /** Keeps a claimed task for this connection. If the connection has ended meanwhile, returns it to the box. */
  async keepTask(delivery: Delivery): Promise<void> {
    this.#tasks.set(delivery.id, delivery);
    delivery.signal.addEventListener("abort", () => this.#tasks.delete(delivery.id), { once: true });
    if (this.#isClosed) await this.close();
  }

  /** Settles a task of this connection with `settle`; it stays claimed if that fails. */
  async settleTask(id: string, settle: (delivery: Delivery) => Promise<void>): Promise<void> {
    const delivery = this.#tasks.get(id);
    if (delivery === undefined)
      throw new Refusal("CLAIM_LOST", `This connection has not claimed task ${id}, or has lost it.`, "Take a task with `task_take`; only tasks that you took can be ended."); // prettier-ignore
    // A second call at the same time must not settle it again.
    this.#tasks.delete(id);
    try {
      await settle(delivery);
    } catch (error) {
      if (!delivery.signal.aborted) await this.keepTask(delivery);
      throw error;
    }
  }

  /** Throws a refusal if one more lock or task would be too many. */
  mustHaveRoom(): void {
    if (this.#holds.size + this.#tasks.size < heldMax) return;
    throw new Refusal("TOO_MANY", `This connection already holds ${heldMax} locks and tasks.`, "Release locks with `unlock`, and end tasks with `task_done` or `task_fail`."); // prettier-ignore
  }

  /** Releases the locks, and returns the tasks to their box. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const [holds, tasks] = [[...this.#holds.values()], [...this.#tasks.values()]];
    this.#holds.clear();
    this.#tasks.clear();
    await Promise.allSettled([
      ...holds.map((hold) => hold.release()),
      ...tasks.map((delivery) => delivery[Symbol.asyncDispose]()),
    ]);
  }
}

function isCovered(path: string, held: string, isTree: boolean): boolean {
  const over = posix.normalize(held === "" ? "." : held).replace(/\/$/, "");
  return path === over || (isTree && (over === "." || path.startsWith(`${over}/`)));
}
