// KeyCalls: the changes of keys by this process. Waiting calls share one transaction of two round
// trips, which locks their keys, judges each call, and commits.
import { holdfastError } from "../../errors.ts";
import { noSuchBucket } from "../../objects/bucket/open-bucket.ts";
import type { BucketConfig } from "../../objects/model/object.ts";
import type { Database } from "../connection/database.ts";
import {
  arrayLiteral,
  keyLiteral,
  stateOfKey,
  statementsOf,
  type KeyRow,
  type KeyState,
  type Plan,
} from "./key-state.ts";
import type { Turns } from "./turns.ts";

const callsMax = 64;
const bytesMax = 4 * 1024 * 1024;
const queueMax = 100_000;

export interface KeyCall<T> {
  readonly bucket: string;
  readonly key: string;
  /** The version that the call names, as returned by `slotNamed`. Default: none. */
  readonly slot?: number | undefined;
  /** True if the call needs all versions of its key. Default false. */
  readonly needsAll?: boolean | undefined;
  readonly upload?: string | undefined;
  readonly blob?: string | undefined;
  /** How many bytes the call sends. */
  readonly bytes?: number | undefined;
  /**
   * Decides on the locked state; throws to refuse the call. It may be called again with a newer
   * state.
   */
  readonly judge: (state: KeyState) => Plan<T>;
}

interface WaitingCall {
  readonly call: KeyCall<unknown>;
  /** Bucket and key. */
  readonly name: string;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export interface KeyCallsContext {
  readonly database: Database;
  readonly part: number;
  readonly turns: Turns;
  /** Called with the settings of each bucket that was read. */
  readonly onSettings: (bucket: string, settings: BucketConfig) => void;
}

export class KeyCalls {
  readonly #context: KeyCallsContext;
  readonly #waiting: WaitingCall[] = [];
  /**
   * Keys of transactions in progress. A second transaction of this process would only wait for the
   * first.
   */
  readonly #busy = new Set<string>();
  #running = 0;

  constructor(context: KeyCallsContext) {
    this.#context = context;
  }

  async run<T>(call: KeyCall<T>): Promise<T> {
    if (this.#waiting.length >= queueMax)
      throw holdfastError("TOO_LARGE", `${queueMax} changes of objects are waiting already.`, {
        limit: queueMax,
        actual: queueMax + 1,
      });
    const answered = new Promise<unknown>((resolve, reject) => {
      this.#waiting.push({ call, name: `${call.bucket}/${call.key}`, resolve, reject });
    });
    // Calls made in this same turn of the event loop join the first batch.
    queueMicrotask(() => this.#start());
    return (await answered) as T;
  }

  #start(): void {
    while (this.#running < 2) {
      const batch = this.#takeBatch();
      if (batch.length === 0) return;
      this.#running++;
      void this.#commit(batch).finally(() => {
        this.#running--;
        for (const { name } of batch) this.#busy.delete(name);
        this.#start();
      });
    }
  }

  /** Takes calls of one bucket with different keys, and orders them by key. */
  #takeBatch(): WaitingCall[] {
    const batch: WaitingCall[] = [];
    let bytes = 0;
    for (let at = 0; at < this.#waiting.length && batch.length < callsMax && bytes < bytesMax;) {
      const waiting = this.#waiting[at] as WaitingCall;
      const isOther = batch[0] !== undefined && batch[0].call.bucket !== waiting.call.bucket;
      if (isOther || this.#busy.has(waiting.name)) {
        at++;
        continue;
      }
      this.#waiting.splice(at, 1);
      this.#busy.add(waiting.name);
      batch.push(waiting);
      bytes += waiting.call.bytes ?? 0;
    }
    return batch.sort((one, other) => Buffer.compare(Buffer.from(one.call.key), Buffer.from(other.call.key)));
  }

  async #commit(batch: readonly WaitingCall[]): Promise<void> {
    const { database, turns } = this.#context;
    let answers: (() => void)[] = [];
    try {
      await turns.swap<KeyRow & Record<string, unknown>>(
        () => this.#lockStatement(batch),
        (rows) => {
          const judged = this.#judge(batch, rows);
          answers = judged.answers;
          return statementsOf(database, judged.planned);
        },
      );
    } catch (error) {
      for (const { reject } of batch) reject(error);
      return;
    }
    for (const answer of answers) answer();
  }

  #lockStatement(batch: readonly WaitingCall[]): string {
    const { database, part } = this.#context;
    const calls = batch.map(({ call }) => call);
    const [bucket = ""] = calls.map((call) => call.bucket);
    return `select * from hf_lock_keys_1(${part}, ${database.literal(bucket)},
      array[${calls.map(({ key }) => keyLiteral(key)).join(", ")}],
      array[${calls.map(({ slot = 0 }) => slot).join(", ")}]::bigint[],
      array[${calls.map(({ needsAll = false }) => needsAll).join(", ")}]::boolean[],
      ${arrayLiteral(
        database,
        calls.map(({ upload = "" }) => upload),
      )},
      ${arrayLiteral(
        database,
        calls.map(({ blob = "" }) => blob),
      )})`;
  }

  #judge(
    batch: readonly WaitingCall[],
    rows: readonly KeyRow[],
  ): { answers: (() => void)[]; planned: { state: KeyState; plan: Plan<unknown> | undefined }[] } {
    const answers: (() => void)[] = [];
    const planned: { state: KeyState; plan: Plan<unknown> | undefined }[] = [];
    for (const [index, { call, resolve, reject }] of batch.entries()) {
      const row = rows[index];
      let state: KeyState | undefined;
      try {
        if (row === undefined) throw noSuchBucket(call.bucket);
        state = stateOfKey(call.key, row, this.#context.database.location.shown);
        if (index === 0) this.#context.onSettings(call.bucket, state.settings);
        const plan = call.judge(state);
        planned.push({ state, plan });
        answers.push(() => resolve(plan.answer));
      } catch (error) {
        if (state !== undefined) planned.push({ state, plan: undefined });
        answers.push(() => reject(error));
      }
    }
    return { answers, planned };
  }
}
