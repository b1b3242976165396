// PgLockTable: the lock table of one store in a database. It follows the rules of every table; its
// requests are in a chain, and its marks are rows, which their owners delete to release them. It has no
// tree, so nothing is committed under its holds.
import type { StateChain } from "../../durable/chain/state-chain.ts";
import { holdfastError } from "../../errors.ts";
import type { Redo } from "../../locks/redo/redo.ts";
import { emptyTable, tableKind, type TableState, type TableRequest, type Transfer } from "../../locks/table/request.ts";
import { RequestTable } from "../../locks/table/request-table.ts";
import type { PgGround } from "../liveness/pg-ground.ts";
import { PgChain } from "./pg-chain.ts";
import { Batches } from "../connection/batches.ts";

/** The server writes its log at least this often. A crash undoes whatever it had not written. */
const unsyncedMs = 10_000;
/** The pause after a repeated removal that failed because the server stays away. */
const repeatMs = 1000;

export class PgLockTable extends RequestTable {
  declare readonly ground: PgGround;
  readonly #chain: PgChain<TableState>;
  readonly #removals = new Batches<string, void>(
    async (ids) => {
      await this.#delete(ids);
      return ids.map(() => undefined);
    },
    { items: Infinity },
  );
  /** Recent removals, with their times. */
  readonly #removed = new Map<string, number>();
  /** How often a connection was lost. */
  #losses = 0;

  private constructor(ground: PgGround, chain: PgChain<TableState>) {
    super(ground);
    this.#chain = chain;
    ground.database.onLost(() => this.#removeAgain());
  }

  /** Opens the table `name` of a store. */
  static open(ground: PgGround, name: string): PgLockTable {
    const { database, ports, part } = ground;
    const context = { database, random: ports.random, part, name: `table/${name}` };
    return new PgLockTable(ground, new PgChain(context, { kind: tableKind, initial: emptyTable }));
  }

  protected override get chain(): StateChain<TableState> {
    return this.#chain;
  }

  /** Drops the requests of dead holders. */
  override async sweep(): Promise<void> {
    await this.ground.sweep();
    const { state } = await this.read();
    await this.judge(state.requests, { once: true });
    await this.drop([]);
  }

  protected override async apply(redo: Redo): Promise<void> {
    const { location } = this.ground;
    const message = `${location}: its lock table has the change ${redo.id} of a tree, which only a folder can have.`;
    throw holdfastError("CORRUPT", message, { path: location });
  }

  override markOf(id: string): string {
    return `hold/${this.ground.part}/${id}`;
  }

  protected override async hasMark(id: string): Promise<boolean> {
    const { database, part } = this.ground;
    return (await database.query("select 1 from hf_hold where p = $1 and id = $2", [part, id])).length > 0;
  }

  /**
   * Removes a hold. Concurrent callers share one transaction, which is not synced: the next holder
   * syncs its own append, and with it all earlier transactions. If a crash of the server undoes a
   * release, this process repeats it.
   */
  protected override async removeMark(id: string): Promise<void> {
    await this.#removals.call(id);
  }

  /** Starts the time of the offer now, by the clock of the server. */
  override async createOffer(id: string): Promise<void> {
    const { database, part } = this.ground;
    await database.query("update hf_hold set offered = clock_timestamp() where p = $1 and id = $2", [part, id]);
  }

  override async removeOffer(_id: string, _transfer: Pick<Transfer, "secretHash">): Promise<void> {
    // An offer has no mark to remove: the next one overwrites its time.
  }

  override async createReceipt(): Promise<void> {
    // No receipt is needed: the table records the holder of the request, and no slot of it can be
    // torn.
  }

  override async removeReceipt(): Promise<void> {
    // See `createReceipt`.
  }

  override async isLapsed({ id, transfer }: Pick<TableRequest, "id" | "transfer">): Promise<boolean> {
    if (transfer === undefined) return false;
    const { database, part } = this.ground;
    const [row] = await database.query<{ is_lapsed: boolean }>(
      `select coalesce(extract(epoch from clock_timestamp() - offered) * 1000 > $3, true) as is_lapsed
         from hf_hold where p = $1 and id = $2`,
      [part, id, transfer.expiresMs],
    );
    return row?.is_lapsed ?? true;
  }

  async #delete(ids: readonly string[]): Promise<void> {
    const { database, ports, signals, part } = this.ground;
    const list = ids.map((id) => database.literal(id)).join(", ");
    const losses = this.#losses;
    // Several statements in one text are one transaction.
    await database.query(
      `set local synchronous_commit = off;
       delete from hf_hold where p = ${part} and id in (${list});
       ${signals.notify(`'hold/${part}/' || x.id`)} from unnest(array[${list}]) x(id) where ${this.#awaited}`,
    );
    const nowMs = ports.clock.monotonicMs();
    for (const [id, atMs] of this.#removed) {
      if (nowMs - atMs < unsyncedMs) break;
      this.#removed.delete(id);
    }
    for (const id of ids) {
      this.#removed.set(id, nowMs);
      signals.wake(this.markOf(id));
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
    const { database, ports } = this.ground;
    // A process that closed its store gave up all that it held.
    while (!database.isClosed)
      try {
        return await this.#delete(ids);
      } catch {
        await ports.clock.sleep(repeatMs, { background: true });
      }
  }

  /**
   * An SQL condition. While this process is the only one that appends, no other process waits, and
   * no hint is sent.
   */
  get #awaited(): string {
    const { number, state } = this.#chain.known;
    const holders = new Set(state.requests.map(({ holder }) => holder));
    return holders.size > 1 ? "true" : `exists (select 1 from hf_chain where ${this.#chain.row} and n > ${number})`;
  }
}
