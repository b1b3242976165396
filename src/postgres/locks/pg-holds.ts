// PgHolds: one row for each standing request of the lock table. Its owner deletes the row to
// release the request.
import type { Holds } from "../../locks/table/request-table.ts";
import type { TableRequest, Transfer } from "../../locks/table/request.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Database } from "../connection/database.ts";
import type { Signals } from "../signals.ts";

/** The server writes its log at least this often. A crash undoes whatever it had not written. */
const unsyncedMs = 10_000;
/** The pause after a repeated removal that failed because the server stays away. */
const repeatMs = 1000;

interface Removal {
  readonly id: string;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export interface PgHoldsContext {
  readonly database: Database;
  readonly clock: Clock;
  readonly signals: Signals;
  readonly part: number;
  /**
   * Returns an SQL condition that is true if another process may be waiting for a request of this
   * one.
   */
  readonly awaited: () => string;
}

export class PgHolds implements Holds {
  readonly #context: PgHoldsContext;
  #removals: Removal[] = [];
  #isRemoving = false;
  /** Recent removals, with their times. */
  readonly #removed = new Map<string, number>();
  /** How often a connection was lost. */
  #losses = 0;

  constructor(context: PgHoldsContext) {
    this.#context = context;
    context.database.onLost(() => this.#removeAgain());
  }

  pathOf(id: string): string {
    return `hold/${this.#context.part}/${id}`;
  }

  async isThere(id: string): Promise<boolean> {
    const { database, part } = this.#context;
    return (await database.query("select 1 from hf_hold where p = $1 and id = $2", [part, id])).length > 0;
  }

  /**
   * Removes a hold. Concurrent callers share one transaction, which is not synced: the next holder
   * syncs its own append, and with it all earlier transactions. If a crash of the server undoes a
   * release, this process repeats it.
   */
  remove(id: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#removals.push({ id, resolve, reject });
      if (!this.#isRemoving) void this.#removeAll();
    });
  }

  /** Starts the time of the offer now, by the clock of the server. */
  async createOffer(id: string): Promise<void> {
    const { database, part } = this.#context;
    await database.query("update hf_hold set offered = clock_timestamp() where p = $1 and id = $2", [part, id]);
  }

  async removeOffer(_id: string, _transfer: Pick<Transfer, "secretHash">): Promise<void> {
    // An offer has no mark to remove: the next one overwrites its time.
  }

  async createReceipt(): Promise<void> {
    // No receipt is needed: the table records the holder of the request, and no slot of it can be
    // torn.
  }

  async removeReceipt(): Promise<void> {
    // See `createReceipt`.
  }

  async isLapsed({ id, transfer }: Pick<TableRequest, "id" | "transfer">): Promise<boolean> {
    if (transfer === undefined) return false;
    const { database, part } = this.#context;
    const [row] = await database.query<{ is_lapsed: boolean }>(
      `select coalesce(extract(epoch from clock_timestamp() - offered) * 1000 > $3, true) as is_lapsed
         from hf_hold where p = $1 and id = $2`,
      [part, id, transfer.expiresMs],
    );
    return row?.is_lapsed ?? true;
  }

  async #removeAll(): Promise<void> {
    this.#isRemoving = true;
    await Promise.resolve();
    while (this.#removals.length > 0) {
      const batch = this.#removals.splice(0);
      try {
        await this.#delete(batch.map(({ id }) => id));
        for (const { resolve } of batch) resolve();
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#isRemoving = false;
  }

  async #delete(ids: readonly string[]): Promise<void> {
    const { database, clock, signals, part, awaited } = this.#context;
    const list = ids.map((id) => database.literal(id)).join(", ");
    const losses = this.#losses;
    // Several statements in one text are one transaction.
    await database.query(
      `set local synchronous_commit = off;
       delete from hf_hold where p = ${part} and id in (${list});
       ${signals.notify(`'hold/${part}/' || x.id`)} from unnest(array[${list}]) x(id) where ${awaited()}`,
    );
    const nowMs = clock.monotonicMs();
    for (const [id, atMs] of this.#removed) {
      if (nowMs - atMs < unsyncedMs) break;
      this.#removed.delete(id);
    }
    for (const id of ids) {
      this.#removed.set(id, nowMs);
      signals.wake(this.pathOf(id));
    }
    // The server may have crashed after its answer, before this process read it.
    if (losses !== this.#losses) this.#removeAgain();
  }

  /**
   * Repeats recent removals, which a crash of the server may have undone: others would wait for
   * these requests until this process ends.
   */
  #removeAgain(): void {
    this.#losses++;
    const ids = [...this.#removed.keys()];
    this.#removed.clear();
    if (ids.length > 0) void this.#repeat(ids);
  }

  async #repeat(ids: readonly string[]): Promise<void> {
    const { database, clock } = this.#context;
    // A process that closed its store gave up all that it held.
    while (!database.isClosed)
      try {
        return await this.#delete(ids);
      } catch {
        await clock.sleep(repeatMs, { background: true });
      }
  }
}
