// One OS lock as this process takes it: asked for repeatedly, and compared with its name when it is
// granted.
import { holdfastError } from "../../../errors.ts";
import type { Clock } from "../../clock.ts";
import { blanksFor, openOrMake, type OsLockFile, type OsLockWaiting } from "../../os-lock.ts";
import type { Random } from "../../random.ts";
import { Sleeper } from "../../sleeper.ts";
import type { Watch } from "../../watch.ts";
import { findErrno, toDiskError } from "../disk/errno.ts";
import { isAbsence, type FileCalls } from "../disk/file-calls.ts";
import { existingLockFileFlags, lockFileFlags, type NativeLock } from "./native-lock.ts";

export interface LockFileParts {
  readonly native: NativeLock;
  readonly calls: FileCalls;
  readonly clock: Clock;
  readonly random: Random;
  readonly watch: Watch;
  readonly isLocal: boolean;
  readonly note?: Uint8Array | undefined;
  readonly make?: (() => Promise<void>) | undefined;
}

export async function openLockFile(path: string, parts: LockFileParts): Promise<OsLockFile> {
  const file = new NodeLockFile(path, parts);
  await file.prepare();
  return file;
}

/**
 * The pauses between two questions, at most; at least half of that. A question costs a local kernel
 * 3 µs, and its process, which has to wake for it, 80; on a share it costs a round trip.
 */
const localPausesMs = { first: 2, longest: 10 };
const sharePausesMs = { first: 40, longest: 250 };
/**
 * Where the note wakes waiters, a question is for what comes without: a holder that was killed, a
 * hint that was lost. Without notes, a waiter that knows how long holds take need not ask more often
 * than that, up to this bound.
 */
const patientPauseMs = 25;
/** Deletions in a row, each between the opening of the file and the look at its name. */
const openingsMax = 100;

const lineEnd = Uint8Array.of(10);

interface Descriptor {
  readonly fd: number;
  /** Unique among all files of all devices, as long as this one is open. */
  readonly inode: string;
  /** Unique in its file system. */
  readonly number: string;
  /** Known once it was locked. */
  identity?: string;
}

/** The length of the mark that the first holder leaves in a file. */
const markDigits = 16;

/**
 * On a local volume the descriptor is kept between acquisitions. On any other it lives for one:
 * after a broken connection a kept descriptor may be one that the server has forgotten, while its
 * locks look held. The native module asks in the main thread (it has no other way of asking without
 * waiting); a server that is silent stops it for that long.
 */
class NodeLockFile implements OsLockFile {
  readonly #path: string;
  readonly #parts: LockFileParts;
  readonly #blanks: Uint8Array | undefined;
  #state: "idle" | "asking" | "held" | "closed" = "idle";
  #file: Descriptor | undefined;
  /** Settles when the descriptor is no longer in use by a question or a wait. */
  #asking: Promise<unknown> = Promise.resolve();
  #cancelled: { readonly reason: unknown } | undefined;
  readonly #sleeper: Sleeper;

  constructor(path: string, parts: LockFileParts) {
    this.#path = path;
    this.#parts = parts;
    this.#blanks = parts.note && blanksFor(parts.note);
    this.#sleeper = new Sleeper(parts.clock);
  }

