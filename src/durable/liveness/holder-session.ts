// Liveness, my own side: a life begins with a heartbeat file and a record, and ends for good at its own deadline, whatever others think.
import { holdfastError } from "../../errors.ts";
import { encodeBeat } from "../../format/beat.ts";
import { makeId } from "../../format/id.ts";
import { encodeRecord } from "../../format/record.ts";
import { packageVersion } from "../../format/version.ts";
import type { DiskFile } from "../../ports/disk.ts";
import { elapsedMs, type Beating, type BeatTimes } from "../../ports/heart.ts";
import type { OsLockFile } from "../../ports/os-lock.ts";
import type { Ports } from "../../ports/ports.ts";
import { retryOutage } from "../publish/retry-outage.ts";
import { removeDirectory, unlinkIfThere } from "../publish/directory.ts";
import { holderKind, type GroundLayout, type HolderRecord } from "./holder-record.ts";
import { makeUniqueDirectory } from "../publish/unique-file.ts";
import { putIfAbsent } from "../publish/publish.ts";
import { mustStand, type Staging } from "../publish/staging.ts";

/** The part of a lease after which I stop believing in myself: the rest is for those who judge me by slower clocks. */
const ownPart = 0.8;
/** A command that is done within this part of a lease never starts the thread that beats. */
const firstBeatPart = 1 / 8;
const beatPart = 1 / 4;

export interface HolderSessionOptions {
  readonly leaseMs: number;
  /** For people: "till 3". */
  readonly name: string;
}

export class HolderSession {
  readonly holder: HolderRecord;
  readonly temp: string;
  readonly #ports: Ports;
  readonly #layout: GroundLayout;
  readonly #file: DiskFile;
  readonly #lock: OsLockFile | undefined;
  readonly #over = new AbortController();
  /** When the first beat was written. */
  readonly #begun: BeatTimes;
  #beating: Beating | undefined;
  #lastBeat: BeatTimes;
  /** When it was last looked whether others have declared it dead. */
  #lookedAtMs: number;

  private constructor(
    ports: Ports,
    layout: GroundLayout,
    holder: HolderRecord,
    begun: BeatTimes,
    file: DiskFile,
    lock: OsLockFile | undefined,
  ) {
    this.holder = holder;
    this.temp = layout.temp(holder.id);
    this.#ports = ports;
    this.#layout = layout;
    this.#begun = begun;
    this.#lastBeat = begun;
    this.#lookedAtMs = begun.monotonicMs;
    this.#file = file;
    this.#lock = lock;
  }

  /** Begins a life in a ground whose directories exist. A crash on the way leaves files that count for nothing and are swept. */
  static async begin(ports: Ports, layout: GroundLayout, options: HolderSessionOptions): Promise<HolderSession> {
    // Each time under another id: what was begun when the server went away is nobody's.
    return await retryOutage(ports.disk, layout.directory, () => HolderSession.#begin(ports, layout, options));
  }

  static async #begin(
    ports: Ports,
    layout: GroundLayout,
    { leaseMs, name }: HolderSessionOptions,
  ): Promise<HolderSession> {
    const { disk, clock, random } = ports;
    const id = makeId(clock.wallMs(), random.bytes(16));
    let file: DiskFile | undefined;
    let lock: OsLockFile | undefined;
    try {
      await makeUniqueDirectory(disk, layout.temp(id));
      file = await disk.open(layout.beat(id), "create");
      const begun = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
      await file.write(0, encodeBeat(0, begun.wallMs));
      // On a share a write alone stays in this machine's cache. A local disk shows it to everybody; it need not survive a power cut, because we do not.
      if (disk.volume.kind !== "local") await file.sync();
      // Locked before anybody can learn of us: a beat that can be locked is the proof that its holder is dead.
      lock = await lockBeat(ports, layout.beat(id));
      const holder = describe(ports, id, { leaseMs, name }, lock === undefined ? "" : (await file.stat()).identity);
      const life = new HolderSession(ports, layout, holder, begun, file, lock);
      // Nobody takes it away before we have said that we are here.
      const options = { isPermanent: true };
      if (!(await putIfAbsent(life.staging, layout.record(id), encodeRecord(holderKind, holder), options)))
        throw life.#lost("its id is taken");
      life.#watchOverDeadline();
      return life;
    } catch (error) {
      // What cannot be removed now counts for nothing, and is swept. The record first, which is there if only its sync has failed: the rest stands for it.
      await disk.unlink(layout.record(id)).catch(() => undefined);
      await Promise.allSettled([removeDirectory(disk, layout.temp(id)), disk.unlink(layout.beat(id))]);
      await Promise.allSettled([file?.close(), lock?.close()]);
      throw error;
    }
  }

  get staging(): Staging {
    const { disk, random } = this.#ports;
    return { disk, random, directory: async () => this.temp, onSwept: (directory) => this.sweptAt(directory) };
  }

  /** Somebody found `directory` gone. If it is ours, others have taken us for dead, and what our clocks say counts no more. */
  sweptAt(directory: string): void {
    if (directory === this.temp) this.#finish("its temp directory is gone: others took it for dead");
  }

