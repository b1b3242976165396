// Database: the pool of connections to one server. It sends statements once, repeatedly after a
// lost connection, or in short transactions.
import type pg from "pg";
import type { Clock } from "../../ports/clock.ts";
import { signal } from "../../telemetry/signals.ts";
import { loadDriver, type Driver } from "./driver.ts";
import { failureOf, isOutOfConnections, isLost, isRace } from "./failure.ts";
import { parseLocation, storeDefault, type PostgresLocation } from "./location.ts";

const connectionsMax = 4;
const connectMsMax = 10_000;
const idleMs = 10_000;
/**
 * How long statements are repeated while the server is away: during a restart, or a failover to a
 * standby.
 */
const patienceMs = 20_000;
/** How long opening waits for a server that does not answer. */
const openMs = 3000;
const pauseMs = { first: 20, max: 500 };
const racesMax = 100;

type Row = pg.QueryResultRow;

/**
 * Own parsers, because a program may have changed those of the driver. All other types stay text,
 * and statements select only the types below.
 */
const parsers: ReadonlyMap<number, (text: string) => unknown> = new Map<number, (text: string) => unknown>([
  [16, (text) => text === "t"], // bool
  [17, (text) => Buffer.from(text.slice(2), "hex")], // bytea, as bytea_output = hex
  [20, Number], // int8: writers keep it below 2^53
  [21, Number], // int2
  [23, Number], // int4
  [114, (text) => JSON.parse(text) as unknown], // json
  [701, Number], // float8
]);
const types = {
  getTypeParser: (oid: number): ((text: string) => unknown) => parsers.get(oid) ?? ((text) => text),
};

/** Sends one text in a transaction, and returns the rows of its last statement that has any. */
export type Send = <R extends Row>(text: string, values?: readonly unknown[]) => Promise<R[]>;

export class Database {
  readonly location: PostgresLocation;
  readonly driver: Driver;
  readonly #pool: pg.Pool;
  readonly #ownsPool: boolean;
  readonly #clock: Clock;
  readonly #lostActions = new Set<() => void>();
  /**
   * True if statements outside of `transaction` need a transaction of their own, because the
   * default isolation is another one.
   */
  #needsBegin = false;
  #isClosed = false;

