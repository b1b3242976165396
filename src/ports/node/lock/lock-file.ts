// One OS lock of this process: it polls for the lock, and compares the file with its name when the
// lock is granted.
import { holdfastError } from "../../../errors.ts";
import type { Clock } from "../../clock.ts";
import {
  blanksFor,
  openOrMake,
  type OsLockFile,
  type OsLockOptions,
  type OsLockWaiting,
  type OsUnlocking,
} from "../../os-lock.ts";
import type { Random } from "../../random.ts";
import { Sleeper } from "../../sleeper.ts";
import type { Watch } from "../../watch.ts";
import { findErrno, toDiskError } from "../disk/errno.ts";
import { isAbsence, type FileCalls } from "../disk/file-calls.ts";
import { existingLockFileFlags, lockFileFlags, type NativeLock } from "./native-lock.ts";

export interface NodeLockOptions extends OsLockOptions {
  readonly native: NativeLock;
  readonly calls: FileCalls;
  readonly clock: Clock;
  readonly random: Random;
  readonly watch: Watch;
  readonly isLocal: boolean;
}

export async function openLockFile(path: string, options: NodeLockOptions): Promise<OsLockFile> {
  const file = new NodeLockFile(path, options);
  await file.prepare();
  return file;
}

/**
 * Upper bounds of the pause between two attempts; the lower bound is half of that. An attempt costs
 * a local kernel 3 µs, and 80 µs for the process, which has to wake up; on a share it costs a round
 * trip.
 */
const localPausesMs = { first: 2, longest: 10 };
const sharePausesMs = { first: 40, longest: 250 };
/** If the note wakes waiters, attempts only find changes without a hint: a killed holder, or a lost hint. */
const patientPauseMs = 25;
const pauseMsMin = 1;
/** How often in a row the file may be deleted between opening it and checking its name. */
const openingsMax = 100;

const lineEnd = Uint8Array.of(10);

interface Descriptor {
  readonly fd: number;
  /** Unique among all files of all devices while this one is open. */
  readonly inode: string;
  /** Unique within its file system. */
  readonly number: string;
  /** Known after the first lock. */
  identity?: string;
}

/** The length of the mark that the first holder leaves in a file. */
const markDigits = 16;

/**
 * On a local volume the descriptor is kept between acquisitions. Elsewhere it lives for one: after
 * a broken connection the server may have forgotten a kept descriptor while its locks look held.
 * The native module tries in the main thread (it has no other non-waiting call); a silent server
 * blocks that thread for as long.
 */
class NodeLockFile implements OsLockFile {
  readonly #path: string;
  readonly #options: NodeLockOptions;
  readonly #blanks: Uint8Array | undefined;
  #state: "idle" | "asking" | "held" | "closed" = "idle";
  #file: Descriptor | undefined;
  /** Settles when no attempt or wait uses the descriptor any more. */
  #asking: Promise<unknown> = Promise.resolve();
  #cancelled: { readonly reason: unknown } | undefined;
  /** True if the file has the note, unless another process was granted the lock since. */
  #isNoted = false;
  readonly #sleeper: Sleeper;

  constructor(path: string, options: NodeLockOptions) {
    this.#path = path;
    this.#options = options;
    this.#blanks = options.note && blanksFor(options.note);
    this.#sleeper = new Sleeper(options.clock);
  }

