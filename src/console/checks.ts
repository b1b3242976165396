// Checks: the latest results of `verify` and `doctor`, which a person starts from the page. A
// console keeps them for as long as it runs.
import { doctor, verifyStore, type DoctorReport, type Problem, type VerifyReport } from "../index.ts";
import { asRequestError, RequestError } from "./http/request-error.ts";
import type { WatchedStore } from "./watch/watched-store.ts";

/** The page shows the first ones; the command line shows all. */
const problemsMax = 100;

export interface PartVerdict {
  readonly part: string;
  readonly ok: boolean;
  readonly checked: number;
  readonly problems: readonly Problem[];
}

export interface Check<Result> {
  readonly startedAt: Date;
  readonly endedAt?: Date;
  readonly result?: Result;
  readonly error?: string;
}

export class Checks {
  verification: Check<readonly PartVerdict[]> | undefined;
  examination: Check<DoctorReport> | undefined;
  readonly #watched: WatchedStore;
  readonly #closed = new AbortController();
  #running: Promise<unknown> | undefined;

  constructor(watched: WatchedStore) {
    this.#watched = watched;
  }

  /** Verifies all parts in the background. It reads everything and changes nothing. */
  startVerification(): void {
    if (this.#running !== undefined) throw new RequestError(409, "RESOURCE_BUSY", "A check is already running.");
    const startedAt = new Date();
    const parts: PartVerdict[] = [];
    this.verification = { startedAt };
    this.#running = this.#verify(parts).then(
      () => (this.verification = { startedAt, endedAt: new Date(), result: parts }),
      (error: unknown) =>
        (this.verification = { startedAt, endedAt: new Date(), result: parts, error: asRequestError(error).message }),
    );
    void this.#running.finally(() => (this.#running = undefined));
  }

  /** Examines the file system. It creates a directory of its own in the store, and removes it. */
  async examine(): Promise<string> {
    const startedAt = new Date();
    this.examination = { startedAt };
    try {
      const result = await doctor(this.#watched.location);
      this.examination = { startedAt, endedAt: new Date(), result };
      return `The verdict on the file system is ${result.verdict}.`;
    } catch (error) {
      this.examination = { startedAt, endedAt: new Date(), error: asRequestError(error).message };
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await this.#running;
  }

  async #verify(parts: PartVerdict[]): Promise<void> {
    const watched = this.#watched;
    const { signal } = this.#closed;
    const add = (part: string, { ok, checked, problems }: VerifyReport): void =>
      void parts.push({ part, ok, checked, problems: problems.slice(0, problemsMax) });
    const store = await verifyStore(watched.location, { signal });
    if (store !== undefined) add("store", store);
    for (const name of await watched.logs()) add(`log ${name}`, await (await watched.log(name)).verify({ signal }));
    for (const name of await watched.boxes()) add(`box ${name}`, await (await watched.box(name)).verify({ signal }));
    const objects = await watched.findObjects();
    if (objects !== undefined) add("objects", await objects.verify({ signal }));
    const tree = await watched.findTree();
    if (tree !== undefined) add("files", await tree.verify({ signal }));
  }
}
