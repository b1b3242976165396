// Gate: one holder at a time, first among the callers of this process, then among all processes of
// this kernel. It opens by itself when its holder dies.
import type { BlockingLock, Hold, Waiting } from "../../common.ts";
import { holdfastError } from "../../errors.ts";
import type { OsLockFile } from "../../ports/os-lock.ts";
import type { Ports } from "../../ports/ports.ts";
import { checkTimeout, Deadline } from "../wait/deadline.ts";
import { findGateHolder, gateNote, isThisProcess } from "./gate-holder.ts";
import { Fifo } from "../wait/fifo.ts";

export interface GateOptions {
  /** The lock itself. Holdfast never deletes it. */
  readonly lockPath: string;
  /**
   * The lock that waiters take first, so that the holder can see that another process waits.
   * Holdfast never deletes it.
   */
  readonly turnstilePath: string;
}

export interface GateHold extends Hold {
  /** Whether a caller waits, in this or another process: time to hand over. */
  isContended(): Promise<boolean>;
  /**
   * LOCK_LOST when the lock file was deleted or replaced since the grant: then another process may
   * be inside. One look at the disk; what is to be acknowledged is acknowledged after it.
   */
  assertHeld(): Promise<void>;
  /** Of the lock file. A process that is inside by a file that was deleted has another one. */
  readonly lockId: string;
}

export class Gate implements AsyncDisposable {
  readonly #ports: Ports;
  readonly #options: GateOptions;
  readonly #lock: OsLockFile;
  readonly #turnstile: OsLockFile;
  readonly #fifo = new Fifo();
  readonly #closed = new AbortController();
  /** How long this process held the gate when it last did: holds of others take about as long. */
  #lastHoldMs = 0;
  #drained: Promise<void> | undefined;

  private constructor(ports: Ports, options: GateOptions, lock: OsLockFile, turnstile: OsLockFile) {
    this.#ports = ports;
    this.#options = options;
    this.#lock = lock;
    this.#turnstile = turnstile;
  }

  /**
   * UNSUPPORTED_DISK where there are no OS locks: nothing else would exclude processes that use
   * them.
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

  /** Undefined when another caller or process has it. Never waits. */
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
   * Waits in the queue. LOCK_TIMEOUT after `timeoutMs` (default: never), or the signal's reason;
   * the caller has then left the queue.
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
    const step = isFirst ? await this.#enterAtOnce() : "outside";
    if (step === "entered") return this.#newHold();
    const closed = this.#closed.signal;
    const late = Symbol("late");
    const deadline = new Deadline(this.#ports.clock, { timeoutMs, signal, closed, timedOut: () => late });
    try {
      // A caller keeps its turn while it waits for other processes: giving it back would let later
      // callers overtake.
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

  /** The holder, as far as its lock file tells. For people. */
  async findHolder(): Promise<BlockingLock | undefined> {
    return await findGateHolder(this.#ports, this.#options.lockPath);
  }

  /**
   * Refuses new callers, rejects those that wait (CLOSED), and waits for the holder: closing under
   * it would let another process in beside it.
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

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /**
   * The same steps as a wait, for a gate that is free: without timers and signals, which cost more
   * than the locks.
   */
  async #enterAtOnce(): Promise<"entered" | "in the turnstile" | "outside"> {
    try {
      if (!(await this.#turnstile.tryLock())) return "outside";
      // Stays in the turnstile: the holder may have seen this process there, and will hand over to
      // it.
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

  /**
   * The process in the turnstile is next: a holder that takes the gate again and again cannot
   * overtake it.
   */
  async #passTurnstile(step: "in the turnstile" | "outside", signal: AbortSignal): Promise<void> {
    if (step === "outside") await this.#turnstile.lock({ signal, usualHoldMs: this.#lastHoldMs });
    try {
      await this.#lock.lock({ signal });
    } finally {
      await this.#turnstile.unlock();
    }
  }

  #newHold(): GateHold {
    let lost: AbortController | undefined;
    let held = true;
    const sinceMs = this.#ports.clock.monotonicMs();
    const lockId = this.#lock.identity;
    let asking: Promise<boolean> | undefined;
    const isContended = async (): Promise<boolean> => {
      if (!held) return false;
      // One question for all callers of this moment: a second one would meet the first in the
      // turnstile and take it for another process.
      asking ??= this.#isContended().finally(() => (asking = undefined));
      return await asking;
    };
    const release = async (): Promise<void> => {
      if (!held) return;
      held = false;
      this.#lastHoldMs = this.#ports.clock.monotonicMs() - sinceMs;
      // The next caller of this process goes through the same turnstile.
      await asking?.catch(() => undefined);
      try {
        await this.#lock.unlock();
      } finally {
        this.#fifo.give();
      }
    };
    const assertHeld = async (): Promise<void> => {
      if (held && (await this.#lock.isIntact())) return;
      const error = this.#lost(held ? "its file was deleted or replaced" : "it was released");
      (lost ??= new AbortController()).abort(error);
      throw error;
    };
    return {
      // The OS never takes this lock from a living process. Made when it is asked for, which is
      // seldom.
      get signal() {
        return (lost ??= new AbortController()).signal;
      },
      lockId,
      assertHeld,
      acquiredAt: new Date(this.#ports.clock.wallMs()),
      release,
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
