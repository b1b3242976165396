// HolderSession: the time for which this process counts as alive on a ground. It begins with a
// heartbeat file and a record. It ends permanently at its own deadline, whatever other processes
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
import { signal } from "../../telemetry/signals.ts";
import { removeDirectory, unlinkUnlessForeign } from "../publish/directory.ts";
import { putIfAbsent } from "../publish/publish.ts";
import { retryOutage } from "../publish/retry-outage.ts";
import { assertNotSwept, type Staging } from "../publish/staging.ts";
import { makeUniqueDirectory } from "../publish/unique-file.ts";
import { holderKind, type GroundLayout, type HolderRecord } from "./holder-record.ts";
import { beatPart, OwnHeartbeat, ownPart } from "./own-heartbeat.ts";

export interface HolderSessionOptions {
  readonly leaseMs: number;
  /** A name for people: "till 3". */
  readonly name: string;
}

/**
 * The time for which this process is alive on a ground. It ends permanently at its own deadline,
 * before other processes can judge it dead.
 */
export class HolderSession {
  /** The record of this process. */
  readonly holder: HolderRecord;
  /** The temp directory of this session. */
  readonly temp: string;
  readonly #ports: Ports;
  readonly #layout: GroundLayout;
  readonly #file: DiskFile;
  readonly #lock: OsLockFile | undefined;
  readonly #over = new AbortController();
  readonly #heartbeat: OwnHeartbeat;
  /** When this process last checked if others declared it dead. */
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
   * Begins a session in a ground whose directories exist. A crash meanwhile leaves files without
   * effect, which are swept.
   *
   * @internal
   */
  static async begin(ports: Ports, layout: GroundLayout, options: HolderSessionOptions): Promise<HolderSession> {
    // Each attempt uses a new id: files of an attempt that an outage interrupted belong to no
    // holder.
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
      await file.write(0, encodeBeat(0, begun.wallMs, leaseMs));
      // On a share an unsynced write stays in this machine's cache. A local disk shows it to all
      // processes; it need not survive a power cut, because this process does not.
      if (disk.volume.kind !== "local") await file.sync();
      // Lock the beat before the record makes it known: a beat that can be locked proves that its
      // holder is dead.
      lock = await lockBeat(ports, layout.beat(id));
      const holder = describe(ports, id, { leaseMs, name }, lock === undefined ? "" : (await file.stat()).identity);
      const session = new HolderSession(ports, layout, holder, begun, file, lock);
      // No process removes the record before this put returns.
      const options = { isPermanent: true };
      if (!(await putIfAbsent(session.staging, layout.record(id), encodeRecord(holderKind, holder), options)))
        throw session.#lost("its id is taken");
      session.#heartbeat.beatFor(session);
      return session;
    } catch (error) {
      // If files cannot be removed now, they count for nothing and are swept. Remove the record first: it exists if
      // only its sync failed, and it makes the rest count.
      await disk.unlink(layout.record(id)).catch(() => undefined);
      await Promise.allSettled([removeDirectory(disk, layout.temp(id)), disk.unlink(layout.beat(id))]);
      await Promise.allSettled([file?.close(), lock?.close()]);
      throw error;
    }
  }

  /** Stages files in the temp directory of this session. */
  get staging(): Staging {
    const { disk, random } = this.#ports;
    return { disk, random, directory: async () => this.temp, onSwept: (directory) => this.reportSwept(directory) };
  }

  /**
   * Ends this session if `directory` is its temp directory, which was found missing: other
   * processes judged it dead.
   */
  reportSwept(directory: string): void {
    if (directory === this.temp) this.#finish("its temp directory is gone: others judged it dead");
  }

  /** Aborts with LOCK_LOST when this session ends. Every lock of the session is then lost. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /**
   * True if this session has ended. It reads the clocks, so it is right even just after a sleep,
   * before any timer fired.
   */
  get isOver(): boolean {
    if (this.#over.signal.aborted) return true;
    if (this.#heartbeat.leftMs() > 0) return false;
    this.#finish(
      `it wrote no heartbeat for ${ownPart} of its lease of ${this.holder.leaseMs} ms (a sleep, a blocked event loop, or the disk)`,
    );
    return true;
  }

  /**
   * Throws LOCK_LOST if this session has ended. Call it before and after every step whose result
   * you act on.
   */
  throwIfOver(): void {
    if (this.isOver) this.signal.throwIfAborted();
  }

  /**
   * Starts a check whether other processes have declared this session dead, at most once per beat.
   * A machine whose clocks stood still does not notice that it slept, and would beat forever.
   */
  watchForDeath(): void {
    const nowMs = this.#ports.clock.monotonicMs();
    if (nowMs - this.#lookedAtMs < beatPart * this.holder.leaseMs) return;
    this.#lookedAtMs = nowMs;
    // A failed check proves nothing.
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
    if (await disk.canOpen(this.#layout.deathRecord(id))) return "others judged it dead";
    // On a share an absence may be a stale answer and must not end a session.
    if (disk.volume.kind !== "local") return undefined;
    const beat = await disk.findStat(this.#layout.beat(id));
    if (beat === undefined) return "its heartbeat file was deleted";
    return beatIdentity === "" || beat.identity === beatIdentity ? undefined : "its heartbeat file was replaced";
  }

  /** Ends the session cleanly, and removes its files. */
  async end(): Promise<void> {
    this.#finish("it was closed", { isLost: false });
    await this.#heartbeat.stop();
    const { disk } = this.#ports;
    try {
      await removeDirectory(disk, this.temp);
      // Remove the record before the files to which it refers: without it they count for nothing.
      await unlinkUnlessForeign(disk, this.#layout.record(this.holder.id));
      await unlinkUnlessForeign(disk, this.#layout.beat(this.holder.id));
    } finally {
      // Release the lock last, so that no process can prove this one dead meanwhile. Do so even after a failure:
      // sweepers need the lock to remove what is left.
      await this.abandon();
    }
  }

  /** Closes the files of a session that has ended. Sweepers remove them from the disk. */
  async abandon(): Promise<void> {
    await this.#heartbeat.stop();
    try {
      await this.#file.close();
    } finally {
      await this.#lock?.close();
    }
  }

  #finish(why: string, { isLost = true } = {}): void {
    if (this.#over.signal.aborted) return;
    const error = this.#lost(why);
    this.#over.abort(error);
    if (isLost)
      signal("holdfast:process.lost", () => ({ location: this.#layout.directory, holder: this.holder.id, error }));
    // A session that is over must not look alive to others. It does not matter here if the heart
    // stops in time.
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
    // No OS lock here: no process can prove a death at once, so the lease decides. That only costs
    // time.
  }
  return undefined;
}
