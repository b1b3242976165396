// Liveness, the others' side: judges a holder dead by proof, or by a heartbeat that did not change for a whole lease of my own watching.
import type { HolderInfo } from "../../common.ts";
import { decodeBeat } from "../../format/beat.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Ports } from "../../ports/ports.ts";
import type { GroundLayout, HolderRecord } from "./holder-record.ts";
import { findStampMs } from "./server-age.ts";

export const beatBytesMax = 4096;
/** One gap between two looks counts for at most this part of the lease: my own sleep, or an outage of the server, ages nobody. */
const gapPart = 1 / 4;
const silentPart = 1 / 2;
/** How many leases a heartbeat must be older than a file made now, by the server's own stamps, to convince somebody who cannot watch for a lease. */
const oneShotLeases = 2;
/** What he must have seen of the silence all the same: the server's clock may have been set ahead, and then everybody looks old until he beats again. */
const oneShotPart = 3 / 8;

/** How many are watched at once. Those who closed are never looked at again, and nobody says so. */
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

  /** One look. "dead" is final, because the holder's own deadline is shorter than what it takes to be judged. A look that fails counts for nothing. */
  async observe(holder: HolderRecord): Promise<HolderState> {
    if (await this.#isProvenDead(holder)) return "dead";
    const { clock } = this.#ports;
    const askedAtMs = clock.monotonicMs();
    const bytes = await this.#readBeat(holder);
    const before = this.#watched.get(holder.id);
    if (before === undefined || before.bytes !== bytes) {
      this.#watch(holder, { bytes, silentMs: 0, provenAtMs: clock.monotonicMs() });
      return "alive";
    }
    // Silent until I asked: while the answer was on its way the holder may have beaten. New bytes, above, count from when I had them.
    const gapMs = Math.min(Math.max(0, askedAtMs - before.provenAtMs), gapPart * holder.leaseMs);
    const silentMs = before.silentMs + gapMs;
    // Never back: of several looks at once a slow one may come last, and the same silence would count again.
    this.#watch(holder, { bytes, silentMs, provenAtMs: Math.max(before.provenAtMs, askedAtMs) });
    if (silentMs >= holder.leaseMs) return "dead";
    return silentMs >= silentPart * holder.leaseMs ? "silent" : "alive";
  }

  /** One look by somebody who cannot watch for a lease: also dead when it `looksOld` and was silent for more than a beat of my own watching. */
  async observeOnce(holder: HolderRecord, probe: string): Promise<HolderState> {
    const state = await this.observe(holder);
    if (state === "dead" || this.#silentMs(holder) < oneShotPart * holder.leaseMs) return state;
    return (await this.looksOld(holder, probe)) ? "dead" : state;
  }

  /** Whether the heartbeat's stamp is older than that of `probe`, a file made just now beside it, by two leases. Both stamps are the server's. */
  async looksOld(holder: HolderRecord, probe: string): Promise<boolean> {
    if (!this.#stampsAreFresh) return false;
    const beatMs = await findStampMs(this.#ports.disk, this.#layout.beat(holder.id));
    const nowMs = await findStampMs(this.#ports.disk, probe);
    return beatMs !== undefined && nowMs !== undefined && nowMs - beatMs > oneShotLeases * holder.leaseMs;
  }

  /** When the holder last said that it lives, by its own clock: for people. */
  async lastSeenMs(holder: HolderRecord): Promise<number> {
    const beat = decodeBeat(Buffer.from(await this.#readBeat(holder), "latin1"));
    return beat?.wallMs ?? holder.startedAtMs;
  }

  /** Its bytes at the last look. */
  beatOf({ id }: HolderRecord): string {
    return this.#watched.get(id)?.bytes ?? "";
  }

  /** The lease of a holder that is being watched. */
  findLeaseMs(id: string): number | undefined {
    return this.#watched.get(id)?.leaseMs;
  }

  forget(id: string): void {
    this.#watched.delete(id);
  }

  /** Whoever was looked at last is last in the map: the first one is forgotten when there are too many, and at worst watched anew. */
  #watch({ id, leaseMs }: HolderRecord, watched: Omit<Watched, "leaseMs">): void {
    this.#watched.delete(id);
    this.#watched.set(id, { leaseMs, ...watched });
    const [first] = this.#watched.keys();
    if (first !== undefined && this.#watched.size > watchedMax) this.#watched.delete(first);
  }

  #silentMs({ id }: HolderRecord): number {
    return this.#watched.get(id)?.silentMs ?? 0;
  }

  /** An SMB server may stamp a file only when its writer closes it: there a silent stamp says nothing. */
  get #stampsAreFresh(): boolean {
    return !/cifs|smb/.test(this.#ports.disk.volume.type);
  }

  /**
   * Whether a lock of its kernel would stand in my way: it is mine, or gone. Two kernels cannot both have this disk as their own; a client of ours would have seen a network mount. Boot ids
   * that differ prove nothing, because a container may show one of its own.
   */
  #locksMeet({ bootId, isLocal }: HolderRecord): boolean {
    const { disk, host } = this.#ports;
    return bootId === host.bootId || (isLocal && disk.volume.kind === "local");
  }

  /** The kernel frees a lock when its process dies, or with itself. That is proof only where locks meet, and of this very file. */
  async #isProvenDead(holder: HolderRecord): Promise<boolean> {
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
      // The record goes before the beat: without both, the holder has ended or was declared dead. A beat that
      // is gone beside its record may have been deleted under a living holder, who needs a while to notice;
      // then the bytes decide, as after any other failure. Elsewhere an absence may be an old answer.
      if (disk.volume.kind !== "local" || !holder.isLocal || !hasErrno(error, "ENOENT")) return false;
      return !(await disk.canOpen(this.#layout.record(holder.id)));
    }
  }

  /** Whether the beat is the file that it locked. Two mounts of one share have one boot id but not one identity, and their locks may not meet; a restart may number files anew. */
  async #isItsBeat({ id, bootId, beatIdentity }: HolderRecord): Promise<boolean> {
    const { identity } = await this.#ports.disk.stat(this.#layout.beat(id));
    return identity === beatIdentity || bootId !== this.#ports.host.bootId;
  }

  async #readBeat(holder: HolderRecord): Promise<string> {
    try {
      return Buffer.from(await this.#ports.disk.readFile(this.#layout.beat(holder.id), beatBytesMax)).toString(
        "latin1",
      );
    } catch (error) {
      // An absent beat is one that does not change.
      if (hasErrno(error, "ENOENT")) return "";
      throw error;
    }
  }
}
