// PgLockTable: the lock table of one store in a database. It follows the rules of every table; its
// requests are in a chain, and its marks are rows. It has no tree, so nothing is committed under
// its holds.
import type { StateChain } from "../../durable/chain/state-chain.ts";
import { holdfastError } from "../../errors.ts";
import type { Redo } from "../../locks/redo/redo.ts";
import { emptyTable, tableKind, type TableState } from "../../locks/table/request.ts";
import { RequestTable } from "../../locks/table/request-table.ts";
import type { PgGround } from "../liveness/pg-ground.ts";
import { PgChain } from "./pg-chain.ts";
import { PgHolds } from "./pg-holds.ts";

export class PgLockTable extends RequestTable {
  declare readonly ground: PgGround;
  declare readonly holds: PgHolds;
  readonly #chain: PgChain<TableState>;

  private constructor(ground: PgGround, chain: PgChain<TableState>) {
    const { database, ports, signals, part } = ground;
    const awaited = (): string => this.#awaited;
    super(ground, new PgHolds({ database, clock: ports.clock, signals, part, awaited }));
    this.#chain = chain;
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