  /** Aborts, with LOCK_LOST as its reason, when this life is over. Whatever was held in it is lost. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** Asks the clocks, so it is right also just after a sleep, before any timer has fired. */
  get isOver(): boolean {
    if (this.#over.signal.aborted) return true;
    if (this.#leftMs() > 0) return false;
    this.#finish(
      `it could not show that it lives for ${ownPart} of its lease of ${this.holder.leaseMs} ms (a sleep, a blocked event loop, or the disk)`,
    );
    return true;
  }

  /** LOCK_LOST when this life is over. To be asked before and after everything whose result is acted on. */
  mustGoOn(): void {
    if (this.isOver) this.signal.throwIfAborted();
  }

  /**
   * Begins a look whether others have declared this life dead, or will, because they no longer find its beat; no more than
   * once for each beat: a machine whose clocks stood still does not know by itself that it slept, and would beat on for
   * ever. By the record of its death, and, because that is taken away some day, by a file in its directory, which goes
   * before the record. Others judge by its beat only after a lease, so this life is over before.
   */
  watchForDeath(): void {
    const nowMs = this.#ports.clock.monotonicMs();
    if (nowMs - this.#lookedAtMs < beatPart * this.holder.leaseMs) return;
    this.#lookedAtMs = nowMs;
    // A look that fails says nothing.
    this.#lookForDeath().catch(() => undefined);
  }

  async #lookForDeath(): Promise<void> {
    const why = await this.#findDeath();
    if (why !== undefined) this.#finish(why);
    else await mustStand(this.staging, this.temp);
  }

  async #findDeath(): Promise<string | undefined> {
    const { disk } = this.#ports;
    const { id, beatIdentity } = this.holder;
    if (await disk.canOpen(this.#layout.deathRecord(id))) return "others took it for dead";
    // Elsewhere an absence may be an old answer, and must not end a life.
    if (disk.volume.kind !== "local") return undefined;
    const beat = await disk.findStat(this.#layout.beat(id));
    if (beat === undefined) return "its heartbeat file was deleted";
    return beatIdentity === "" || beat.identity === beatIdentity ? undefined : "its heartbeat file was replaced";
  }

  /** Ends it cleanly: nothing of it is left for others to judge. */
  async end(): Promise<void> {
    this.#finish("it was closed");
    await this.#beating?.stop();
    const { disk } = this.#ports;
    try {
      await removeDirectory(disk, this.temp);
      // The record goes before what it stands for: without it the rest counts for nothing.
      await unlinkIfThere(disk, this.#layout.record(this.holder.id));
      await unlinkIfThere(disk, this.#layout.beat(this.holder.id));
    } finally {
      // Last, so that nobody can prove us dead meanwhile, and in any case: what could not be removed is left to the sweepers, who need the lock.
      await this.abandon();
    }
  }

  /** Lets go of the files of a life that is over, and leaves what is on the disk to the sweepers. */
  async abandon(): Promise<void> {
    await this.#beating?.stop();
    try {
      await this.#file.close();
    } finally {
      await this.#lock?.close();
    }
  }

  #leftMs(): number {
    const { clock } = this.#ports;
    this.#lastBeat = this.#beating?.lastBeat() ?? this.#lastBeat;
    const now = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
    return ownPart * this.holder.leaseMs - elapsedMs(this.#lastBeat, now);
  }

  #finish(why: string): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort(this.#lost(why));
    // A life that is over must not look alive to the others. Whether it stops in time makes no difference to us.
    this.#beating?.stop().catch(() => undefined);
  }

  #lost(why: string): Error {
    const path = this.#layout.directory;
    const message = `${path}: this process no longer counts as alive there, because ${why}. Open it again.`;
    return holdfastError("LOCK_LOST", message, { path });
  }

  #watchOverDeadline(): void {
    const { clock } = this.#ports;
    const { leaseMs } = this.holder;
    const background = { background: true, signal: this.signal };
    const watch = async (): Promise<void> => {
      await clock.sleep(firstBeatPart * leaseMs, background);
      this.#startHeart();
      while (!this.isOver) await clock.sleep(Math.max(this.#leftMs(), 1), background);
    };
    // The only rejection is the end of the life: nothing may be thrown from a timer.
    watch().catch(() => undefined);
  }

  #startHeart(): void {
    if (this.isOver) return;
    const { leaseMs } = this.holder;
    const onLost = (): void => {
      // Asked at once: a heart that came too late is the first to know that the machine slept.
      if (this.isOver) return;
      // A beat that failed is tried again until the deadline decides; it may be one lost packet, or one thread too many.
      void this.#beatAgain();
    };
    try {
      this.#beating = this.#ports.heart.start(this.#file, {
        everyMs: beatPart * leaseMs,
        stallMs: leaseMs,
        gapMsMax: ownPart * leaseMs,
        after: this.#lastBeat,
        from: 1 + Math.floor((this.#ports.clock.monotonicMs() - this.#begun.monotonicMs) / (beatPart * leaseMs)),
        onLost,
      });
    } catch {
      onLost();
    }
  }

  async #beatAgain(): Promise<void> {
    try {
      this.#lastBeat = this.#beating?.lastBeat() ?? this.#lastBeat;
      await this.#ports.clock.sleep(beatPart * this.holder.leaseMs, { background: true, signal: this.signal });
      this.#startHeart();
    } catch {
      // The life ended meanwhile.
    }
  }
}

function describe(
  { host, disk }: Ports,
  id: string,
  { leaseMs, name }: HolderSessionOptions,
  beatIdentity: string,
): HolderRecord {
  const { name: hostName, pid, startedAtMs, bootId } = host;
  const isLocal = disk.volume.kind === "local";
  return {
    id,
    name,
    host: hostName,
    pid,
    startedAtMs,
    version: packageVersion,
    leaseMs,
    bootId,
    isLocal,
    beatIdentity,
  };
}

async function lockBeat(ports: Ports, path: string): Promise<OsLockFile | undefined> {
  try {
    const lock = await ports.osLock.open(path);
    try {
      if (await lock.tryLock()) return lock;
    } catch (error) {
      await lock.close();
      throw error;
    }
    await lock.close();
  } catch {
    // No OS lock here: then nobody can prove that we are dead at once, and our lease decides. Nothing is lost but time.
  }
  return undefined;
}
