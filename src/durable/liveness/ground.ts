// Ground: the holders of one place and their temp directories; who joins it, who is alive in it, and what is swept after the dead.
import type { HolderInfo, OpenOptions } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import { objectOf, textOf } from "../../format/decoding.ts";
import { isId } from "../../format/id.ts";
import type { RecordKind } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Ports } from "../../ports/ports.ts";
import { ensureDirectory, removeDirectory } from "../publish/directory.ts";
import { GroundLayout, holderKind, type HolderRecord } from "./holder-record.ts";
import { HolderSession, type HolderSessionOptions } from "./holder-session.ts";
import { decideRecord, findDecision, findRecord, mustBeMeant } from "../publish/record-file.ts";
import { DeadHolderCleanup } from "./dead-holder-cleanup.ts";
import { withProbe } from "./server-age.ts";
import type { Staging } from "../publish/staging.ts";
import { isConfirmed } from "./suspicion.ts";
import { checkMount } from "../mount/mount-check.ts";
import { LivenessJudge, type HolderState } from "./liveness-judge.ts";

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
  readonly witness: LivenessJudge;
  readonly #remains: DeadHolderCleanup;
  readonly #options: HolderSessionOptions;
  /** Undefined for one who only looks, until it needs one. */
  #life: HolderSession | undefined;
  #joining: Promise<HolderSession> | undefined;
  #closing: Promise<void> | undefined;

  protected constructor(
    ports: Ports,
    layout: GroundLayout,
    id: string,
    life: HolderSession | undefined,
    options: HolderSessionOptions,
  ) {
    this.ports = ports;
    this.layout = layout;
    this.id = id;
    this.witness = new LivenessJudge(ports, layout);
    this.#remains = this.newRemains();
    this.#life = life;
    this.#options = options;
  }

  protected newRemains(): DeadHolderCleanup {
    return new DeadHolderCleanup(this.ports, this.layout);
  }

  /** Joins the ground in `directory`, making it if it is not there. NEWER_FORMAT, and UNSUPPORTED_DISK for a mount that loses writes, before anything is written. */
  static async open(ports: Ports, directory: string, wanted: GroundOptions = {}): Promise<Ground> {
    const options = checkLife(wanted);
    checkMount(ports, directory);
    const layout = new GroundLayout(directory);
    // Before anything is written: a newer format is refused here.
    const known = await findDecision(ports.disk, groundKind, layout.groundRecord);
    mustBeMeant({ what: "ground", path: directory, found: known }, wanted);
    if (known === undefined) await makeDirectories(ports, layout);
    const life = await HolderSession.begin(ports, layout, options).catch(async (error: unknown) => {
      // A backup may have left out what was empty.
      if (known === undefined || !hasErrno(error, "ENOENT")) throw error;
      await makeDirectories(ports, layout);
      return await HolderSession.begin(ports, layout, options);
    });
    try {
      const { id } =
        known ?? (await decideRecord(life.staging, groundKind, layout.groundRecord, { id: life.holder.id }));
      return new this(ports, layout, id, life, options);
    } catch (error) {
      await life.end();
      throw error;
    }
  }

  /**
   * The ground in `directory` for one who only looks, and may be allowed no more: nothing is written, and nobody learns of it. It joins when a life is asked for, as whatever writes
   * here does; then that fails, if it has to. Where no ground was ever made, its id is empty.
   */
  static async look(ports: Ports, directory: string, wanted: GroundOptions = {}): Promise<Ground> {
    const options = checkLife(wanted);
    const layout = new GroundLayout(directory);
    const known = await findDecision(ports.disk, groundKind, layout.groundRecord);
    return new this(ports, layout, known?.id ?? "", undefined, options);
  }

  /** The life that this process has here now. When the last one is over (after a sleep, say), a new one begins: what was held in the old one is lost. */
  async life(): Promise<HolderSession> {
    if (this.#closing !== undefined) throw holdfastError("CLOSED", `${this.layout.directory} was closed.`, {});
    if (this.#life?.isOver === false) {
      this.#life.watchForDeath();
      return this.#life;
    }
    // One for all who ask at the same time.
    this.#joining ??= this.#begin().finally(() => (this.#joining = undefined));
    return await this.#joining;
  }

  /** Where this process writes what nobody may see yet. */
  get staging(): Staging {
    const { disk, random } = this.ports;
    const directory = async (): Promise<string> => (await this.life()).temp;
    return { disk, random, directory, onSwept: (path) => this.#life?.sweptAt(path) };
  }

  /** Everybody who counts here, each looked at once. */
  async look(): Promise<KnownHolder[]> {
    const known: KnownHolder[] = [];
    for (const holder of await this.#holders())
      known.push({ holder, state: holder.id === this.#ownId ? "alive" : await this.witness.look(holder) });
    return known;
  }

  async holders(): Promise<HolderInfo[]> {
    const infos: HolderInfo[] = [];
    for (const { holder, state } of await this.look()) infos.push(await this.#describe(holder, state));
    return infos;
  }

  /** One look at one holder. "dead" also for one that has ended: it will never act again. With `once`, for somebody who cannot watch it for a lease. */
  async stateOf(id: string, { once = false }: { readonly once?: boolean } = {}): Promise<HolderState> {
    if (id === this.#ownId) return this.#life?.isOver === false ? "alive" : "dead";
    const holder = await findRecord(this.ports.disk, holderKind, this.layout.record(id));
    if (holder === undefined) {
      this.witness.forget(id);
      return "dead";
    }
    return once
      ? await withProbe(this.staging, (probe) => this.#lookOnce(holder, probe))
      : await this.witness.look(holder);
  }

  /** The shortest lease of those of `owned` whose holders were looked at, and `leaseMs`. */
  shortestLeaseMs(owned: readonly { readonly holder: string }[], leaseMs: number): number {
    return Math.min(leaseMs, ...owned.map(({ holder }) => this.witness.findLeaseMs(holder) ?? leaseMs));
  }

  async #deadOf(holders: readonly HolderRecord[]): Promise<HolderRecord[]> {
    // On a local disk a death is proven by the kernel. On a share also those count whom nobody has watched for a lease: who opens, works and closes never does,
    // and what was left would be there for ever.
    if (this.ports.disk.volume.kind === "local")
      return await this.#deadBy(holders, (holder) => this.witness.look(holder));
    return await withProbe(this.staging, (probe) => this.#deadBy(holders, (holder) => this.#lookOnce(holder, probe)));
  }

  async #deadBy(
    holders: readonly HolderRecord[],
    look: (holder: HolderRecord) => Promise<HolderState>,
  ): Promise<HolderRecord[]> {
    const dead: HolderRecord[] = [];
    for (const holder of holders) if ((await look(holder)) === "dead") dead.push(holder);
    return dead;
  }

  /** By somebody who cannot watch for a lease. Who has seen some of the silence himself needs no suspicion on the disk, and no second look to confirm it. */
  async #lookOnce(holder: HolderRecord, probe: string): Promise<HolderState> {
    const state = await this.witness.lookOnce(holder, probe);
    if (state === "dead" || !(await this.witness.looksOld(holder, probe))) return state;
    return (await isConfirmed(this, holder, this.witness.beatOf(holder), probe)) ? "dead" : state;
  }

  /** A holder as people want to know it, also when it is dead; undefined when it has ended and left nothing. */
  async findHolder(id: string): Promise<HolderInfo | undefined> {
    const { disk } = this.ports;
    const holder = await findRecord(disk, holderKind, this.layout.record(id));
    if (holder !== undefined) return await this.#describe(holder, await this.stateOf(id));
    const dead = await findRecord(disk, holderKind, this.layout.deathRecord(id));
    return dead === undefined ? undefined : await this.#describe(dead, "dead");
  }

  async #describe(holder: HolderRecord, state: HolderState): Promise<HolderInfo> {
    const { id, host, pid, version } = holder;
    const lastSeenAt = new Date(await this.witness.lastSeenMs(holder));
    return { id, host, pid, version, state, startedAt: new Date(holder.startedAtMs), lastSeenAt };
  }

  /** Removes what the dead have left; returns whom it found dead. Any number of processes may do it at once. */
  async sweep(): Promise<HolderRecord[]> {
    const own = (this.#life ?? (await this.life())).holder;
    const others = (await this.#holders()).filter(({ id }) => id !== own.id);
    const dead = others.length === 0 ? [] : await this.#deadOf(others);
    for (const holder of dead) {
      await this.#remains.declareDead(holder);
      this.witness.forget(holder.id);
    }
    await this.#remains.remove(this.staging, own, dead);
    return dead;
  }

  async settle(id: string): Promise<boolean> {
    if (id === this.#ownId && this.#life?.isOver === false) return false;
    if ((await this.stateOf(id)) !== "dead") return false;
    const holder = await findRecord(this.ports.disk, holderKind, this.layout.record(id));
    if (holder !== undefined) await this.#remains.bury(holder);
    return await removeDirectory(this.ports.disk, this.layout.temp(id));
  }

  async close(): Promise<void> {
    // Whoever asks again waits for the end; why it failed was told to the first.
    if (this.#closing !== undefined) return await this.#closing.catch(() => undefined);
    await (this.#closing = this.#close());
  }

  async #close(): Promise<void> {
    // Whoever asked for that life is told why it could not begin; the one before it is still to be ended.
    await this.#joining?.catch(() => undefined);
    await this.#life?.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #begin(): Promise<HolderSession> {
    const before = this.#life;
    // Before anything is written, as at an opening.
    if (before === undefined) checkMount(this.ports, this.layout.directory);
    const life = await HolderSession.begin(this.ports, this.layout, this.#options);
    this.#life = life;
    if (before === undefined) return life;
    await before.abandon();
    // Nobody knows better that it is over; else every night in which a laptop sleeps would leave something. Whatever stands in the way: then others find it.
    await this.#remains.bury(before.holder).catch(() => undefined);
    return life;
  }

  get #ownId(): string | undefined {
    return this.#life?.holder.id;
  }

  async #holders(): Promise<HolderRecord[]> {
    const holders: HolderRecord[] = [];
    for (const name of await this.ports.disk.list(this.layout.holders)) {
      const id = name.replace(/\.json$/, "");
      // Foreign files are none of our business.
      if (id === name || !isId(id)) continue;
      const holder = await findRecord(this.ports.disk, holderKind, this.layout.record(id));
      // Ended or declared dead since the listing.
      if (holder === undefined) continue;
      if (holder.id !== id) throw this.#copied(holder.id, this.layout.record(id));
      holders.push(holder);
    }
    return holders;
  }

  #copied(id: string, path: string): Error {
    const message = `${path} says that it is of the holder ${id}: it was copied or renamed. Move it away.`;
    return holdfastError("CORRUPT", message, { path });
  }
}

function checkLife({ leaseMs = 30_000, name = "" }: GroundOptions): HolderSessionOptions {
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
