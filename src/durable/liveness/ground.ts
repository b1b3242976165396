// Ground: the holders of a shared directory and their temp directories. It knows which processes
// have joined and which are alive, and sweeps what the dead ones left.
import type { HolderInfo, OpenOptions } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import { objectOf, textOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Ports } from "../../ports/ports.ts";
import type { RollingChainOptions } from "../chain/rolling-chain-options.ts";
import { RollingChain } from "../chain/rolling-chain.ts";
import { checkMount } from "../mount/mount-check.ts";
import { ensureDirectory, parentOf } from "../publish/directory.ts";
import { checkExpectedStore, decideRecord, findDecision } from "../publish/record-file.ts";
import type { Staging } from "../publish/staging.ts";
import { DeadHolderCleanup } from "./dead-holder-cleanup.ts";
import { GroundLayout, type HolderRecord } from "./holder-record.ts";
import { HolderRecords, type DamagedHolder } from "./holder-records.ts";
import { HolderSession, type HolderSessionOptions } from "./holder-session.ts";
import type { Liveness } from "./liveness.ts";
import { LivenessJudge, type HolderState } from "./liveness-judge.ts";
import { withServerClock } from "./server-age.ts";

/** The maximum of a timer. */
const leaseMsMax = 2 ** 31 - 1;

/** Options of `openGround`. */
export interface GroundOptions extends Readonly<OpenOptions> {
  /** A process that is silent for this long is dead. Default 30,000. */
  readonly leaseMs?: number | undefined;
  /** A name for people, such as "till 3". Default: none. */
  readonly name?: string | undefined;
}

/** A holder and its state. */
export interface KnownHolder {
  /** The record of the holder. */
  readonly holder: HolderRecord;
  /** Its state when it was observed. */
  readonly state: HolderState;
}

/**
 * A directory that processes join as holders. It reports which holders are alive, and removes the
 * temp files of dead ones.
 */
export class Ground implements AsyncDisposable, Liveness {
  /** The ports that the ground works with. */
  readonly ports: Ports;
  /**
   * The names in the ground.
   *
   * @internal
   */
  readonly layout: GroundLayout;
  /** The id of the ground. It never changes. */
  readonly id: string;
  /**
   * Judges which holders are alive.
   *
   * @internal
   */
  readonly judge: LivenessJudge;
  /**
   * Removes what dead holders left.
   *
   * @internal
   */
  protected readonly cleanup: DeadHolderCleanup;
  readonly #records: HolderRecords;
  readonly #options: HolderSessionOptions;
  /** Undefined in a process that only reads, until it writes. */
  #session: HolderSession | undefined;
  #joining: Promise<HolderSession> | undefined;
  #closing: Promise<void> | undefined;

  protected constructor(
    ports: Ports,
    layout: GroundLayout,
    id: string,
    session: HolderSession | undefined,
    options: HolderSessionOptions,
  ) {
    this.ports = ports;
    this.layout = layout;
    this.id = id;
    this.judge = new LivenessJudge(ports, layout);
    this.#records = new HolderRecords(ports.disk, layout);
    this.cleanup = new DeadHolderCleanup(ports, layout);
    this.#session = session;
    this.#options = options;
  }

  /**
   * Joins the ground in `directory` and creates it if it does not exist. Throws NEWER_FORMAT, and
   * UNSUPPORTED_DISK for a mount that loses writes, before it writes anything; NOT_A_STORE and
   * WRONG_STORE if the directory is not what `create` and `id` ask for.
   */
  static async open(ports: Ports, directory: string, wanted: GroundOptions = {}): Promise<Ground> {
    const options = sessionOptionsOf(wanted);
    checkMount(ports, directory);
    const layout = new GroundLayout(directory);
    const known = await findDecision(ports.disk, groundKind, layout.groundRecord);
    checkExpectedStore({ what: "ground", path: directory, found: known }, wanted);
    if (known === undefined) await makeDirectories(ports, layout);
    const session = await HolderSession.begin(ports, layout, options).catch(async (error: unknown) => {
      // A backup may have omitted empty directories.
      if (known === undefined || !hasErrno(error, "ENOENT")) throw error;
      await makeDirectories(ports, layout);
      return await HolderSession.begin(ports, layout, options);
    });
    try {
      const { id } =
        known ?? (await decideRecord(session.staging, groundKind, layout.groundRecord, { id: session.holder.id }));
      return new this(ports, layout, id, session, options);
    } catch (error) {
      await session.end();
      throw error;
    }
  }

