// Group commit for names that only one process can win: keys at publish, and ledger entries. Puts
// that arrive while another put of the box is in progress wait. They then share one file, which is
// written and synced once and has one link per entry:
//
// 1. The file is staged and synced. Meanwhile each call makes durable what its entry refers to.
// 2. Each entry is linked to its name. The link decides, as for a single entry: of two puts under
//    one name, one wins.
// 3. The directory of the name is synced. Then the call returns. It does not wait for the other
//    calls.
//
// A put that runs alone has a file of its own.
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { putStaged } from "../../durable/publish/publish.ts";
import { discard, stage } from "../../durable/publish/staging.ts";
import type { Box } from "./box.ts";

/** Maximum number of entries in a file. */
export const entriesMax = 64;
/** A larger entry gets a file of its own: a reader of one entry reads the whole file. */
export const entryBytesMax = 2048;

export interface GroupPutOptions<T> {
  readonly encode: (entries: readonly T[]) => Uint8Array;
  /** False for an entry that must have a file of its own. */
  readonly mayShare: (entry: T) => boolean;
}

interface Call<T> {
  readonly session: HolderSession;
  readonly path: string;
  readonly entry: T;
  readonly before: Promise<unknown> | undefined;
  readonly resolve: (isFirst: boolean) => void;
  readonly reject: (error: unknown) => void;
}

export class GroupPut<T> {
  readonly #box: Box;
  readonly #options: GroupPutOptions<T>;
  #waiting: Call<T>[] = [];
  #isRunning = false;

  constructor(box: Box, options: GroupPutOptions<T>) {
    this.#box = box;
    this.#options = options;
  }

  /**
   * Resolves to true if `path` is now this entry, durably, and to false if it is another. The link
   * is made from the temp directory of `session`, so a session that was judged dead can put
   * nothing. It is made after `before` resolves; if `before` rejects, only this call fails, with
   * the same error.
   */
  put(session: HolderSession, path: string, entry: T, before?: Promise<unknown>): Promise<boolean> {
    // Marks the rejection as handled: `#link` reports it.
    before?.catch(() => undefined);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ session, path, entry, before, resolve, reject });
      if (!this.#isRunning) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    for (let first = this.#waiting.shift(); first !== undefined; first = this.#waiting.shift())
      await this.#putAll([first, ...this.#takeOthers(first)]);
    this.#isRunning = false;
  }

  /**
   * Takes waiting calls of the same session with different names. No name may occur twice in a
   * file: a name that links to the file proves that its entry has won.
   */
  #takeOthers(first: Call<T>): Call<T>[] {
    const { mayShare } = this.#options;
    if (this.#waiting.length === 0 || !mayShare(first.entry)) return [];
    const paths = new Set([first.path]);
    const mayJoin = ({ session, path, entry }: Call<T>): boolean =>
      session === first.session && mayShare(entry) && paths.size < paths.add(path).size;
    const most = this.#waiting.slice(0, entriesMax - 1);
    const end = most.findIndex((call) => !mayJoin(call));
    return this.#waiting.splice(0, end < 0 ? most.length : end);
  }

  async #putAll(calls: readonly [Call<T>, ...Call<T>[]]): Promise<void> {
    const [{ session }] = calls;
    try {
      const bytes = this.#options.encode(calls.map(({ entry }) => entry));
      const staging = stage(session.staging, bytes, { sync: this.#box.isSynced });
      await Promise.all(calls.map((call) => this.#link(staging, bytes, call).then(call.resolve, call.reject)));
      await discard(session.staging, await staging);
    } catch (error) {
      for (const { reject } of calls) reject(error);
    }
  }

  async #link(staging: Promise<string>, bytes: Uint8Array, { path, before }: Call<T>): Promise<boolean> {
    const box = this.#box;
    // Waits for both promises, so that a failed call leaves nothing in progress.
    const prepared = await Promise.allSettled([staging, before]);
    for (const each of prepared) if (each.status === "rejected") throw each.reason;
    const temp = await staging;
    const sync = box.isSynced && ((each: string): Promise<void> => box.sync(each));
    const put = (): Promise<boolean> => putStaged(box.disk, temp, path, bytes, { sync, isPermanent: true });
    return await box.within(parentOf(path), put, { isKept: true });
  }
}