  /** Makes the file, and fails now when it cannot be opened. */
  async prepare(): Promise<void> {
    this.#file = await this.#open();
    if (!this.#parts.isLocal) await this.#closeDescriptor();
  }

  get identity(): string {
    return this.#state === "held" ? (this.#file?.identity ?? this.#file?.inode ?? "") : "";
  }

  async tryLock(): Promise<boolean> {
    if (this.#state === "closed") throw this.#closedError();
    return this.#state === "idle" && (await this.#ask(() => this.#tryOnce()));
  }

  async lock({ signal, usualHoldMs = 0 }: OsLockWaiting = {}): Promise<void> {
    signal?.throwIfAborted();
    if (this.#state === "closed") throw this.#closedError();
    if (this.#state !== "idle")
      throw new TypeError(`${this.#path} is held or waited for already, through this OsLockFile`);
    const cancel = (): void => this.#cancel(signal?.reason);
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      await this.#ask(() => this.#tryUntilGranted(usualHoldMs));
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  async isIntact(): Promise<boolean> {
    return this.#state === "held" && this.#file !== undefined && (await this.#bearsName(this.#file));
  }

  async unlock(): Promise<void> {
    if (this.#state !== "held") return;
    this.#state = "idle";
    await this.#giveUp();
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
   * Only one question at a time uses the descriptor. Afterwards the lock is held, or nothing is
   * left of the question.
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
      // A lock file that was closed meanwhile gives up what it was granted.
      if (this.#isClosed()) throw this.#closedError();
      this.#state = isGranted ? "held" : "idle";
      return isGranted;
    } catch (error) {
      await this.#closeDescriptor();
      throw error;
    } finally {
      if (this.#state === "asking") this.#state = "idle";
      if (!isGranted && !this.#parts.isLocal) await this.#closeDescriptor();
      end();
    }
  }

  async #tryUntilGranted(usualHoldMs: number): Promise<boolean> {
    const { watch, note, random } = this.#parts;
    const { first, longest } = this.#pausesFor(usualHoldMs);
    let stopWatching: (() => void) | undefined;
    let boundMs = first;
    try {
      while (!(await this.#tryOnce())) {
        this.#throwIfCancelled();
        if (stopWatching === undefined && note !== undefined) {
          stopWatching = watch.start(this.#path, this.#sleeper.wake);
          // The holder may have let go before the watch began.
          continue;
        }
        // With jitter: waiters that began together drift apart.
        await this.#sleeper.sleep(boundMs * (0.5 + 0.5 * random.fraction()));
        this.#throwIfCancelled();
        boundMs = Math.min(longest, 2 * boundMs);
      }
      return true;
    } finally {
      stopWatching?.();
    }
  }

  /**
   * Soon all pauses of a waiter are equally long, whatever its age: if old waiters paused for longer,
   * those that came last would overtake them. One that knows how long holds take begins with that.
   */
  #pausesFor(usualHoldMs: number): { readonly first: number; readonly longest: number } {
    if (!this.#parts.isLocal) return sharePausesMs;
    const { first, longest } = localPausesMs;
    const knownMs = Math.min(usualHoldMs, patientPauseMs);
    const isWoken = this.#parts.note !== undefined;
    return { first: Math.max(first, knownMs), longest: isWoken ? patientPauseMs : Math.max(longest, knownMs) };
  }

  /** Takes the lock of the file that bears the name now, if it is free. */
  async #tryOnce(): Promise<boolean> {
    for (let opening = 0; opening < openingsMax; opening++) {
      const file = (this.#file ??= await this.#open());
      if (!this.#tryNow(file.fd)) return false;
      if (!this.#parts.isLocal) return true;
      if (await this.#bearsName(file)) {
        file.identity ??= await this.#identify(file);
        await this.#write(this.#parts.note);
        return true;
      }
      await this.#closeDescriptor();
    }
    const message = `${this.#path} was deleted or replaced ${openingsMax} times in a row while it was being locked. Find out what removes it.`;
    throw holdfastError("IO_ERROR", message, { path: this.#path });
  }

  #tryNow(fd: number): boolean {
    try {
      return this.#parts.native.tryLock(fd);
    } catch (error) {
      throw toDiskError(error, "lock", this.#path);
    }
  }

  /**
   * A file system gives the inode of a deleted file to the next one, so a random mark in the file
   * is part of what it is. A file that was copied has its mark, and another inode. The device is no
   * part of it, and the mark is durable: a disk that was pulled and comes back may have another
   * device number, and what was locked by this file is still known by it. Called while the lock is
   * held.
   */
  async #identify({ fd, inode, number }: Descriptor): Promise<string> {
    const { note, calls, random } = this.#parts;
    if (note === undefined) return inode;
    const offset = note.length + lineEnd.length;
    const found = new Uint8Array(markDigits);
    const length = await calls.read(fd, found, offset);
    if (length === markDigits) return `${number}:${Buffer.from(found).toString("latin1")}`;
    const mark = Buffer.from(random.bytes(markDigits / 2)).toString("hex");
    await this.#write(Buffer.from(`${mark}\n`), offset);
    // Once for each file. Where it fails, the next holder may find no mark, and makes another.
    await calls.fsync(fd).catch(() => undefined);
    return `${number}:${mark}`;
  }

  async #bearsName({ inode }: Descriptor): Promise<boolean> {
    if (!this.#parts.isLocal) return true;
    try {
      const { dev, ino } = await this.#parts.calls.stat(this.#path);
      return `${dev}:${ino}` === inode;
    } catch (error) {
      if (isAbsence(error)) return false;
      throw toDiskError(error, "stat", this.#path);
    }
  }

  async #giveUp(): Promise<void> {
    if (!this.#parts.isLocal || this.#file === undefined) return await this.#closeDescriptor();
    // Before the lock is free: afterwards it would be written over the note of the next holder.
    await this.#write(this.#blanks);
    try {
      this.#parts.native.unlock(this.#file.fd);
    } catch {
      // Closing gives the lock up as well, and cannot leave it taken.
      return await this.#closeDescriptor();
    }
    // When it is free: waiters that were woken by the blanks may have asked too early.
    if (this.#blanks !== undefined) await this.#write(lineEnd, this.#blanks.length);
  }

  async #write(bytes: Uint8Array | undefined, offset = 0): Promise<void> {
    if (bytes === undefined || this.#file === undefined) return;
    try {
      await this.#parts.calls.write(this.#file.fd, bytes, offset);
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
    const { make } = this.#parts;
    if (make === undefined) return await this.#openWith(lockFileFlags);
    return await openOrMake(() => this.#openWith(existingLockFileFlags), make);
  }

  async #openWith(flags: number): Promise<Descriptor> {
    const { calls } = this.#parts;
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
   * The descriptor, and with it the lock, is gone also when closing fails; nothing was written that
   * could be lost.
   */
  async #closeDescriptor(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    try {
      if (file !== undefined) await this.#parts.calls.close(file.fd);
    } catch {
      // As said above.
    }
  }

  // A function, so that the compiler does not take the state for unchanged across an await.
  #isClosed(): boolean {
    return this.#state === "closed";
  }

  #closedError(): unknown {
    return holdfastError("CLOSED", `${this.#path} is closed`, {});
  }
}