  /**
   * Opens the ground in `directory` for a process that reads, and writes nothing. The process joins
   * when a session is requested: every write requests one. If there is no ground, the id is empty.
   */
  static async openUnjoined(ports: Ports, directory: string, wanted: GroundOptions = {}): Promise<Ground> {
    const options = sessionOptionsOf(wanted);
    const layout = new GroundLayout(directory);
    const known = await findDecision(ports.disk, groundKind, layout.groundRecord);
    return new this(ports, layout, known?.id ?? "", undefined, options);
  }

  /** Returns true if a process has joined, or may have, even if the record of the ground cannot be read. */
  static async isInUse(ports: Ports, directory: string): Promise<boolean> {
    return await new this(ports, new GroundLayout(directory), "", undefined, sessionOptionsOf({})).hasOthers();
  }

  /**
   * Returns the session of this process. If the last one ended, for instance after a sleep, it
   * starts a new one: locks of the old session are lost. Throws CLOSED.
   */
  async session(): Promise<HolderSession> {
    if (this.#closing !== undefined) throw holdfastError("CLOSED", `${this.layout.directory} was closed.`, {});
    if (this.#session?.isOver === false) {
      this.#session.watchForDeath();
      return this.#session;
    }
    // All concurrent callers share one session.
    this.#joining ??= this.#beginSession().finally(() => (this.#joining = undefined));
    return await this.#joining;
  }

  /** The directory in which this process writes files that no other process may see yet. */
  get staging(): Staging {
    const { disk, random } = this.ports;
    const directory = async (): Promise<string> => (await this.session()).temp;
    return { disk, random, directory, onSwept: (path) => this.#session?.reportSwept(path) };
  }

  /**
   * The directory of the ground.
   *
   * @internal
   */
  get location(): string {
    return this.layout.directory;
  }

  /**
   * True on a local disk: other processes there give hints.
   *
   * @internal
   */
  get hasHints(): boolean {
    return this.ports.disk.volume.kind === "local";
  }

  /**
   * Returns the path of a part relative to the folder of the ground.
   *
   * @internal
   */
  nameOf(part: string): string {
    const base = parentOf(this.layout.directory);
    return part.startsWith(`${base}/`) ? part.slice(base.length) : "";
  }

  /**
   * Opens a rolling chain in the directory `name`.
   *
   * @internal
   */
  async openChain<T>(name: string, options: RollingChainOptions<T>): Promise<RollingChain<T>> {
    return await RollingChain.open(this.staging, name, options);
  }

  /** Returns every holder that has joined, each observed once. */
  async judgeHolders(): Promise<KnownHolder[]> {
    const known: KnownHolder[] = [];
    for (const holder of await this.#records.list())
      known.push({ holder, state: holder.id === this.#ownId ? "alive" : await this.judge.observe(holder) });
    return known;
  }

  /** Returns true while another process has joined, or may have: nothing may be repaired then. */
  async hasOthers(): Promise<boolean> {
    return (await this.judgeHolders()).some(({ holder, state }) => holder.id !== this.#ownId && state !== "dead");
  }

  /**
   * Returns the holder records that cannot be read. Their heartbeats decide about their holders.
   *
   * @internal
   */
  async damagedHolders(): Promise<DamagedHolder[]> {
    return await this.#records.listDamaged();
  }

  /** Returns every holder that has joined, as other processes see it. */
  async holders(): Promise<HolderInfo[]> {
    const infos: HolderInfo[] = [];
    for (const { holder, state } of await this.judgeHolders()) infos.push(await this.#describe(holder, state));
    return infos;
  }

  /**
   * Observes one holder. Returns `dead` also for one that has ended. `once` (default false) is for
   * a caller that cannot watch it for a whole lease.
   */
  async stateOf(id: string, { once = false }: { readonly once?: boolean } = {}): Promise<HolderState> {
    if (id === this.#ownId) return this.#session?.isOver === false ? "alive" : "dead";
    const holder = await this.#records.find(id);
    if (holder === undefined) {
      this.judge.forget(id);
      return "dead";
    }
    if (!once) return await this.judge.observe(holder);
    return await withServerClock(this.staging, (clock) => this.judge.observeOnce(holder, clock));
  }

  /** Returns the shortest lease of the observed holders of `owned`, at most `leaseMs`. */
  shortestLeaseMs(owned: readonly { readonly holder: string }[], leaseMs: number): number {
    return Math.min(leaseMs, ...owned.map(({ holder }) => this.judge.findLeaseMs(holder) ?? leaseMs));
  }

  /** Returns a holder, even a dead one. Returns undefined if it has ended and left nothing. */
  async findHolder(id: string): Promise<HolderInfo | undefined> {
    const holder = await this.#records.find(id);
    if (holder !== undefined) return await this.#describe(holder, await this.stateOf(id));
    const dead = await this.#records.findDead(id);
    return dead === undefined ? undefined : await this.#describe(dead, "dead");
  }

  async #describe(holder: HolderRecord, state: HolderState): Promise<HolderInfo> {
    const { id, name, host, pid, version, leaseMs } = holder;
    const named = name === "" ? {} : { name };
    const lastSeenAt = new Date(await this.judge.lastSeenMs(holder));
    return { id, ...named, host, pid, version, leaseMs, state, startedAt: new Date(holder.startedAtMs), lastSeenAt };
  }

  /**
   * Removes the files of dead holders, and returns the holders that it found dead. Any number of
   * processes may do it at once.
   */
  async sweep(): Promise<HolderRecord[]> {
    const own = (this.#session ?? (await this.session())).holder;
    const others = (await this.#records.list()).filter(({ id }) => id !== own.id);
    const dead = others.length === 0 ? [] : await this.#deadOf(others);
    for (const holder of dead) {
      await this.cleanup.declareDead(holder);
      this.judge.forget(holder.id);
    }
    await this.cleanup.sweep(this.staging, own, dead);
    return dead;
  }

  /**
   * Declares a dead holder dead and removes its temp directory, so that it can publish nothing it
   * has staged. Returns false while the holder is or may be alive, and while a file in its
   * directory cannot be removed. `id` must be the id of a holder that has joined.
   */
  async settle(id: string): Promise<boolean> {
    if (id === this.#ownId && this.#session?.isOver === false) return false;
    const holder = await this.#records.find(id);
    if (holder !== undefined) {
      if ((await this.judge.observe(holder)) !== "dead") return false;
      await this.cleanup.declareDead(holder);
    }
    this.judge.forget(id);
    return await this.cleanup.settle(id);
  }

  async #deadOf(holders: readonly HolderRecord[]): Promise<HolderRecord[]> {
    // On a local disk the kernel proves a death, if the record names the process. Elsewhere one
    // observation must do: a process that opens, works and closes never watches for a whole lease,
    // and the files of the dead would stay forever.
    const isProvable = (holder: HolderRecord): boolean => this.ports.disk.volume.kind === "local" && holder.pid !== 0;
    if (holders.every(isProvable)) return await filterDead(holders, (holder) => this.judge.observe(holder));
    return await withServerClock(this.staging, (clock) =>
      filterDead(holders, (holder) =>
        isProvable(holder) ? this.judge.observe(holder) : this.judge.observeOnce(holder, clock),
      ),
    );
  }

  /** Ends the session of this process. After it, `session` throws CLOSED. */
  async close(): Promise<void> {
    // A second caller waits for the end. Only the first gets the error.
    if (this.#closing !== undefined) return await this.#closing.catch(() => undefined);
    await (this.#closing = this.#close());
  }

  async #close(): Promise<void> {
    // The caller of that session gets the error; the session before it still has to end.
    await this.#joining?.catch(() => undefined);
    await this.#session?.end();
  }

  /** Closes the ground, as `close` does. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #beginSession(): Promise<HolderSession> {
    const before = this.#session;
    // Check before anything is written, as `open` does.
    if (before === undefined) checkMount(this.ports, this.layout.directory);
    const session = await HolderSession.begin(this.ports, this.layout, this.#options);
    this.#session = session;
    if (before === undefined) return session;
    await before.abandon();
    // This process knows best that its old session is over. Otherwise a laptop would leave files every night that it
    // sleeps. If they cannot be removed now, other processes will find them.
    await this.cleanup.declareDeadAndRemove(before.holder).catch(() => undefined);
    return session;
  }

  get #ownId(): string | undefined {
    return this.#session?.holder.id;
  }
}

async function filterDead(
  holders: readonly HolderRecord[],
  observe: (holder: HolderRecord) => Promise<HolderState>,
): Promise<HolderRecord[]> {
  const dead: HolderRecord[] = [];
  for (const holder of holders) if ((await observe(holder)) === "dead") dead.push(holder);
  return dead;
}

function sessionOptionsOf({ leaseMs = 30_000, name = "" }: GroundOptions): HolderSessionOptions {
  if (!(leaseMs >= 1 && leaseMs <= leaseMsMax))
    throw new RangeError(`leaseMs must be a number from 1 to ${leaseMsMax}, not ${leaseMs}.`);
  return { leaseMs: Math.round(leaseMs), name };
}

async function makeDirectories({ disk }: Ports, layout: GroundLayout): Promise<void> {
  await ensureDirectory(disk, layout.holders);
  await ensureDirectory(disk, layout.temps);
}

const groundKind: RecordKind<{ readonly id: string }> = {
  kind: "ground",
  decode: (value) => ({ id: textOf(objectOf(value).id) }),
};
