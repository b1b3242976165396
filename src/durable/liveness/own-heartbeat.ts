// OwnHeartbeat beats until the session of this process is over, and knows how much of the session's
// own deadline is left.
import type { DiskFile } from "../../ports/disk.ts";
import { elapsedMs, type Beating, type BeatTimes } from "../../ports/heart.ts";
import type { Ports } from "../../ports/ports.ts";

/** The part of a lease after which a silent session ends itself. The rest is a margin for judges with slower clocks. */
export const ownPart = 0.8;
/** A command that ends within this part of a lease never starts the thread that beats. */
const firstBeatPart = 1 / 8;
export const beatPart: number = 1 / 4;

export interface BeatingSession {
  /** True if the session is over. Reads the clocks. */
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

  /** Returns how long the session may continue without another beat. */
  leftMs(): number {
    const { clock } = this.#ports;
    this.#lastBeat = this.#beating?.lastBeat() ?? this.#lastBeat;
    const now = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
    return ownPart * this.#leaseMs - elapsedMs(this.#lastBeat, now);
  }

  /** Beats for `session`, and checks at its deadline if it is over. */
  beatFor(session: BeatingSession): void {
    const { clock } = this.#ports;
    const background = { background: true, signal: session.signal };
    const watch = async (): Promise<void> => {
      await clock.sleep(firstBeatPart * this.#leaseMs, background);
      this.#startHeart(session);
      while (!session.isOver) await clock.sleep(Math.max(this.leftMs(), 1), background);
    };
    // It rejects only when the session ends, and a timer must not throw.
    watch().catch(() => undefined);
  }

  async stop(): Promise<void> {
    await this.#beating?.stop();
  }

  #startHeart(session: BeatingSession): void {
    if (session.isOver) return;
    const everyMs = beatPart * this.#leaseMs;
    const onLost = (): void => {
      // Check at once: a heart that was late is the first to notice that the machine slept.
      if (session.isOver) return;
      // Repeat a failed beat until the deadline decides: it may be one lost packet, or one thread
      // too many.
      void this.#beatAgain(session);
    };
    try {
      this.#beating = this.#ports.heart.start(this.#file, {
        everyMs,
        stallMs: this.#leaseMs,
        gapMsMax: ownPart * this.#leaseMs,
        after: this.#lastBeat,
        leaseMs: this.#leaseMs,
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
      // The session has ended, so there is nothing to watch.
    }
  }
}