  private constructor(location: PostgresLocation, driver: Driver, pool: pg.Pool, ownsPool: boolean, clock: Clock) {
    this.location = location;
    this.driver = driver;
    this.#pool = pool;
    this.#ownsPool = ownsPool;
    this.#clock = clock;
    // The next statement replaces an idle connection that dies.
    pool.on("error", () => this.#reportLost());
    // A connection that dies while in use emits an error of its own, which would otherwise end the
    // process.
    pool.on("connect", (client) => void client.on("error", ignore));
  }

  /** Opens a location, or uses the pool of the caller, which the caller closes. */
  static async open(where: string | URL | pg.Pool, clock: Clock): Promise<Database> {
    const isText = typeof where === "string" || where instanceof URL;
    const location = isText ? parseLocation(where) : locationOf(where);
    const driver = await loadDriver(location.shown);
    const pool = isText ? newPool(driver, location) : where;
    const database = new Database(location, driver, pool, isText, clock);
    try {
      await database.#look();
    } catch (error) {
      await database.close();
      throw error;
    }
    return database;
  }

  /** The settings for a separate connection, which a thread opens. */
  get connection(): pg.ClientConfig {
    return this.#ownsPool ? { connectionString: this.location.url } : plainOptions(this.#pool.options);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Calls `action` after each lost connection, also of an idle one. */
  onLost(action: () => void): void {
    this.#lostActions.add(action);
  }

  /**
   * Sends a statement, and repeats it while the connection is lost or none is free. The statement
   * must be idempotent.
   */
  async query<R extends Row>(text: string, values: readonly unknown[] = []): Promise<R[]> {
    return await this.patiently(() => this.once<R>(text, values));
  }

  /** Sends a statement once. If the connection is lost, the statement may have been executed: see `isLost`. */
  async once<R extends Row>(text: string, values: readonly unknown[] = []): Promise<R[]> {
    if (this.#needsBegin) return await this.#inTransaction((send) => send<R>(text, values));
    return await this.#noting(async () => (await this.#pool.query<R>(queryOf(text, values))).rows);
  }

  /**
   * Runs `work` in a transaction at READ COMMITTED, and repeats it after a race, which has no
   * effects. If the connection is lost, the transaction may have been committed: see `isLost`.
   */
  async transaction<T>(work: (send: Send) => Promise<T>): Promise<T> {
    for (let races = 0; ; races++)
      try {
        return await this.#inTransaction(work);
      } catch (error) {
        if (!isRace(error) || races >= racesMax) throw error;
        this.#reportRetry(races + 1, error);
      }
  }

  /**
   * Sends `first`, which must return rows, and then the text that `next` returns for them: a
   * transaction of two round trips. `next` returns undefined to change nothing.
   */
  async swap<R extends Row>(first: string, next: (rows: R[]) => string | undefined): Promise<void> {
    await this.#connected(async (client) => {
      const results = await client.query<R>({ text: `begin isolation level read committed; ${first}`, types });
      const rows = (results as unknown as pg.QueryResult<R>[]).at(-1)?.rows ?? [];
      let text: string | undefined;
      try {
        text = next(rows);
      } catch (error) {
        await client.query("rollback");
        throw new Harmless(error);
      }
      await client.query(text === undefined ? "rollback" : `${text}; commit`);
    });
  }

  /** Repeats `work` while the connection is lost or none is free, up to `untilMs` of the monotonic clock. */
  async patiently<T>(work: () => Promise<T>, untilMs: number = this.#clock.monotonicMs() + patienceMs): Promise<T> {
    for (let pause = pauseMs.first, tries = 1; ; pause = Math.min(pauseMs.max, 2 * pause), tries++)
      try {
        return await work();
      } catch (error) {
        if (!isLost(error) && !isOutOfConnections(error) && !isRace(error)) throw error;
        if (this.#clock.monotonicMs() + pause >= untilMs) throw error;
        this.#reportRetry(tries, error);
        await this.#clock.sleep(pause);
      }
  }

  #reportLost(): void {
    for (const action of this.#lostActions) action();
  }

  #reportRetry(attempt: number, error: unknown): void {
    signal("holdfast:retry", () => ({ location: this.location.shown, attempt, error }));
  }

  /** Returns a text as an SQL literal. */
  literal(text: string): string {
    return this.driver.escapeLiteral(text);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#lostActions.clear();
    if (this.#ownsPool && !this.#pool.ended) await this.#pool.end();
  }

  async #look(): Promise<void> {
    const statement = "select current_setting('default_transaction_isolation') as isolation";
    const untilMs = this.#clock.monotonicMs() + openMs;
    const [row] = await this.patiently(() => this.once<{ isolation: string }>(statement), untilMs);
    this.#needsBegin = row?.isolation !== "read committed";
  }

  async #inTransaction<T>(work: (send: Send) => Promise<T>): Promise<T> {
    return await this.#connected(async (client) => {
      await client.query("begin isolation level read committed");
      let result: T;
      try {
        result = await work(async <R extends Row>(text: string, values: readonly unknown[] = []) => {
          return (await client.query<R>(queryOf(text, values))).rows;
        });
      } catch (error) {
        if (isLost(error)) throw error;
        await client.query("rollback");
        throw new Harmless(error);
      }
      await client.query("commit");
      return result;
    });
  }

  /**
   * Runs `work` with a connection. One that failed in the middle of a transaction is not reused.
   */
  async #connected<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    return await this.#noting(async () => {
      const client = await this.#pool.connect();
      let isSound = false;
      // A pool of the caller may have made this connection before we listened for new ones.
      if (client.listenerCount("error") === 0) client.on("error", ignore);
      try {
        const result = await work(client);
        isSound = true;
        return result;
      } catch (error) {
        if (!(error instanceof Harmless)) throw error;
        isSound = true;
        throw error.reason;
      } finally {
        client.release(!isSound);
      }
    });
  }

  async #noting<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (isLost(error)) this.#reportLost();
      throw failureOf(error, this.location.shown);
    }
  }
}

/** Wraps an error after which the connection is clean. */
class Harmless extends Error {
  readonly reason: unknown;

  constructor(reason: unknown) {
    super("The transaction was taken back.");
    this.reason = reason;
  }
}

function queryOf(text: string, values: readonly unknown[]): pg.QueryConfig {
  return { text, values: [...values], types };
}

function newPool(driver: Driver, { url }: PostgresLocation): pg.Pool {
  return new driver.Pool({
    connectionString: url,
    max: connectionsMax,
    idleTimeoutMillis: idleMs,
    connectionTimeoutMillis: connectMsMax,
    allowExitOnIdle: true,
    keepAlive: true,
  });
}

function locationOf(pool: pg.Pool): PostgresLocation {
  const options: pg.PoolConfig & { binary?: boolean } = pool.options;
  if (options.binary) throw new TypeError("The pool must not have `binary: true`: the driver would damage bodies.");
  const { url, ...named } = parseLocation(
    options.connectionString ?? `postgres://${options.host ?? "localhost"}/${options.database ?? ""}`,
  );
  return { ...named, url, store: named.store || storeDefault };
}

/** Returns only settings that can be passed to a thread. */
function plainOptions({ connectionString, host, port, user, database, password, ssl }: pg.PoolConfig): pg.ClientConfig {
  if (typeof password === "function")
    throw new TypeError("The password of a pool must be a text: the thread that keeps the session alive needs it.");
  return { connectionString, host, port, user, database, password, ssl };
}

function ignore(): void {
  // The caller of the statement in progress gets the error.
}
