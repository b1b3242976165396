// LivenessJudge: decides that another holder is dead, by proof, or by a heartbeat that did not
// change for a whole lease while this process watched it.
import type { HolderInfo } from "../../common.ts";
import { decodeBeat } from "../../format/beat.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { isKnownBoot } from "../../ports/host.ts";
import type { Ports } from "../../ports/ports.ts";
import { replace } from "../publish/publish.ts";
import type { GroundLayout, HolderRecord } from "./holder-record.ts";
import type { ServerClock } from "./server-age.ts";

const beatBytesMax = 4096;
/**
 * A gap between two observations counts for at most this part of the lease: a sleep of this
 * process, or an outage of the server, makes no holder older.
 */
const gapPart = 1 / 4;
const silentPart = 1 / 2;
/**
 * For a caller that cannot watch for a lease: a heartbeat must be older by so many leases than a
 * file made now, by the server's own stamps.
 */
const oneShotLeases = 2;
/**
 * It must also have been silent for so much of the lease, more than the quarter after which a
 * living holder beats. The server's clock may have been set ahead, and then every heartbeat looks
 * old until the next one.
 */
const oneShotSilentPart = 3 / 8;
/** Holders that closed are never observed again, and nothing says so. */
const watchedMax = 10_000;

export type HolderState = HolderInfo["state"];

interface Watched {
  readonly leaseMs: number;
  readonly bytes: string;
  readonly silentMs: number;
  /** Up to here its silence is proven. */
  readonly provenAtMs: number;
}

export class LivenessJudge {
  readonly #ports: Ports;
  readonly #layout: GroundLayout;
  readonly #watched = new Map<string, Watched>();

  constructor(ports: Ports, layout: GroundLayout) {
    this.#ports = ports;
    this.#layout = layout;
  }

