// The native module that locks a descriptor, and the byte that it locks on each platform.
import { constants } from "node:fs";
import { holdfastError } from "../../errors.ts";

/** Each call can throw what a system call throws. A lock belongs to the descriptor and is given up when it closes. */
export interface NativeLock {
  tryLock(fd: number): boolean;
  /**
   * Waits in a thread of its own, for which `fd` is a bare number: it must stay open until the promise settles. Nothing can call the wait off, and
   * until it settles it keeps the process alive.
   */
  waitForLock(fd: number): Promise<void>;
  unlock(fd: number): void;
}

export interface NativeModule {
  tryLock(fd: number, offset: number, length: number): boolean;
  waitForLock(fd: number, offset: number, length: number): Promise<void>;
  unlock(fd: number, offset: number, length: number): void;
}

/** Writable, because an exclusive lock on a descriptor that only reads is refused (EBADF) on Linux and on NFS. */
export const lockFileFlags: number = constants.O_RDWR | constants.O_CREAT;
/**
 * For one that is there. Without O_CREAT, because Linux may refuse it for a file of another user in a sticky directory
 * (`fs.protected_regular`), though that user lets everybody write. Windows has no O_NOFOLLOW.
 */
export const existingLockFileFlags: number = constants.O_RDWR | (constants.O_NOFOLLOW ?? 0);

/** UNSUPPORTED_DISK when the module has no binary for this platform or was left out of the installation. */
export async function loadNativeLock(
  path: string,
  load: () => Promise<NativeModule> = () => import("fs-native-extensions"),
  platform: NodeJS.Platform = process.platform,
): Promise<NativeLock> {
  // Loaded at the first use and not at import: most users of the package never take an OS lock, and a missing binary must not stop them.
  const native = await load().catch((cause: unknown) => {
    const message = `${path} cannot be locked: fs-native-extensions does not load on ${platform}-${process.arch}`;
    throw holdfastError("UNSUPPORTED_DISK", message, { path, missing: ["OS lock"] }, cause);
  });
  // A byte far behind the content, because on Windows nobody can read what is locked. macOS has flock, which locks whole files and no one from reading.
  const [offset, length] = platform === "darwin" ? [0, 0] : [2 ** 40, 1];
  return {
    tryLock: (fd) => native.tryLock(fd, offset, length),
    waitForLock: (fd) => native.waitForLock(fd, offset, length),
    unlock: (fd) => native.unlock(fd, offset, length),
  };
}
