// LivenessJudge decides that another holder is dead: by proof, or because its heartbeat did not
// change for a whole lease while this process watched it.
import type { HolderInfo } from "../../common.ts";
import { decodeBeat } from "../../format/beat.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { isKnownBoot } from "../../ports/host.ts";
import type { Ports } from "../../ports/ports.ts";
import { replace } from "../publish/publish.ts";
import { isUnreadable } from "../publish/record-file.ts";
import type { GroundLayout, HolderRecord } from "./holder-record.ts";
import type { ServerClock } from "./server-age.ts";

const beatBytesMax = 4096;
/**
 * A gap between two observations counts for at most this part of the lease: a sleep of this
 * process, or an outage of the server, must not age a holder.
 */
const gapPart = 1 / 4;
const silentPart = 1 / 2;
/**
 * For a caller that cannot watch for a lease: the heartbeat must be this many leases older than a
 * file made now, by the server's own stamps.
 */
const oneShotLeases = 2;
/**
 * It must also have been silent for this part of the lease, more than the quarter after which a
 * living holder beats. If the server's clock was set ahead, every heartbeat looks old until the
 * next one.
 */
const oneShotSilentPart = 3 / 8;
/** Holders that closed are never observed again, and nothing reports that they closed. */
const watchedMax = 10_000;

/** The state of a holder. `silent`: its heartbeat is late, and it is not yet judged dead. */
export type HolderState = HolderInfo["state"];

