// Liveness, the others' side: judges a holder dead by proof, or by a heartbeat that did not change for a whole lease of my own watching.
import type { HolderInfo } from "../common.ts";
import { decodeBeat } from "../format/beat.ts";
import { hasErrno } from "../ports/disk-error.ts";
import type { Ports } from "../ports/ports.ts";
import type { GroundLayout, Holder } from "./holder.ts";

const beatBytesMax = 4096;
/** One gap between two looks counts for at most this part of the lease: my own sleep, or an outage of the server, ages nobody. */
const gapPart = 1 / 4;
const silentPart = 1 / 2;
/** How many leases a heartbeat must be older than a file made now, by the server's own stamps, to convince somebody who cannot wait. */
const oneShotLeases = 2;

export type HolderState = HolderInfo["state"];

interface Watched {
  readonly bytes: string;
  readonly silentMs: number;
  /** Up to here its silence is proven. */
  readonly provenAtMs: number;
}

export class Witness {
  readonly #ports: Ports;
  readonly #layout: GroundLayout;
  readonly #watched = new Map<string, Watched>();

  constructor(ports: Ports, layout: GroundLayout) {
    this.#ports = ports;
    this.#layout = layout;
  }

  /** One look. "dead" is final, because the holder's own deadline is shorter than what it takes to be judged. A look that fails counts for nothing. */
  async look(holder: Holder): Promise<HolderState> {
    if (await this.#isProvenDead(holder)) return "dead";
    const { clock } = this.#ports;
    const askedAtMs = clock.monotonicMs();
    const bytes = await this.#readBeat(holder);
    const before = this.#watched.get(holder.id);
    if (before === undefined || before.bytes !== bytes) {
      this.#watched.set(holder.id, { bytes, silentMs: 0, provenAtMs: clock.monotonicMs() });
      return "alive";
    }
    // Silent until I asked: while the answer was on its way the holder may have beaten. New bytes, above, count from when I had them.
    const gapMs = Math.min(Math.max(0, askedAtMs - before.provenAtMs), gapPart * holder.leaseMs);
    const silentMs = before.silentMs + gapMs;
    this.#watched.set(holder.id, { bytes, silentMs, provenAtMs: askedAtMs });
    if (silentMs >= holder.leaseMs) return "dead";
    return silentMs >= silentPart * holder.leaseMs ? "silent" : "alive";
  }

  /**
   * One look by somebody who cannot watch for a lease: also dead when the heartbeat's stamp is older than that of `probe`, a file made just now beside
   * it, by two leases. Both stamps are the server's.
   */
  async lookOnce(holder: Holder, probe: string): Promise<HolderState> {
    const state = await this.look(holder);
    if (state === "dead" || !this.#stampsAreFresh) return state;
    const beatMs = await this.#findStamp(this.#layout.beat(holder.id));
    const nowMs = await this.#findStamp(probe);
    if (beatMs === undefined || nowMs === undefined) return state;
    return nowMs - beatMs > oneShotLeases * holder.leaseMs ? "dead" : state;
  }

  /** When the holder last said that it lives, by its own clock: for people. */
  async lastSeenMs(holder: Holder): Promise<number> {
    const beat = decodeBeat(Buffer.from(await this.#readBeat(holder), "latin1"));
    return beat?.wallMs ?? holder.startedAtMs;
  }

  forget(id: string): void {
    this.#watched.delete(id);
  }

  /** An SMB server may stamp a file only when its writer closes it: there a silent stamp says nothing. */
  get #stampsAreFresh(): boolean {
    return !/cifs|smb/.test(this.#ports.disk.volume.type);
  }

  /**
   * Whether a lock of its kernel would stand in my way: it is mine, or gone. Two kernels cannot both have this disk as their own; a client of ours would have seen a network mount. Boot ids
   * that differ prove nothing, because a container may show one of its own.
   */
  #locksMeet({ bootId, isLocal }: Holder): boolean {
    const { disk, host } = this.#ports;
    return bootId === host.bootId || (isLocal && disk.volume.kind === "local");
  }

  /** The kernel frees a lock when its process dies, or with itself. That is proof only where locks meet, and of this very file. */
  async #isProvenDead(holder: Holder): Promise<boolean> {
    const { disk, osLock } = this.#ports;
    if (!this.#locksMeet(holder) || holder.beatIdentity === "") return false;
    const path = this.#layout.beat(holder.id);
    try {
      // Two mounts of one share have one boot id but not one identity, and their locks may not meet.
      if ((await disk.stat(path)).identity !== holder.beatIdentity) return false;
      const lock = await osLock.open(path);
      try {
        // "Cannot be locked" is no proof of life: a stopped process holds its lock too.
        return (await lock.tryLock()) && (await disk.stat(path)).identity === holder.beatIdentity;
      } finally {
        await lock.close();
      }
    } catch {
      // No proof to be had; the bytes decide.
      return false;
    }
  }

  async #readBeat(holder: Holder): Promise<string> {
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

  async #findStamp(path: string): Promise<number | undefined> {
    try {
      // Through an open, because a plain stat is answered from a cache that may be a minute old.
      const file = await this.#ports.disk.open(path, "read");
      try {
        return (await file.stat()).mtimeMs;
      } finally {
        await file.close();
      }
    } catch (error) {
      // ESTALE: its holder has ended between the open and the stat.
      if (hasErrno(error, "ENOENT", "ESTALE")) return undefined;
      throw error;
    }
  }
}
