// Turns: transactions of two round trips that are committed once, even if the answer to a commit is
// lost. Each takes the next turn of a row that only this process writes. If the row already has
// that number, the transaction was committed.
import type pg from "pg";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import type { Database } from "../connection/database.ts";
import { isLost, sqlStateOf } from "../connection/failure.ts";

const turnTaken = "HF001";
/** Transactions of a store in progress at the same time: one is filled while another is synced. */
const atOnce = 2;

interface Lane {
  id: string;
  turn: number;
}

export interface TurnsOptions {
  readonly newId: () => string;
  /** Default true. */
  readonly isSynced?: boolean | undefined;
}

export class Turns {
  readonly #database: Database;
  readonly #isSynced: boolean;
  readonly #lanes: readonly Lane[];
  readonly #newId: () => string;
  readonly #free: Lane[];
  readonly #waiting: ((lane: Lane) => void)[] = [];

  constructor(database: Database, { newId, isSynced = true }: TurnsOptions) {
    this.#database = database;
    this.#isSynced = isSynced;
    this.#newId = newId;
    this.#lanes = Array.from({ length: atOnce }, () => ({ id: newId(), turn: 0 }));
    this.#free = [...this.#lanes];
  }

  /**
   * Sends `first`, which must return rows, and then the text that `next` returns for them;
   * undefined changes nothing. `next` may be called again: only its last call counts. Throws
   * OUTCOME_UNKNOWN if the server stays away.
   */
  async swap<R extends pg.QueryResultRow>(
    first: () => string,
    next: (rows: R[]) => string | undefined,
    then: () => void = () => undefined,
  ): Promise<void> {
    const lane = this.#free.pop() ?? (await new Promise<Lane>((resolve) => this.#waiting.push(resolve)));
    try {
      await this.#swap(lane, first(), next);
      then();
    } finally {
      const waiting = this.#waiting.shift();
      if (waiting === undefined) this.#free.push(lane);
      else waiting(lane);
    }
  }

  async close(): Promise<void> {
    const ids = this.#lanes.filter(({ turn }) => turn > 0).map(({ id }) => id);
    if (ids.length > 0) await this.#database.query("delete from hf_turn where id = any($1)", [ids]);
  }

  async #swap<R extends pg.QueryResultRow>(
    lane: Lane,
    first: string,
    next: (rows: R[]) => string | undefined,
  ): Promise<void> {
    const turn = lane.turn + 1;
    const sync = this.#isSynced ? "" : "set local synchronous_commit = off; ";
    const taken = `${sync}select hf_take_turn_1(${this.#database.literal(lane.id)}, ${turn}); ${first}`;
    let isSent = false;
    let isInDoubt = false;
    const isCommitted = await this.#database
      .patiently(async () => {
        isSent = false;
        try {
          await this.#database.swap<R>(taken, (rows) => {
            // The turn was free, so an earlier attempt was not committed.
            isInDoubt = false;
            const text = next(rows);
            isSent = text !== undefined;
            return text;
          });
          return isSent;
        } catch (error) {
          if (isInDoubt && sqlStateOf(error) === turnTaken) return true;
          if (isSent && isLost(error)) isInDoubt = true;
          throw error;
        }
      })
      .catch((error: unknown) => {
        throw isInDoubt && isHoldfastError(error) ? this.#inDoubt(lane, error) : error;
      });
    if (isCommitted) lane.turn = turn;
  }

  /** The turn may be taken, so this lane continues under another name. */
  #inDoubt(lane: Lane, cause: Error): Error {
    lane.id = this.#newId();
    lane.turn = 0;
    const path = this.#database.location.shown;
    const message = `${path}: the answer of the server was lost, so the change may or may not count. Read it again.`;
    return holdfastError("OUTCOME_UNKNOWN", message, { path }, cause);
  }
}
