// HolderSession: the time for which this process counts as alive on a ground. It begins with a
// heartbeat file and a record, and ends for good at its own deadline, whatever other processes
// believe.
import { holdfastError } from "../../errors.ts";
import { encodeBeat } from "../../format/beat.ts";
import { makeId } from "../../format/id.ts";
import { encodeRecord } from "../../format/record.ts";
import { packageVersion } from "../../format/version.ts";
import type { DiskFile } from "../../ports/disk.ts";
import type { BeatTimes } from "../../ports/heart.ts";
import type { OsLockFile } from "../../ports/os-lock.ts";
import type { Ports } from "../../ports/ports.ts";
import { removeDirectory, unlinkIfThere } from "../publish/directory.ts";
import { putIfAbsent } from "../publish/publish.ts";
import { retryOutage } from "../publish/retry-outage.ts";
import { assertNotSwept, type Staging } from "../publish/staging.ts";
import { makeUniqueDirectory } from "../publish/unique-file.ts";
import { holderKind, type GroundLayout, type HolderRecord } from "./holder-record.ts";
import { beatPart, OwnHeartbeat, ownPart } from "./own-heartbeat.ts";

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
  readonly #heartbeat: OwnHeartbeat;
  /** When this process last looked whether others have declared it dead. */
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
    this.#heartbeat = new OwnHeartbeat(ports, file, holder.leaseMs, begun);
    this.#lookedAtMs = begun.monotonicMs;
    this.#file = file;
    this.#lock = lock;
  }

  /**
   * Begins a session in a ground whose directories exist. A crash on the way leaves files that
   * count for nothing and are swept.
   */
  static async begin(ports: Ports, layout: GroundLayout, options: HolderSessionOptions): Promise<HolderSession> {
    // Each time under another id: what was begun when the server went away belongs to no holder.
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
      // On a share a write alone stays in this machine's cache. A local disk shows it to all
      // processes; it need not survive a power cut, because this process does not.
      if (disk.volume.kind !== "local") await file.sync();
      // Locked before the record makes it known: a beat that can be locked is the proof that its
      // holder is dead.
      lock = await lockBeat(ports, layout.beat(id));
      const holder = describe(ports, id, { leaseMs, name }, lock === undefined ? "" : (await file.stat()).identity);
      const session = new HolderSession(ports, layout, holder, begun, file, lock);
      // No process removes the record before this put has returned.
      const options = { isPermanent: true };
      if (!(await putIfAbsent(session.staging, layout.record(id), encodeRecord(holderKind, holder), options)))
        throw session.#lost("its id is taken");
      session.#heartbeat.beatFor(session);
      return session;
    } catch (error) {
      // What cannot be removed now counts for nothing, and is swept. The record goes first: it is
      // there if only its sync has failed, and it stands for the rest.
      await disk.unlink(layout.record(id)).catch(() => undefined);
      await Promise.allSettled([removeDirectory(disk, layout.temp(id)), disk.unlink(layout.beat(id))]);
      await Promise.allSettled([file?.close(), lock?.close()]);
      throw error;
    }
  }

  get staging(): Staging {
    const { disk, random } = this.#ports;
    return { disk, random, directory: async () => this.temp, onSwept: (directory) => this.reportSwept(directory) };
  }

  /**
   * `directory` was found gone. If it is that of this session, other processes took it for dead,
   * and what its clocks say counts no more.
   */
  reportSwept(directory: string): void {
    if (directory === this.temp) this.#finish("its temp directory is gone: others took it for dead");
  }

  /**
   * Aborts, with LOCK_LOST as its reason, when this session is over. Whatever was held in it is
   * lost.
   */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** Asks the clocks, so it is right also just after a sleep, before any timer has fired. */
  get isOver(): boolean {
    if (this.#over.signal.aborted) return true;
    if (this.#heartbeat.leftMs() > 0) return false;
    this.#finish(
      `it could not show that it lives for ${ownPart} of its lease of ${this.holder.leaseMs} ms (a sleep, a blocked event loop, or the disk)`,
    );
    return true;
  }

  /**
   * LOCK_LOST when this session is over. Called before and after everything whose result is acted
   * on.
   */
  throwIfOver(): void {
    if (this.isOver) this.signal.throwIfAborted();
  }

  /**
   * Begins a look whether others have declared this session dead, or will because its beat is gone;
   * at most once per beat. A machine whose clocks stood still does not know by itself that it
   * slept, and would beat on for ever. The look is for the death record, and, because that is
   * removed some day, for the temp directory, which goes before it. Others judge a missing beat
   * only after a lease, so this session is over before.
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
    else await assertNotSwept(this.staging, this.temp);
  }

  async #findDeath(): Promise<string | undefined> {
    const { disk } = this.#ports;
    const { id, beatIdentity } = this.holder;
    if (await disk.canOpen(this.#layout.deathRecord(id))) return "others took it for dead";
    // Elsewhere an absence may be an old answer, and must not end a session.
    if (disk.volume.kind !== "local") return undefined;
    const beat = await disk.findStat(this.#layout.beat(id));
    if (beat === undefined) return "its heartbeat file was deleted";
    return beatIdentity === "" || beat.identity === beatIdentity ? undefined : "its heartbeat file was replaced";
  }

  /** Ends it cleanly: nothing of it is left for others to judge. */
  async end(): Promise<void> {
    this.#finish("it was closed");
    await this.#heartbeat.stop();
    const { disk } = this.#ports;
    try {
      await removeDirectory(disk, this.temp);
      // The record goes before what it stands for: without it the rest counts for nothing.
      await unlinkIfThere(disk, this.#layout.record(this.holder.id));
      await unlinkIfThere(disk, this.#layout.beat(this.holder.id));
    } finally {
      // Last, so that no process can prove this one dead meanwhile; and in any case: what could not
      // be removed is left to sweepers, and they need the lock.
      await this.abandon();
    }
  }

  /** Closes the files of a session that is over, and leaves what is on the disk to sweepers. */
  async abandon(): Promise<void> {
    await this.#heartbeat.stop();
    try {
      await this.#file.close();
    } finally {
      await this.#lock?.close();
    }
  }

  #finish(why: string): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort(this.#lost(why));
    // A session that is over must not look alive to others. Whether the heart stops in time changes
    // nothing here.
    this.#heartbeat.stop().catch(() => undefined);
  }

  #lost(why: string): Error {
    const path = this.#layout.directory;
    const message = `${path}: this process no longer counts as alive there, because ${why}. Open it again.`;
    return holdfastError("LOCK_LOST", message, { path });
  }
}

function describe(
  { host, disk }: Ports,
  id: string,
  { leaseMs, name }: HolderSessionOptions,
  beatIdentity: string,
): HolderRecord {
  const { name: hostName, pid, startedAtMs, bootId, processSpace, startMark } = host;
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
    processSpace,
    startMark,
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
    // No OS lock here: then no process can prove a death at once, and the lease decides. Nothing is
    // lost but time.
  }
  return undefined;
}
