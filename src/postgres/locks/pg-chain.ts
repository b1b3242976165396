// PgChain: a state chain in one row. A transaction locks the row and swaps its state. All waiting
// callers of this process share one transaction, and each change is applied to the result of the
// previous one.
import type { AppendOptions, RollingChainOptions, RollingEntry } from "../../durable/chain/rolling-chain-options.ts";
import type { StateChain } from "../../durable/chain/state-chain.ts";
import { holdfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import type { Random } from "../../ports/random.ts";
import type { Database } from "../connection/database.ts";
import { isLost } from "../connection/failure.ts";

const batchMax = 64;
/** The row keeps the ids of this many appends, so that a lost answer can be looked up. */
const idsMax = 4 * batchMax;

export interface PgChainContext {
  readonly database: Database;
  readonly random: Random;
  readonly part: number;
  readonly name: string;
}

type Entry<T> = RollingEntry<T>;

interface Call<T> {
  /**
   * Unique, unlike the id of an append: after a lost answer, this process looks for it in the row.
   */
  readonly token: string;
  readonly change: (newest: T, number: number) => T | undefined;
  readonly options: AppendOptions;
  readonly resolve: (entry: Entry<T> | undefined) => void;
  readonly reject: (error: unknown) => void;
}

interface Row {
  readonly n: number;
  readonly ids: string;
  /** Null if the state is the known one. */
  readonly state: unknown;
}

export class PgChain<T> implements StateChain<T> {
  readonly #context: PgChainContext;
  readonly #options: Pick<RollingChainOptions<T>, "kind" | "initial">;
  #waiting: Call<T>[] = [];
  #isRunning = false;
  #known: Entry<T>;
  /** True if the row exists. */
  #isMade = false;

  constructor(context: PgChainContext, options: Pick<RollingChainOptions<T>, "kind" | "initial">) {
    this.#context = context;
    this.#options = options;
    this.#known = { number: 0, state: options.initial };
  }

  /** The newest entry that this process has seen. */
  get known(): Entry<T> {
    return this.#known;
  }

  /** An SQL condition that selects the row. */
  get row(): string {
    const { database, part, name } = this.#context;
    return `p = ${part} and name = ${database.literal(name)}`;
  }

  async read(): Promise<Entry<T>> {
    const { database, part, name } = this.#context;
    const known = this.#known;
    const [row] = await database.query<Row & { state: unknown }>(
      "select n, case when n = $3 then null else state end as state from hf_chain where p = $1 and name = $2",
      [part, name, known.number],
    );
    // Without a row, nothing has been appended yet.
    return row === undefined ? { number: 0, state: this.#options.initial } : this.#see(row, known);
  }

  append(
    id: string,
    change: (newest: T, number: number) => T | undefined,
    options: AppendOptions = {},
  ): Promise<Entry<T> | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({
        token: `${id}#${randomName(this.#context.random.bytes(16))}`,
        change,
        options,
        resolve,
        reject,
      });
      if (!this.#isRunning) void this.#run();
    });
  }

  async collect(): Promise<number> {
    return 0;
  }

  async settled(): Promise<void> {
    // Nothing runs in the background.
  }

  async isStanding(): Promise<boolean> {
    return true;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    // Calls made in this same turn of the event loop join the first batch.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, batchMax);
      let isAgain = false;
      try {
        await this.#context.database.patiently(async () => {
          try {
            await this.#swap(batch, isAgain);
          } catch (error) {
            this.#known = { number: 0, state: this.#options.initial };
            this.#isMade = false;
            // From here on, the row is checked for the tokens of these calls.
            isAgain ||= isLost(error);
            throw error;
          }
        });
      } catch (error) {
        for (const call of batch) call.reject(isAgain ? this.#inDoubt(call, error) : error);
      }
    }
    this.#isRunning = false;
  }

  async #swap(batch: readonly Call<T>[], isAgain: boolean): Promise<void> {
    const { database, part, name } = this.#context;
    const where = this.row;
    const known = this.#known;
    const state = `case when n = ${known.number} then null else state end as state`;
    let answers: (() => void)[] = [];
    let made = known;
    const make = this.#isMade
      ? ""
      : `insert into hf_chain (p, name, n, state)
           values (${part}, ${database.literal(name)}, 0, ${this.#literal(this.#options.initial)}) on conflict do nothing;`;
    await database.swap<Row>(
      `${make} select n, to_json(ids)::text as ids, ${state} from hf_chain where ${where} for update`,
      ([row]) => {
        answers = [];
        const before = this.#see(row as Row, known);
        const won = isAgain ? numbersOf(JSON.parse((row as Row).ids) as string[]) : new Map<string, number>();
        const statements: string[] = [];
        const ids: string[] = [];
        made = before;
        for (const { token, change, options, resolve, reject } of batch)
          try {
            const earlier = won.get(token);
            if (earlier !== undefined) {
              // The append counted, and others may have appended since.
              answers.push(() => resolve({ number: earlier, state: before.state }));
              continue;
            }
            const number = made.number + 1;
            const paths = options.keepAs?.() ?? [];
            const state = change(made.state, number);
            if (state === undefined) {
              answers.push(() => resolve(undefined));
              continue;
            }
            if (paths.length > 0) statements.push(this.#holds(paths));
            statements.push(...(options.beside ?? []));
            ids.unshift(`${number}:${token}`);
            const entry = (made = { number, state });
            answers.push(() => resolve(entry));
          } catch (error) {
            answers.push(() => reject(error));
          }
        if (ids.length === 0) return undefined;
        const newIds = ids.map((id) => database.literal(id)).join(", ");
        statements.push(
          `update hf_chain set n = ${made.number}, state = ${this.#literal(made.state)},
             ids = (array[${newIds}]::text[] || ids)[1:${idsMax}] where ${where}`,
        );
        return statements.join("; ");
      },
    );
    this.#known = made;
    this.#isMade = true;
    for (const answer of answers) answer();
  }

  #holds(paths: readonly string[]): string {
    const { database, part } = this.#context;
    const rows = paths.map((path) => `(${part}, ${database.literal(path.slice(path.lastIndexOf("/") + 1))})`);
    return `insert into hf_hold (p, id) values ${rows.join(", ")}`;
  }

  #literal(state: T): string {
    return this.#context.database.literal(JSON.stringify(state));
  }

  #see({ n, state }: Pick<Row, "n" | "state">, known: Entry<T>): Entry<T> {
    const entry = state === null ? known : { number: n, state: this.#options.kind.decode(state) };
    if (entry.number >= this.#known.number) this.#known = entry;
    return entry;
  }

  #inDoubt({ token }: Call<T>, cause: unknown): Error {
    const path = this.#context.database.location.shown;
    const message = `${path}: the answer of the server was lost, so the append ${token} may or may not count.`;
    return holdfastError("OUTCOME_UNKNOWN", message, { path }, cause);
  }
}

function numbersOf(ids: readonly string[]): Map<string, number> {
  return new Map(
    ids.map((text) => {
      const end = text.indexOf(":");
      return [text.slice(end + 1), Number(text.slice(0, end))];
    }),
  );
}
