// The heartbeat of this process: keeps beating until its session is over, and tells how much of the
// session's own deadline is left.
import type { DiskFile } from "../../ports/disk.ts";
import { elapsedMs, type Beating, type BeatTimes } from "../../ports/heart.ts";
import type { Ports } from "../../ports/ports.ts";

/**
 * The part of a lease after which a silent session ends itself. The rest is for judges whose clocks
 * are slower.
 */
export const ownPart = 0.8;
/** A command that ends within this part of a lease never starts the thread that beats. */
const firstBeatPart = 1 / 8;
export const beatPart: number = 1 / 4;

export interface BeatingSession {
  /** Asks the clocks. */
  readonly isOver: boolean;
  /** Aborts when the session is over. */
  readonly signal: AbortSignal;
}

export class OwnHeartbeat {
  readonly #ports: Ports;
  readonly #file: DiskFile;
  readonly #leaseMs: number;
  /** When the first beat was written. */
  readonly #begun: BeatTimes;
  #lastBeat: BeatTimes;
  #beating: Beating | undefined;

  constructor(ports: Ports, file: DiskFile, leaseMs: number, begun: BeatTimes) {
    this.#ports = ports;
    this.#file = file;
    this.#leaseMs = leaseMs;
    this.#begun = begun;
    this.#lastBeat = begun;
  }

  /** How long the session may go on without another beat. */
  leftMs(): number {
    const { clock } = this.#ports;
    this.#lastBeat = this.#beating?.lastBeat() ?? this.#lastBeat;
    const now = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
    return ownPart * this.#leaseMs - elapsedMs(this.#lastBeat, now);
  }

  /** Beats for `session`, and asks it at its deadline whether it is over. */
  beatFor(session: BeatingSession): void {
    const { clock } = this.#ports;
    const background = { background: true, signal: session.signal };
    const watch = async (): Promise<void> => {
      await clock.sleep(firstBeatPart * this.#leaseMs, background);
      this.#startHeart(session);
      while (!session.isOver) await clock.sleep(Math.max(this.leftMs(), 1), background);
    };
    // The only rejection is the end of the session: nothing may be thrown from a timer.
    watch().catch(() => undefined);
  }

  async stop(): Promise<void> {
    await this.#beating?.stop();
  }

  #startHeart(session: BeatingSession): void {
    if (session.isOver) return;
    const everyMs = beatPart * this.#leaseMs;
    const onLost = (): void => {
      // Asked at once: a heart that came too late is the first to notice that the machine slept.
      if (session.isOver) return;
      // A beat that failed is repeated until the deadline decides: it may be one lost packet, or
      // one thread too many.
      void this.#beatAgain(session);
    };
    try {
      this.#beating = this.#ports.heart.start(this.#file, {
        everyMs,
        stallMs: this.#leaseMs,
        gapMsMax: ownPart * this.#leaseMs,
        after: this.#lastBeat,
        from: 1 + Math.floor((this.#ports.clock.monotonicMs() - this.#begun.monotonicMs) / everyMs),
        onLost,
      });
    } catch {
      onLost();
    }
  }

  async #beatAgain(session: BeatingSession): Promise<void> {
    try {
      this.#lastBeat = this.#beating?.lastBeat() ?? this.#lastBeat;
      await this.#ports.clock.sleep(beatPart * this.#leaseMs, { background: true, signal: session.signal });
      this.#startHeart(session);
    } catch {
      // The session ended meanwhile.
    }
  }
}
