// Ground: the holders of one place and their temp directories. It says which processes have joined,
// which are alive, and sweeps what the dead ones left.
import type { HolderInfo, OpenOptions } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import { objectOf, textOf } from "../../format/decoding.ts";
import { isId } from "../../format/id.ts";
import type { RecordKind } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Ports } from "../../ports/ports.ts";
import { checkMount } from "../mount/mount-check.ts";
import { ensureDirectory } from "../publish/directory.ts";
import { checkExpectedStore, decideRecord, findDecision, findRecord } from "../publish/record-file.ts";
import type { Staging } from "../publish/staging.ts";
import { DeadHolderCleanup } from "./dead-holder-cleanup.ts";
import { GroundLayout, holderKind, type HolderRecord } from "./holder-record.ts";
import { HolderSession, type HolderSessionOptions } from "./holder-session.ts";
import { LivenessJudge, type HolderState } from "./liveness-judge.ts";
import { withServerClock } from "./server-age.ts";

/** As far as timers reach. */
const leaseMsMax = 2 ** 31 - 1;

export interface GroundOptions extends Readonly<OpenOptions> {
  /** How long a silent holder counts as alive. Default 30_000. */
  readonly leaseMs?: number | undefined;
  /** For people: "till 3". Default: none. */
  readonly name?: string | undefined;
}

export interface KnownHolder {
  readonly holder: HolderRecord;
  readonly state: HolderState;
}