  /** Creates the file, and fails now if it cannot be opened. */
  async prepare(): Promise<void> {
    this.#file = await this.#open();
    if (!this.#options.isLocal) await this.#closeDescriptor();
  }

  get identity(): string {
    return this.#state === "held" ? (this.#file?.identity ?? this.#file?.inode ?? "") : "";
  }

  async tryLock(): Promise<boolean> {
    if (this.#state === "closed") throw this.#closedError();
    return this.#state === "idle" && (await this.#ask(() => this.#tryOnce()));
  }

  async lock({ signal, pauseMs }: OsLockWaiting = {}): Promise<void> {
    signal?.throwIfAborted();
    if (this.#state === "closed") throw this.#closedError();
    if (this.#state !== "idle")
      throw new TypeError(`${this.#path} is held or waited for already, through this OsLockFile`);
    const cancel = (): void => this.#cancel(signal?.reason);
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      await this.#ask(() => this.#tryUntilGranted(pauseMs));
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  async isIntact(): Promise<boolean> {
    return this.#state === "held" && this.#file !== undefined && (await this.#bearsName(this.#file));
  }

  async unlock(options?: OsUnlocking): Promise<void> {
    if (this.#state !== "held") return;
    this.#state = "idle";
    await this.#giveUp(options);
  }

  async close(): Promise<void> {
    const isHeld = this.#state === "held";
    this.#state = "closed";
    this.#cancel(this.#closedError());
    await this.#asking;
    if (isHeld) await this.#giveUp();
    await this.#closeDescriptor();
  }

  /**
   * Serializes attempts on the descriptor. When it resolves, the lock is held, or the attempt left nothing behind.
   */
  async #ask(question: () => Promise<boolean>): Promise<boolean> {
    this.#state = "asking";
    this.#cancelled = undefined;
    this.#sleeper.forgetWakeUps();
    let end: () => void = () => undefined;
    this.#asking = new Promise<void>((resolve) => (end = resolve));
    let isGranted = false;
    try {
      isGranted = await question();
      // If the lock file was closed during the attempt, the attempt has released what it was granted.
      if (this.#isClosed()) throw this.#closedError();
      this.#state = isGranted ? "held" : "idle";
      return isGranted;
    } catch (error) {
      await this.#closeDescriptor();
      throw error;
    } finally {
      if (this.#state === "asking") this.#state = "idle";
      if (!isGranted && !this.#options.isLocal) await this.#closeDescriptor();
      end();
    }
  }

  async #tryUntilGranted(hintMs: OsLockWaiting["pauseMs"]): Promise<boolean> {
    const { watch, note, clock, isLocal } = this.#options;
    const pauseMs = isLocal && hintMs !== undefined ? hintMs : this.#growingPause();
    const beganMs = clock.monotonicMs();
    let stopWatching: (() => void) | undefined;
    try {
      await this.#pause(isLocal ? (hintMs?.(0) ?? 0) : 0);
      while (!(await this.#tryOnce())) {
        this.#throwIfCancelled();
        if (stopWatching === undefined && note !== undefined) {
          stopWatching = watch.start(this.#path, this.#sleeper.wake);
          // The holder may have released the lock before the watch began.
          continue;
        }
        await this.#pause(Math.max(pauseMs(clock.monotonicMs() - beganMs), pauseMsMin));
      }
      return true;
    } finally {
      stopWatching?.();
    }
  }

  /**
   * All pauses soon reach the same length: if old waiters paused longer than newcomers, these would overtake them.
   */
  #growingPause(): () => number {
    const { note, isLocal } = this.#options;
    const { first, longest } = isLocal ? localPausesMs : sharePausesMs;
    const last = isLocal && note !== undefined ? patientPauseMs : longest;
    let boundMs = first / 2;
    return () => (boundMs = Math.min(last, 2 * boundMs));
  }

  /** Sleeps with jitter: waiters that began together drift apart. */
  async #pause(ms: number): Promise<void> {
    if (ms <= 0) return;
    const boundMs = this.#options.isLocal ? Math.min(ms, patientPauseMs) : ms;
    await this.#sleeper.sleep(boundMs * (0.5 + 0.5 * this.#options.random.fraction()));
    this.#throwIfCancelled();
  }

  /** Acquires the lock of the file that has the name now, if it is free. */
  async #tryOnce(): Promise<boolean> {
    for (let opening = 0; opening < openingsMax; opening++) {
      const file = (this.#file ??= await this.#open());
      if (!this.#tryNow(file.fd)) return false;
      if (!this.#options.isLocal) return true;
      if (await this.#bearsName(file)) {
        file.identity ??= await this.#identify(file);
        if (!this.#isNoted) await this.#write(this.#options.note);
        this.#isNoted = true;
        return true;
      }
      await this.#closeDescriptor();
    }
    const message = `${this.#path} was deleted or replaced ${openingsMax} times in a row while it was being locked. Find out what removes it.`;
    throw holdfastError("IO_ERROR", message, { path: this.#path });
  }

  #tryNow(fd: number): boolean {
    try {
      return this.#options.native.tryLock(fd);
    } catch (error) {
      throw toDiskError(error, "lock", this.#path);
    }
  }

  /**
   * Returns the identity of the locked file. A file system gives the inode of a deleted file to the
   * next one, so a random mark in the file is part of its identity. A copied file has the same mark
   * but another inode. The device is not part of it, and the mark is durable: a disk that is
   * unplugged and comes back may have another device number, and its locks must keep their
   * identity. Called while the lock is held.
   */
  async #identify({ fd, inode, number }: Descriptor): Promise<string> {
    const { note, calls, random } = this.#options;
    if (note === undefined) return inode;
    const offset = note.length + lineEnd.length;
    const found = new Uint8Array(markDigits);
    const length = await calls.read(fd, found, offset);
    if (length === markDigits) return `${number}:${Buffer.from(found).toString("latin1")}`;
    const mark = Buffer.from(random.bytes(markDigits / 2)).toString("hex");
    await this.#write(Buffer.from(`${mark}\n`), offset);
    // Sync once per file. If it fails, the next holder may find no mark and write another.
    await calls.fsync(fd).catch(() => undefined);
    return `${number}:${mark}`;
  }

  async #bearsName({ inode }: Descriptor): Promise<boolean> {
    if (!this.#options.isLocal) return true;
    try {
      const { dev, ino } = await this.#options.calls.stat(this.#path);
      return `${dev}:${ino}` === inode;
    } catch (error) {
      if (isAbsence(error)) return false;
      throw toDiskError(error, "stat", this.#path);
    }
  }

  async #giveUp({ isBrief = false }: OsUnlocking = {}): Promise<void> {
    if (!this.#options.isLocal || this.#file === undefined) return await this.#closeDescriptor();
    this.#isNoted = isBrief;
    // Write the blanks before the release: later they would overwrite the note of the next holder.
    if (!isBrief) await this.#write(this.#blanks);
    try {
      this.#options.native.unlock(this.#file.fd);
    } catch {
      // Closing the descriptor releases the lock as well, and cannot fail to.
      return await this.#closeDescriptor();
    }
    // Write again after the release: waiters that the blanks woke may have tried too early.
    if (this.#blanks !== undefined && !isBrief) await this.#write(lineEnd, this.#blanks.length);
  }

  async #write(bytes: Uint8Array | undefined, offset = 0): Promise<void> {
    if (bytes === undefined || this.#file === undefined) return;
    try {
      await this.#options.calls.write(this.#file.fd, bytes, offset);
    } catch (error) {
      // On a full disk the note for people is missing, but the lock is held.
      if (findErrno(error) === undefined) throw error;
    }
  }

  #throwIfCancelled(): void {
    if (this.#cancelled !== undefined) throw this.#cancelled.reason;
  }

  #cancel(reason: unknown): void {
    this.#cancelled ??= { reason };
    this.#sleeper.wake();
  }

  async #open(): Promise<Descriptor> {
    const { make } = this.#options;
    if (make === undefined) return await this.#openWith(lockFileFlags);
    return await openOrMake(() => this.#openWith(existingLockFileFlags), make);
  }

  async #openWith(flags: number): Promise<Descriptor> {
    const { calls } = this.#options;
    try {
      const fd = await calls.open(this.#path, flags);
      try {
        const { dev, ino } = await calls.fstat(fd);
        return { fd, inode: `${dev}:${ino}`, number: `${ino}` };
      } catch (error) {
        await calls.close(fd);
        throw error;
      }
    } catch (error) {
      throw toDiskError(error, "open", this.#path);
    }
  }

  /**
   * Closes the descriptor, which also releases the lock, even if closing fails. Nothing was written
   * that could be lost.
   */
  async #closeDescriptor(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    this.#isNoted = false;
    try {
      if (file !== undefined) await this.#options.calls.close(file.fd);
    } catch {
      // Nothing was written that could be lost.
    }
  }

  // A function, because the compiler would otherwise assume the state unchanged across an await.
  #isClosed(): boolean {
    return this.#state === "closed";
  }

  #closedError(): unknown {
    return holdfastError("CLOSED", `${this.#path} is closed`, {});
  }
}
