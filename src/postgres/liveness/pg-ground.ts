// PgGround: the processes of one store in a database, judged only by the clock of the server. Its
// chains are rows.
import type { HolderInfo } from "../../common.ts";
import type { RollingChainOptions } from "../../durable/chain/rolling-chain-options.ts";
import type { StateChain } from "../../durable/chain/state-chain.ts";
import type { HolderRecord } from "../../durable/liveness/holder-record.ts";
import type { Liveness } from "../../durable/liveness/liveness.ts";
import type { HolderState } from "../../durable/liveness/liveness-judge.ts";
import { holdfastError } from "../../errors.ts";
import { makeId } from "../../format/id.ts";
import { packageVersion } from "../../format/version.ts";
import type { Ports } from "../../ports/ports.ts";
import { signal } from "../../telemetry/signals.ts";
import type { Database } from "../connection/database.ts";
import { PgChain } from "../locks/pg-chain.ts";
import type { Signals } from "../signals.ts";
import { PgSession } from "./session.ts";

/** A holder is late after a silence of this part of its lease. */
const silentPart = 1 / 2;
/** How long records of dead holders stay, for people who ask who held a lock. */
const deadKept = "1 day";
const leaseMsMax = 2 ** 31 - 1;

export interface PgGroundOptions {
  /** A process that is silent for this long is dead. Default 30,000. */
  readonly leaseMs?: number | undefined;
  /** A name for people. Default: none. */
  readonly name?: string | undefined;
}

export interface PgGroundContext {
  readonly database: Database;
  readonly ports: Pick<Ports, "clock" | "random" | "host">;
  readonly signals: Signals;
  /** The part of the ground, with its id. */
  readonly part: { readonly p: number; readonly id: string };
}

interface HolderRow {
  readonly record: HolderRecord;
  readonly seen_ms: number;
  readonly silent_ms: number;
  readonly is_dead: boolean;
}

const holderColumns = `record, dead is not null as is_dead, (extract(epoch from seen) * 1000)::float8 as seen_ms,
  (extract(epoch from clock_timestamp() - seen) * 1000)::float8 as silent_ms`;
const isSilent = "seen < clock_timestamp() - make_interval(secs => lease_ms / 1000.0)";

export class PgGround implements Liveness {
  readonly ports: Liveness["ports"];
  readonly database: Database;
  readonly signals: Signals;
  readonly part: number;
  readonly id: string;
  readonly hasHints = false;
  readonly #leaseMs: number;
  readonly #name: string;
  /** Leases of the holders that were read. */
  readonly #leases = new Map<string, number>();
  #session: PgSession | undefined;
  #joining: Promise<PgSession> | undefined;
  #closing: Promise<void> | undefined;

  constructor(
    { database, ports, signals, part }: PgGroundContext,
    { leaseMs = 30_000, name = "" }: PgGroundOptions = {},
  ) {
    if (!(leaseMs >= 1 && leaseMs <= leaseMsMax))
      throw new RangeError(`leaseMs must be a number from 1 to ${leaseMsMax}, not ${leaseMs}.`);
    this.ports = { ...ports, watch: signals };
    this.database = database;
    this.signals = signals;
    this.part = part.p;
    this.id = part.id;
    this.#leaseMs = Math.round(leaseMs);
    this.#name = name;
  }

  get location(): string {
    return this.database.location.shown;
  }

  /** Returns the name of a part unchanged: parts have no folder. */
  nameOf(part: string): string {
    return part;
  }

  async openChain<T>(name: string, options: RollingChainOptions<T>): Promise<StateChain<T>> {
    return new PgChain({ database: this.database, random: this.ports.random, part: this.part, name }, options);
  }