interface Watched {
  readonly leaseMs: number;
  readonly bytes: string;
  readonly silentMs: number;
  /** Time of the last observation that proves its silence. */
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
   * Observes a holder once. "dead" is final: the holder's own deadline is shorter than the silence
   * needed to judge it. A failed observation counts for nothing.
   */
  async observe(holder: HolderRecord): Promise<HolderState> {
    if ((await this.#hasFreedItsLock(holder)) || this.#isNoProcess(holder)) return "dead";
    const { clock } = this.#ports;
    const askedAtMs = clock.monotonicMs();
    const bytes = await this.#findBeat(holder);
    if (bytes === undefined) return "alive";
    const before = this.#watched.get(holder.id);
    if (before === undefined || before.bytes !== bytes) {
      // New bytes count from the time they arrived here.
      this.#watch(holder, { bytes, silentMs: 0, provenAtMs: clock.monotonicMs() });
      return "alive";
    }
    // The same bytes prove silence only up to the time of the request: the holder may have beaten
    // while the reply was in transit.
    const gapMs = Math.min(Math.max(0, askedAtMs - before.provenAtMs), gapPart * holder.leaseMs);
    const silentMs = before.silentMs + gapMs;
    // Never move back: of several concurrent observations a slow one may end last, and the same
    // silence would count twice.
    this.#watch(holder, { bytes, silentMs, provenAtMs: Math.max(before.provenAtMs, askedAtMs) });
    if (silentMs >= holder.leaseMs) return "dead";
    return silentMs >= silentPart * holder.leaseMs ? "silent" : "alive";
  }

  /**
   * Observes once, for a caller that cannot watch for a lease. The holder is also dead if its
   * heartbeat is old by the server's stamps and was silent for more than a beat: while this process
   * watched it, or since another process noted it.
   */
  async observeOnce(holder: HolderRecord, clock: ServerClock): Promise<HolderState> {
    const state = await this.observe(holder);
    if (state === "dead" || !(await this.#hasOldBeat(holder, clock))) return state;
    const { bytes = "", silentMs = 0 } = this.#watched.get(holder.id) ?? {};
    if (silentMs >= oneShotSilentPart * holder.leaseMs) return "dead";
    return (await this.#isNotedSilent(holder, bytes, clock)) ? "dead" : state;
  }

  /** Time of the holder's last heartbeat, by its own clock; for people. */
  async lastSeenMs(holder: HolderRecord): Promise<number> {
    const beat = decodeBeat(Buffer.from((await this.#findBeat(holder)) ?? "", "latin1"));
    return beat?.wallMs ?? holder.startedAtMs;
  }

  /** The lease of a watched holder. */
  findLeaseMs(id: string): number | undefined {
    return this.#watched.get(id)?.leaseMs;
  }

  forget(id: string): void {
    this.#watched.delete(id);
  }

  /**
   * The map is ordered by last observation. Beyond the limit the oldest is forgotten; at worst it
   * is watched from the beginning.
   */
  #watch({ id, leaseMs }: HolderRecord, watched: Omit<Watched, "leaseMs">): void {
    this.#watched.delete(id);
    this.#watched.set(id, { leaseMs, ...watched });
    const [first] = this.#watched.keys();
    if (first !== undefined && this.#watched.size > watchedMax) this.#watched.delete(first);
  }

  async #hasOldBeat({ id, leaseMs }: HolderRecord, clock: ServerClock): Promise<boolean> {
    // An SMB server may stamp a file only when its writer closes it: an old stamp proves nothing
    // there.
    if (/cifs|smb/.test(this.#ports.disk.volume.type)) return false;
    const ageMs = await clock.findAgeMs(this.#layout.beat(id));
    return ageMs !== undefined && ageMs > oneShotLeases * leaseMs;
  }

  /**
   * True if another process noted the same bytes as suspect, long enough ago by the server's
   * stamps; otherwise notes them now. Many processes open a share only for a moment: one can
   * confirm what another saw. Only a server clock that is set ahead twice within one beat would
   * deceive it.
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
   * True if this process would conflict with the lock of that holder's kernel: the kernel is the
   * same one, or gone. Two kernels cannot both have this disk as a local disk, and a client on this
   * machine would have seen a network mount. Different boot ids prove nothing, because a container
   * may show its own.
   */
  #locksMeet({ bootId, isLocal }: HolderRecord): boolean {
    const { disk, host } = this.#ports;
    return bootId === host.bootId || (isLocal && disk.volume.kind === "local");
  }

  /**
   * True if the kernel freed the holder's lock, as it does when the process dies. That is proof
   * only where the locks conflict, and only for the same file.
   */
  async #hasFreedItsLock(holder: HolderRecord): Promise<boolean> {
    const { disk, osLock } = this.#ports;
    if (!this.#locksMeet(holder) || holder.beatIdentity === "") return false;
    const path = this.#layout.beat(holder.id);
    try {
      if (!(await this.#isItsBeat(holder))) return false;
      const lock = await osLock.open(path);
      try {
        // A lock that cannot be taken does not prove life: a stopped process holds its lock too.
        return (await lock.tryLock()) && (await this.#isItsBeat(holder));
      } finally {
        await lock.close();
      }
    } catch (error) {
      // The record is removed before the beat. If both are missing, the holder has ended or was
      // declared dead. If only the beat is missing, it may have been deleted under a living holder,
      // which takes a while to notice; then the bytes decide, as after any other failure. On a
      // share an absence may be a stale answer.
      if (disk.volume.kind !== "local" || !holder.isLocal || !hasErrno(error, "ENOENT")) return false;
      return !(await disk.canOpen(this.#layout.record(holder.id)));
    }
  }

  /**
   * True if the process table shows that the holder is gone. This proof remains when a file system
   * disappears and comes back in the same boot as another device: the beat then has another
   * identity. On a share a request of a dead process may still be in transit, so the lock decides
   * there.
   */
  #isNoProcess({ bootId, processSpace, pid, startMark, isLocal }: HolderRecord): boolean {
    const { disk, host } = this.#ports;
    const isKnownHere = isKnownBoot(bootId) && bootId === host.bootId && processSpace === host.processSpace;
    if (!isKnownHere || startMark === "" || !isLocal || disk.volume.kind !== "local") return false;
    return host.processState(pid, startMark) === "dead";
  }

  /**
   * True if the beat is the file that its holder locked. Two mounts of one share have the same boot
   * id but different identities, and their locks may not conflict. After a restart the same file
   * may have another identity.
   */
  async #isItsBeat({ id, bootId, beatIdentity }: HolderRecord): Promise<boolean> {
    const { identity } = await this.#ports.disk.stat(this.#layout.beat(id));
    return identity === beatIdentity || bootId !== this.#ports.host.bootId;
  }

  /** Undefined if it cannot be read: its holder may be alive, and the others can still be judged. */
  async #findBeat({ id }: HolderRecord): Promise<string | undefined> {
    try {
      return textOf(await this.#ports.disk.readFile(this.#layout.beat(id), beatBytesMax));
    } catch (error) {
      // An absent beat counts as one that does not change.
      if (hasErrno(error, "ENOENT")) return "";
      if (isUnreadable(error) || hasErrno(error, "EFBIG")) return undefined;
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
