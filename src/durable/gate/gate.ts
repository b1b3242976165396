// Gate: one holder at a time, first among the callers of this process, then among all processes of
// this kernel. It opens by itself when its holder dies.
import type { BlockingLock, Hold, Waiting } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import type { OsLockFile } from "../../ports/os-lock.ts";
import type { Ports } from "../../ports/ports.ts";
import { checkTimeout, Deadline } from "../wait/deadline.ts";
import { findGateHolder, gateNote, isThisProcess } from "./gate-holder.ts";
import { Fifo } from "../wait/fifo.ts";

/** The files of a gate. */
export interface GateOptions {
  /** Path of the lock file. Holdfast never deletes it. */
  readonly lockPath: string;
  /**
   * Path of the file that waiters lock first, so that the holder sees that another process waits.
   * Holdfast never deletes it.
   */
  readonly turnstilePath: string;
}

/** A held gate. */
export interface GateHold extends Hold {
  /** Returns true if a caller waits, in this or another process. */
  isContended(): Promise<boolean>;
  /**
   * Checks against the disk that the lock is still held. Acknowledge work only after it. Throws
   * LOCK_LOST if the lock file was deleted or replaced since the grant: another process may hold
   * the gate.
   */
  assertHeld(): Promise<void>;
  /** Identifies the lock file. A process that holds a deleted file has another id. */
  readonly lockId: string;
  /**
   * Frees the lock without waking the process that waits for it, for a holder that may `resume` in
   * a moment. To hand the lock over, `release`.
   */
  pause(): Promise<void>;
  /**
   * Acquires the paused lock again, before those that wait. Returns false if another process
   * acquired it meanwhile: then this hold is released.
   */
  resume(): Promise<boolean>;
}

/**
 * Waiters outside the turnstile pause for about the duration of a hold, but not longer than this: a process with
 * longer holds would try less often, get fewer turns, and have more to do in each.
 */
const pauseMsMax = 20;
/** After this many pauses a waiter tries more and more often, up to eight times as often. */
const patientPauses = 4;
const leastPart = 1 / 8;
/**
 * Behind a holder that keeps the gate for seconds, a waiter pauses for this part of the time that it has waited, up
 * to 10 ms.
 */
const waitedPart = 1 / 200;
const slowPauseMs = 10;

/**
 * An exclusive lock: one holder at a time, first among the callers of this process, then among all
 * processes of this kernel. The operating system releases it if its holder dies.
 */
export class Gate implements AsyncDisposable {
  readonly #ports: Ports;
  readonly #options: GateOptions;
  readonly #lock: OsLockFile;
  readonly #turnstile: OsLockFile;
  readonly #fifo = new Fifo();
  readonly #closed = new AbortController();
  /** How long this process last held the gate. Holds of other processes probably take about as long. */
  #lastHoldMs = 0;
  /** True if the last wait took about as long as a hold or longer: other processes are as busy as this one. */
  #isCrowded = false;
  #drained: Promise<void> | undefined;

  private constructor(ports: Ports, options: GateOptions, lock: OsLockFile, turnstile: OsLockFile) {
    this.#ports = ports;
    this.#options = options;
    this.#lock = lock;
    this.#turnstile = turnstile;
  }

  /**
   * Opens a gate. Throws UNSUPPORTED_DISK if there are no OS locks: nothing else would exclude
   * processes that use them.
   */
  static async open(ports: Ports, options: GateOptions): Promise<Gate> {
    const lock = await ports.osLock.open(options.lockPath, { note: gateNote(ports.host) });
    try {
      return new Gate(ports, options, lock, await ports.osLock.open(options.turnstilePath));
    } catch (error) {
      await lock.close();
      throw error;
    }
  }