export class Ground implements AsyncDisposable {
  readonly ports: Ports;
  readonly layout: GroundLayout;
  /** Of the ground itself; put if absent, never changed. */
  readonly id: string;
  readonly judge: LivenessJudge;
  readonly #cleanup: DeadHolderCleanup;
  readonly #options: HolderSessionOptions;
  /** Undefined for a process that only reads, until it writes something. */
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
    this.#cleanup = this.newCleanup();
    this.#session = session;
    this.#options = options;
  }

  protected newCleanup(): DeadHolderCleanup {
    return new DeadHolderCleanup(this.ports, this.layout);
  }

  /**
   * Joins the ground in `directory`, making it if it is not there. Before anything is written:
   * NEWER_FORMAT, and UNSUPPORTED_DISK for a mount that loses writes.
   */
  static async open(ports: Ports, directory: string, wanted: GroundOptions = {}): Promise<Ground> {
    const options = sessionOptionsOf(wanted);
    checkMount(ports, directory);
    const layout = new GroundLayout(directory);
    const known = await findDecision(ports.disk, groundKind, layout.groundRecord);
    checkExpectedStore({ what: "ground", path: directory, found: known }, wanted);
    if (known === undefined) await makeDirectories(ports, layout);
    const session = await HolderSession.begin(ports, layout, options).catch(async (error: unknown) => {
      // A backup may have left out empty directories.
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
   * The ground in `directory` for a process that reads, and perhaps may do no more. Nothing is
   * written. It joins when a session is asked for, as every write does; if joining fails, that
   * write fails. Where no ground was ever made, the id is empty.
   */
  static async openUnjoined(ports: Ports, directory: string, wanted: GroundOptions = {}): Promise<Ground> {
    const options = sessionOptionsOf(wanted);
    const layout = new GroundLayout(directory);
    const known = await findDecision(ports.disk, groundKind, layout.groundRecord);
    return new this(ports, layout, known?.id ?? "", undefined, options);
  }

  /**
   * The session of this process. When the last one is over, after a sleep for example, a new one
   * begins: what was held in the old one is lost.
   */
  async session(): Promise<HolderSession> {
    if (this.#closing !== undefined) throw holdfastError("CLOSED", `${this.layout.directory} was closed.`, {});
    if (this.#session?.isOver === false) {
      this.#session.watchForDeath();
      return this.#session;
    }
    // One for all callers of this moment.
    this.#joining ??= this.#beginSession().finally(() => (this.#joining = undefined));
    return await this.#joining;
  }

  /** Where this process writes files that no other process may see yet. */
  get staging(): Staging {
    const { disk, random } = this.ports;
    const directory = async (): Promise<string> => (await this.session()).temp;
    return { disk, random, directory, onSwept: (path) => this.#session?.reportSwept(path) };
  }

  /** Every holder that has joined, each observed once. */
  async judgeHolders(): Promise<KnownHolder[]> {
    const known: KnownHolder[] = [];
    for (const holder of await this.#holders())
      known.push({ holder, state: holder.id === this.#ownId ? "alive" : await this.judge.observe(holder) });
    return known;
  }

  async holders(): Promise<HolderInfo[]> {
    const infos: HolderInfo[] = [];
    for (const { holder, state } of await this.judgeHolders()) infos.push(await this.#describe(holder, state));
    return infos;
  }

  /**
   * One observation of one holder. "dead" also for one that has ended: it will never act again.
   * `once` is for a caller that cannot watch it for a lease.
   */
  async stateOf(id: string, { once = false }: { readonly once?: boolean } = {}): Promise<HolderState> {
    if (id === this.#ownId) return this.#session?.isOver === false ? "alive" : "dead";
    const holder = await findRecord(this.ports.disk, holderKind, this.layout.record(id));
    if (holder === undefined) {
      this.judge.forget(id);
      return "dead";
    }
    if (!once) return await this.judge.observe(holder);
    return await withServerClock(this.staging, (clock) => this.judge.observeOnce(holder, clock));
  }

  /** The shortest lease of those of `owned` whose holders were observed, and `leaseMs`. */
  shortestLeaseMs(owned: readonly { readonly holder: string }[], leaseMs: number): number {
    return Math.min(leaseMs, ...owned.map(({ holder }) => this.judge.findLeaseMs(holder) ?? leaseMs));
  }

  /** A holder for people, also a dead one; undefined when it has ended and left nothing. */
  async findHolder(id: string): Promise<HolderInfo | undefined> {
    const { disk } = this.ports;
    const holder = await findRecord(disk, holderKind, this.layout.record(id));
    if (holder !== undefined) return await this.#describe(holder, await this.stateOf(id));
    const dead = await findRecord(disk, holderKind, this.layout.deathRecord(id));
    return dead === undefined ? undefined : await this.#describe(dead, "dead");
  }

  async #describe(holder: HolderRecord, state: HolderState): Promise<HolderInfo> {
    const { id, name, host, pid, version } = holder;
    const named = name === "" ? {} : { name };
    const lastSeenAt = new Date(await this.judge.lastSeenMs(holder));
    return { id, ...named, host, pid, version, state, startedAt: new Date(holder.startedAtMs), lastSeenAt };
  }

  /**
   * Removes what dead holders have left; returns those that it found dead. Any number of processes
   * may do it at once.
   */
  async sweep(): Promise<HolderRecord[]> {
    const own = (this.#session ?? (await this.session())).holder;
    const others = (await this.#holders()).filter(({ id }) => id !== own.id);
    const dead = others.length === 0 ? [] : await this.#deadOf(others);
    for (const holder of dead) {
      await this.#cleanup.declareDead(holder);
      this.judge.forget(holder.id);
    }
    await this.#cleanup.sweep(this.staging, own, dead);
    return dead;
  }

  /**
   * True when that holder is dead, was declared dead, and its temp directory is gone: it can publish
   * nothing that it has staged, whenever it wakes. Declares and removes what is left to do. False
   * while it is or may be alive, and while something in its directory cannot be removed. `id` must be
   * of a holder that had joined.
   */
  async settle(id: string): Promise<boolean> {
    if (id === this.#ownId && this.#session?.isOver === false) return false;
    const holder = await findRecord(this.ports.disk, holderKind, this.layout.record(id));
    if (holder !== undefined) {
      if ((await this.judge.observe(holder)) !== "dead") return false;
      await this.#cleanup.declareDead(holder);
    }
    this.judge.forget(id);
    return await this.#cleanup.settle(id);
  }

  async #deadOf(holders: readonly HolderRecord[]): Promise<HolderRecord[]> {
    // On a local disk the kernel proves a death. On a share one observation has to do: a process
    // that opens, works and closes never watches for a lease, and what the dead left would be there
    // for ever.
    if (this.ports.disk.volume.kind === "local")
      return await filterDead(holders, (holder) => this.judge.observe(holder));
    return await withServerClock(this.staging, (clock) =>
      filterDead(holders, (holder) => this.judge.observeOnce(holder, clock)),
    );
  }

  async close(): Promise<void> {
    // A second caller waits for the end; only the first is told why it failed.
    if (this.#closing !== undefined) return await this.#closing.catch(() => undefined);
    await (this.#closing = this.#close());
  }

  async #close(): Promise<void> {
    // The caller of that session is told why it could not begin; the session before it still has to
    // end.
    await this.#joining?.catch(() => undefined);
    await this.#session?.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #beginSession(): Promise<HolderSession> {
    const before = this.#session;
    // Before anything is written, as in `open`.
    if (before === undefined) checkMount(this.ports, this.layout.directory);
    const session = await HolderSession.begin(this.ports, this.layout, this.#options);
    this.#session = session;
    if (before === undefined) return session;
    await before.abandon();
    // This process knows best that the session is over; otherwise a laptop would leave files each
    // night that it sleeps. If they cannot be removed now, other processes find them.
    await this.#cleanup.declareDeadAndRemove(before.holder).catch(() => undefined);
    return session;
  }

  get #ownId(): string | undefined {
    return this.#session?.holder.id;
  }

  async #holders(): Promise<HolderRecord[]> {
    const holders: HolderRecord[] = [];
    for (const name of await this.ports.disk.list(this.layout.holders)) {
      const id = name.replace(/\.json$/, "");
      // Foreign files are left alone.
      if (id === name || !isId(id)) continue;
      const holder = await findRecord(this.ports.disk, holderKind, this.layout.record(id));
      // Ended or declared dead since the listing.
      if (holder === undefined) continue;
      if (holder.id !== id) throw copied(holder.id, this.layout.record(id));
      holders.push(holder);
    }
    return holders;
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

function copied(id: string, path: string): Error {
  const message = `${path} says that it is of the holder ${id}: it was copied or renamed. Move it away.`;
  return holdfastError("CORRUPT", message, { path });
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