  /**
   * One observation. "dead" is final: the holder's own deadline is shorter than the silence that it
   * takes to be judged. An observation that fails counts for nothing.
   */
  async observe(holder: HolderRecord): Promise<HolderState> {
    if ((await this.#hasFreedItsLock(holder)) || this.#isNoProcess(holder)) return "dead";
    const { clock } = this.#ports;
    const askedAtMs = clock.monotonicMs();
    const bytes = await this.#readBeat(holder);
    const before = this.#watched.get(holder.id);
    if (before === undefined || before.bytes !== bytes) {
      // New bytes count from when they arrived here.
      this.#watch(holder, { bytes, silentMs: 0, provenAtMs: clock.monotonicMs() });
      return "alive";
    }
    // The same bytes prove silence until they were asked for: the holder may have beaten while the
    // answer was on its way.
    const gapMs = Math.min(Math.max(0, askedAtMs - before.provenAtMs), gapPart * holder.leaseMs);
    const silentMs = before.silentMs + gapMs;
    // Never back: of several observations at once a slow one may end last, and the same silence
    // would count again.
    this.#watch(holder, { bytes, silentMs, provenAtMs: Math.max(before.provenAtMs, askedAtMs) });
    if (silentMs >= holder.leaseMs) return "dead";
    return silentMs >= silentPart * holder.leaseMs ? "silent" : "alive";
  }

  /**
   * One observation for a caller that cannot watch for a lease. Also dead when the heartbeat is old
   * by the server's stamps and was silent for more than a beat: while this process watched it, or
   * since another process noted it.
   */
  async observeOnce(holder: HolderRecord, clock: ServerClock): Promise<HolderState> {
    const state = await this.observe(holder);
    if (state === "dead" || !(await this.#hasOldBeat(holder, clock))) return state;
    const { bytes = "", silentMs = 0 } = this.#watched.get(holder.id) ?? {};
    if (silentMs >= oneShotSilentPart * holder.leaseMs) return "dead";
    return (await this.#isNotedSilent(holder, bytes, clock)) ? "dead" : state;
  }

  /** When the holder last said that it lives, by its own clock: for people. */
  async lastSeenMs(holder: HolderRecord): Promise<number> {
    const beat = decodeBeat(Buffer.from(await this.#readBeat(holder), "latin1"));
    return beat?.wallMs ?? holder.startedAtMs;
  }

  /** The lease of a holder that is being watched. */
  findLeaseMs(id: string): number | undefined {
    return this.#watched.get(id)?.leaseMs;
  }

  forget(id: string): void {
    this.#watched.delete(id);
  }

  /**
   * The map is ordered by the last observation. Beyond its limit the first holder is forgotten: at
   * worst it is watched anew.
   */
  #watch({ id, leaseMs }: HolderRecord, watched: Omit<Watched, "leaseMs">): void {
    this.#watched.delete(id);
    this.#watched.set(id, { leaseMs, ...watched });
    const [first] = this.#watched.keys();
    if (first !== undefined && this.#watched.size > watchedMax) this.#watched.delete(first);
  }

  async #hasOldBeat({ id, leaseMs }: HolderRecord, clock: ServerClock): Promise<boolean> {
    // An SMB server may stamp a file only when its writer closes it: there an old stamp says
    // nothing.
    if (/cifs|smb/.test(this.#ports.disk.volume.type)) return false;
    const ageMs = await clock.findAgeMs(this.#layout.beat(id));
    return ageMs !== undefined && ageMs > oneShotLeases * leaseMs;
  }

  /**
   * Whether another process has noted these very bytes as suspect, long enough ago by the server's
   * stamps; otherwise notes them now. Many processes come to a share only for a moment: what one of
   * them saw, another can confirm. Only a server clock that is set ahead twice within one beat
   * would deceive it.
   */
  async #isNotedSilent({ id, leaseMs }: HolderRecord, bytes: string, clock: ServerClock): Promise<boolean> {
    const path = this.#layout.suspicion(id);
    if ((await this.#findBytes(path)) !== bytes) {
      await replace(clock.staging, path, Buffer.from(bytes, "latin1"), { sync: false });
      return false;
    }
    // Another process may have replaced it since: then it is younger.
    const ageMs = await clock.findAgeMs(path);
    return ageMs !== undefined && ageMs >= oneShotSilentPart * leaseMs;
  }

  /**
   * Whether this process would meet the lock of that holder's kernel: the kernel is the same, or
   * gone. Two kernels cannot both have this disk as their own, and a client of this machine would
   * have seen a network mount. Boot ids that differ prove nothing, because a container may show one
   * of its own.
   */
  #locksMeet({ bootId, isLocal }: HolderRecord): boolean {
    const { disk, host } = this.#ports;
    return bootId === host.bootId || (isLocal && disk.volume.kind === "local");
  }

  /**
   * The kernel frees a lock when its process dies. That is proof only where locks meet, and only of
   * this very file.
   */
  async #hasFreedItsLock(holder: HolderRecord): Promise<boolean> {
    const { disk, osLock } = this.#ports;
    if (!this.#locksMeet(holder) || holder.beatIdentity === "") return false;
    const path = this.#layout.beat(holder.id);
    try {
      if (!(await this.#isItsBeat(holder))) return false;
      const lock = await osLock.open(path);
      try {
        // "Cannot be locked" is no proof of life: a stopped process holds its lock too.
        return (await lock.tryLock()) && (await this.#isItsBeat(holder));
      } finally {
        await lock.close();
      }
    } catch (error) {
      // The record goes before the beat: without both, the holder has ended or was declared dead. A
      // beat that is gone beside its record may have been deleted under a living holder, which
      // needs a while to notice; then the bytes decide, as after any other failure. Elsewhere an
      // absence may be an old answer.
      if (disk.volume.kind !== "local" || !holder.isLocal || !hasErrno(error, "ENOENT")) return false;
      return !(await disk.canOpen(this.#layout.record(holder.id)));
    }
  }

  /**
   * Whether the process table says that the holder is gone. It is the proof that remains when a file
   * system went away and came back in one boot as another device: the beat then has another
   * identity. On a share a request of a dead process may still be on its way, so there the lock
   * decides.
   */
  #isNoProcess({ bootId, processSpace, pid, startMark, isLocal }: HolderRecord): boolean {
    const { disk, host } = this.#ports;
    const isKnownHere = isKnownBoot(bootId) && bootId === host.bootId && processSpace === host.processSpace;
    if (!isKnownHere || startMark === "" || !isLocal || disk.volume.kind !== "local") return false;
    return host.processState(pid, startMark) === "dead";
  }

  /**
   * Whether the beat is the file that its holder locked. Two mounts of one share have one boot id
   * but not one identity, and their locks may not meet. After a restart the same file may have
   * another identity.
   */
  async #isItsBeat({ id, bootId, beatIdentity }: HolderRecord): Promise<boolean> {
    const { identity } = await this.#ports.disk.stat(this.#layout.beat(id));
    return identity === beatIdentity || bootId !== this.#ports.host.bootId;
  }

  async #readBeat({ id }: HolderRecord): Promise<string> {
    try {
      return textOf(await this.#ports.disk.readFile(this.#layout.beat(id), beatBytesMax));
    } catch (error) {
      // An absent beat is one that does not change.
      if (hasErrno(error, "ENOENT")) return "";
      throw error;
    }
  }

  async #findBytes(path: string): Promise<string | undefined> {
    try {
      return textOf(await this.#ports.disk.readFile(path, beatBytesMax));
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ESTALE", "EFBIG")) return undefined;
      throw error;
    }
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("latin1");
}
