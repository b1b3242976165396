// PgSession: the time for which this process counts as alive in a store of a database. Others judge
// it by the server's clock; it ends itself earlier, by its own clocks.
import type { Session } from "../../durable/liveness/liveness.ts";
import type { HolderRecord } from "../../durable/liveness/holder-record.ts";
import { beatPart, ownPart } from "../../durable/liveness/own-heartbeat.ts";
import { holdfastError } from "../../errors.ts";
import { elapsedMs, type BeatTimes } from "../../ports/heart.ts";
import type { Clock } from "../../ports/clock.ts";
import { signal } from "../../telemetry/signals.ts";
import { driverPath } from "../connection/driver.ts";
import type { Database } from "../connection/database.ts";
import type { Signals } from "../signals.ts";
import { Heart } from "./heart.ts";
import type { HeartReport } from "./heart-program.ts";

/** A command that ends within this part of a lease never starts the thread. */
const firstBeatPart = 1 / 8;

export interface PgSessionContext {
  readonly database: Database;
  readonly part: number;
  readonly clock: Clock;
  readonly signals: Signals;
  readonly holder: HolderRecord;
}

export class PgSession implements Session {
  readonly holder: HolderRecord;
  readonly #context: PgSessionContext;
  readonly #over = new AbortController();
  /** When the statement of the last beat was sent. */
  #lastBeat: BeatTimes;
  #heart: Heart | undefined;
  #stopAsking: (() => void) | undefined;

  private constructor(context: PgSessionContext, begun: BeatTimes) {
    this.holder = context.holder;
    this.#context = context;
    this.#lastBeat = begun;
  }

  /**
   * Begins a session. `before`: the previous session of this process, which is over, and is also
   * declared dead for others.
   */
  static async begin(context: PgSessionContext, before: string | undefined): Promise<PgSession> {
    const { database, part, clock, holder } = context;
    const begun = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
    if (before !== undefined)
      await database.query("update hf_holder set dead = clock_timestamp() where p = $1 and id = $2 and dead is null", [
        part,
        before,
      ]);
    await database.query(
      "insert into hf_holder (p, id, record, lease_ms) values ($1, $2, $3, $4) on conflict do nothing",
      [part, holder.id, JSON.stringify(holder), holder.leaseMs],
    );
    const session = new PgSession(context, begun);
    session.#watch();
    return session;
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  get isOver(): boolean {
    if (this.#over.signal.aborted) return true;
    if (this.#leftMs() > 0) return false;
    this.#finish(
      `no heartbeat reached the server for ${ownPart} of its lease of ${this.holder.leaseMs} ms (a sleep, a blocked event loop, or the connection)`,
    );
    return true;
  }

  throwIfOver(): void {
    if (this.isOver) this.signal.throwIfAborted();
  }

  /** Call it when a statement shows that others judged this session dead. */
  reportDead(): void {
    this.#finish("others judged it dead");
  }

  /** Ends the session cleanly. */
  async end(): Promise<void> {
    const { database, part } = this.#context;
    this.#finish("it was closed", { isLost: false });
    // Stopped before the row is deleted: a later beat would not find it.
    await this.#heart?.stop();
    await database.query("delete from hf_holder where p = $1 and id = $2", [part, this.holder.id]);
  }

  /** Stops the thread of a session that is over. */
  async abandon(): Promise<void> {
    await this.#heart?.stop();
  }

  #leftMs(): number {
    const { clock } = this.#context;
    this.#lastBeat = this.#heart?.lastBeat() ?? this.#lastBeat;
    const now = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
    return ownPart * this.holder.leaseMs - elapsedMs(this.#lastBeat, now);
  }

  #watch(): void {
    const { clock, signals } = this.#context;
    const { leaseMs } = this.holder;
    const background = { background: true, signal: this.signal };
    // Hints come through the thread, so the first listener starts it.
    this.#stopAsking = signals.onFirstListener(() => this.#startHeart());
    const watch = async (): Promise<void> => {
      await clock.sleep(firstBeatPart * leaseMs, background);
      this.#startHeart();
      while (!this.isOver) await clock.sleep(Math.max(this.#leftMs(), 1), background);
    };
    // It rejects only when the session ends.
    watch().catch(() => undefined);
  }

  #startHeart(): void {
    if (this.#heart !== undefined || this.isOver) return;
    const { database, part, clock, signals } = this.#context;
    const { id, leaseMs } = this.holder;
    this.#heart = new Heart({
      driver: driverPath(),
      connection: database.connection,
      part,
      holder: id,
      everyMs: beatPart * leaseMs,
      stallMs: leaseMs,
      channel: signals.channel,
      clock,
      onReport: (report: HeartReport) => {
        if (report.kind === "hint") signals.wake(report.path);
        else this.reportDead();
      },
    });
  }

  #finish(why: string, { isLost = true } = {}): void {
    if (this.#over.signal.aborted) return;
    const path = this.#context.database.location.shown;
    const message = `${path}: this process no longer counts as alive there, because ${why}. Open it again.`;
    const error = holdfastError("LOCK_LOST", message, { path });
    this.#over.abort(error);
    if (isLost) signal("holdfast:process.lost", () => ({ location: path, holder: this.holder.id, error }));
    this.#stopAsking?.();
    // A session that is over must not look alive to others. It does not matter here whether the
    // thread stops in time.
    this.#heart?.stop().catch(() => undefined);
  }
}