  /**
   * Acquires the gate if it is free, without waiting. Returns undefined if another caller or
   * process holds it. Throws CLOSED.
   */
  async tryAcquire(): Promise<GateHold | undefined> {
    this.#closed.signal.throwIfAborted();
    if (!this.#fifo.tryTake()) return undefined;
    try {
      if (await this.#lock.tryLock()) return this.#newHold();
    } catch (error) {
      this.#fifo.give();
      throw error;
    }
    this.#fifo.give();
    return undefined;
  }

  /**
   * Acquires the gate, and waits for at most `timeoutMs` (default `Infinity`). Throws LOCK_TIMEOUT
   * and CLOSED.
   */
  async acquire({ timeoutMs = Infinity, signal }: Waiting = {}): Promise<GateHold> {
    checkTimeout(timeoutMs);
    signal?.throwIfAborted();
    this.#closed.signal.throwIfAborted();
    if (timeoutMs <= 0) {
      const hold = await this.tryAcquire();
      if (hold === undefined) throw await this.#timedOut(timeoutMs);
      return hold;
    }
    const isFirst = this.#fifo.tryTake();
    const step = isFirst && !this.#isCrowded ? await this.#enterAtOnce() : "outside";
    if (step === "entered") return this.#newHold();
    const closed = this.#closed.signal;
    const late = Symbol("late");
    const deadline = new Deadline(this.#ports.clock, { timeoutMs, signal, closed, timedOut: () => late });
    try {
      // A caller keeps its turn while it waits for other processes: if it gave it up, later callers would overtake
      // it.
      if (!isFirst) await this.#fifo.take(deadline.signal);
      try {
        await this.#passTurnstile(step, deadline.signal);
      } catch (error) {
        this.#fifo.give();
        throw error;
      }
      return this.#newHold();
    } catch (error) {
      throw error === late ? await this.#timedOut(timeoutMs) : error;
    } finally {
      deadline.cancel();
    }
  }

  /** Returns the holder according to its lock file, for people. */
  async findHolder(): Promise<BlockingLock | undefined> {
    return await findGateHolder(this.#ports, this.#options.lockPath);
  }

  /**
   * Rejects new and waiting callers with CLOSED, and waits for the holder: closing earlier would
   * admit another process.
   */
  async close(): Promise<void> {
    if (!this.#closed.signal.aborted)
      this.#closed.abort(holdfastError("CLOSED", `${this.#options.lockPath} was closed.`, {}));
    await (this.#drained ??= this.#drain());
  }

  async #drain(): Promise<void> {
    await this.#fifo.take();
    await this.#lock.close();
    await this.#turnstile.close();
  }

  /** Closes the gate, as `close` does. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /**
   * The same steps as a wait, for a gate that is free. Uses no timers and signals, which cost more than the locks.
   */
  async #enterAtOnce(): Promise<"entered" | "in the turnstile" | "outside"> {
    try {
      if (!(await this.#turnstile.tryLock())) return "outside";
      // Stay in the turnstile: the holder may have seen this process there, and will hand over to it.
      if (!(await this.#lock.tryLock())) return "in the turnstile";
      await this.#turnstile.unlock();
      return "entered";
    } catch (error) {
      try {
        await this.#turnstile.unlock();
      } finally {
        this.#fifo.give();
      }
      throw error;
    }
  }

  /** The process in the turnstile is next: a holder that acquires the gate again and again cannot overtake it. */
  async #passTurnstile(step: "in the turnstile" | "outside", signal: AbortSignal): Promise<void> {
    const { clock } = this.#ports;
    const beganMs = clock.monotonicMs();
    const longMs = Math.min(this.#lastHoldMs, pauseMsMax);
    // A process that has just had its turn lets others enter the turnstile first, and one that has waited long tries
    // often. So they enter in about the order in which they began to wait.
    const firstMs = this.#isCrowded ? longMs : 0;
    const pauseMs = (waitedMs: number): number => {
      if (waitedMs === 0) return firstMs;
      const agedMs = longMs * Math.max(leastPart, Math.min(1, (patientPauses * longMs) / waitedMs) ** 2);
      return Math.max(agedMs, Math.min(slowPauseMs, waitedMs * waitedPart));
    };
    if (step === "outside") await this.#turnstile.lock({ signal, pauseMs });
    try {
      this.#isCrowded = step === "in the turnstile" || !(await this.#lock.tryLock());
      // The holder's note wakes this process. Trying is only needed if the holder was killed.
      if (this.#isCrowded) await this.#lock.lock({ signal, pauseMs: (waitedMs) => (waitedMs === 0 ? 0 : longMs) });
      this.#isCrowded &&= clock.monotonicMs() - beganMs > longMs / 2;
    } finally {
      await this.#turnstile.unlock();
    }
  }

  #newHold(): GateHold {
    let lost: AbortController | undefined;
    let held = true;
    let isPaused = false;
    const sinceMs = this.#ports.clock.monotonicMs();
    const lockId = this.#lock.identity;
    let asking: Promise<boolean> | undefined;
    const isContended = async (): Promise<boolean> => {
      if (!held || isPaused) return false;
      // One check for all concurrent callers: a second one would find the first in the turnstile and mistake it for
      // another process.
      asking ??= this.#isContended().finally(() => (asking = undefined));
      return await asking;
    };
    const release = async (): Promise<void> => {
      if (!held) return;
      held = false;
      this.#lastHoldMs = this.#ports.clock.monotonicMs() - sinceMs;
      // The next caller of this process uses the same turnstile, so wait for the check.
      await asking?.catch(() => undefined);
      try {
        // Lock again in order to hand over. If another process holds it now, that one will hand over.
        if (isPaused) await this.#lock.tryLock();
        await this.#lock.unlock();
      } finally {
        this.#fifo.give();
      }
    };
    const pause = async (): Promise<void> => {
      if (!held || isPaused) return;
      isPaused = true;
      await asking?.catch(() => undefined);
      await this.#lock.unlock({ isBrief: true });
    };
    const resume = async (): Promise<boolean> => {
      if (!held || !isPaused) return held;
      const isGranted = await this.#lock.tryLock();
      isPaused = !isGranted;
      // The lock file is new: conclusions drawn under the old one may be wrong.
      if (isGranted && this.#lock.identity === lockId) return true;
      await release();
      return false;
    };
    const assertHeld = async (): Promise<void> => {
      if (held && !isPaused && (await this.#lock.isIntact())) return;
      const error = this.#lost(held && !isPaused ? "its file was deleted or replaced" : "it was released");
      (lost ??= new AbortController()).abort(error);
      throw error;
    };
    return {
      // The OS never takes this lock from a living process. Created on demand, because it is seldom needed.
      get signal() {
        return (lost ??= new AbortController()).signal;
      },
      lockId,
      assertHeld,
      acquiredAt: new Date(this.#ports.clock.wallMs()),
      release,
      pause,
      resume,
      isContended,
      [Symbol.asyncDispose]: release,
    };
  }

  async #isContended(): Promise<boolean> {
    if (this.#fifo.waiting > 0) return true;
    if (!(await this.#turnstile.tryLock())) return true;
    await this.#turnstile.unlock();
    return false;
  }

  #lost(why: string): Error {
    const path = this.#options.lockPath;
    const message = `${path} is no longer held, because ${why}: another process may be inside. Acquire it again before you write.`;
    return holdfastError("LOCK_LOST", message, { path });
  }

  async #timedOut(timeoutMs: number): Promise<Error> {
    const path = this.#options.lockPath;
    const waitedMs = Math.max(0, timeoutMs);
    const blocking = await this.findHolder();
    if (blocking === undefined) {
      const message = `${path} is held, and its file does not name the holder; waited ${waitedMs} ms (option timeoutMs).`;
      return holdfastError("LOCK_TIMEOUT", message, { path, waitedMs, blockedBy: [] });
    }
    const { pid, host } = blocking.holder;
    const since = blocking.since.toISOString();
    const isOwn = isThisProcess(blocking, this.#ports.host);
    const by = isOwn ? "this process" : `process ${pid} on ${host}`;
    const remedy = isOwn ? " It cannot be taken again before it is released." : "";
    const message = `${path} is held by ${by}, since ${since}; waited ${waitedMs} ms (option timeoutMs).${remedy}`;
    return holdfastError("LOCK_TIMEOUT", message, { path, waitedMs, blockedBy: [blocking] });
  }
}