  async session(): Promise<PgSession> {
    if (this.#closing !== undefined) throw holdfastError("CLOSED", `${this.location} was closed.`, {});
    if (this.#session?.isOver === false) return this.#session;
    // All concurrent callers share one session.
    this.#joining ??= this.#begin().finally(() => (this.#joining = undefined));
    return await this.#joining;
  }

  async stateOf(id: string): Promise<HolderState> {
    return (await this.findHolder(id))?.state ?? "dead";
  }

  async findHolder(id: string): Promise<HolderInfo | undefined> {
    const [row] = await this.database.query<HolderRow>(
      `select ${holderColumns} from hf_holder where p = $1 and id = $2`,
      [this.part, id],
    );
    return row && (await this.#judged(row));
  }

  async holders(): Promise<HolderInfo[]> {
    const rows = await this.database.query<HolderRow>(
      `select ${holderColumns} from hf_holder where p = $1 and dead is null order by id`,
      [this.part],
    );
    const infos: HolderInfo[] = [];
    for (const row of rows) infos.push(await this.#judged(row));
    return infos;
  }

  shortestLeaseMs(owned: readonly { readonly holder: string }[], leaseMs: number): number {
    return Math.min(leaseMs, ...owned.map(({ holder }) => this.#leases.get(holder) ?? leaseMs));
  }

  async sweep(): Promise<void> {
    const dead = await this.database.query<{ record: HolderRecord }>(
      `update hf_holder set dead = clock_timestamp() where p = $1 and dead is null and ${isSilent} returning record`,
      [this.part],
    );
    for (const { record } of dead) this.#reportDead(record);
    await this.database.query(
      `delete from hf_holder where p = $1 and dead < clock_timestamp() - interval '${deadKept}'`,
      [this.part],
    );
  }

  async close(): Promise<void> {
    await (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    // The caller of that session gets the error.
    await this.#joining?.catch(() => undefined);
    await this.#session?.end();
  }

  async #begin(): Promise<PgSession> {
    const { clock, random, host } = this.ports;
    const { name, pid, startedAtMs, bootId, processSpace, startMark } = host;
    const holder: HolderRecord = {
      id: makeId(clock.wallMs(), random.bytes(16)),
      name: this.#name,
      host: name,
      pid,
      startedAtMs,
      version: packageVersion,
      leaseMs: this.#leaseMs,
      bootId,
      processSpace,
      startMark,
      isLocal: false,
      beatIdentity: "",
    };
    const before = this.#session;
    await before?.abandon();
    const parts = { database: this.database, part: this.part, clock, signals: this.signals, holder };
    return (this.#session = await PgSession.begin(parts, before?.holder.id));
  }

  /**
   * Describes a holder. If its lease is over, one statement declares it dead; a late beat cannot
   * undo that.
   */
  async #judged({ record, seen_ms, silent_ms, is_dead }: HolderRow): Promise<HolderInfo> {
    const { id, name, host, pid, version, leaseMs, startedAtMs } = record;
    this.#leases.set(id, leaseMs);
    const isOwnEnd = id === this.#session?.holder.id && this.#session.isOver;
    const isDead = is_dead || isOwnEnd || (silent_ms > leaseMs && (await this.#declareDead(id)));
    const state = isDead ? "dead" : silent_ms > silentPart * leaseMs ? "silent" : "alive";
    const named = name === "" ? {} : { name };
    const times = { startedAt: new Date(startedAtMs), lastSeenAt: new Date(seen_ms) };
    return { id, ...named, host, pid, version, leaseMs, state, ...times };
  }

  #reportDead({ id: holder, host, pid }: HolderRecord): void {
    signal("holdfast:process.dead", () => ({ location: this.location, holder, host, pid }));
  }

  async #declareDead(id: string): Promise<boolean> {
    const dead = await this.database.query<{ record: HolderRecord }>(
      `update hf_holder set dead = clock_timestamp() where p = $1 and id = $2 and dead is null and ${isSilent}
       returning record`,
      [this.part, id],
    );
    for (const { record } of dead) this.#reportDead(record);
    const [row] = await this.database.query<{ is_dead: boolean }>(
      "select dead is not null as is_dead from hf_holder where p = $1 and id = $2",
      [this.part, id],
    );
    return row?.is_dead ?? true;
  }
}
