// The native module that locks a descriptor, and the byte that it locks on each platform.
import { constants } from "node:fs";
import { holdfastError } from "../../../errors.ts";

/**
 * Each call can throw what a system call throws. A lock belongs to the descriptor and is given up
 * when it closes. The module can also wait in the kernel; it is not asked to, because nothing can
 * end such a wait.
 */
export interface NativeLock {
  tryLock(fd: number): boolean;
  unlock(fd: number): void;
}

export interface NativeModule {
  tryLock(fd: number, offset: number, length: number): boolean;
  unlock(fd: number, offset: number, length: number): void;
}

/** Named in the error when the module is missing, as opposed to a property of the file system. */
export const nativeModule = "fs-native-extensions";
const prebuilt: readonly string[] = ["darwin", "linux", "win32"].flatMap((os) => [`${os}-x64`, `${os}-arm64`]);

/**
 * Writable, because an exclusive lock on a descriptor that only reads is refused (EBADF) on Linux
 * and on NFS.
 */
export const lockFileFlags: number = constants.O_RDWR | constants.O_CREAT;
/**
 * For an existing file. Without O_CREAT, because Linux may refuse it for a file of another user in
 * a sticky directory (`fs.protected_regular`), though that user lets all users write. Windows has
 * no O_NOFOLLOW.
 */
export const existingLockFileFlags: number = constants.O_RDWR | (constants.O_NOFOLLOW ?? 0);

/**
 * UNSUPPORTED_DISK when the module has no binary for this platform or was left out of the
 * installation.
 */
export async function loadNativeLock(
  path: string,
  load: () => Promise<NativeModule> = () => import("fs-native-extensions"),
  platform: NodeJS.Platform = process.platform,
): Promise<NativeLock> {
  // Loaded at the first use and not at import: most users of the package never take an OS lock, and
  // a missing binary must not stop them.
  const native = await load().catch((cause: unknown) => {
    const target = `${platform}-${process.arch}`;
    const what = `${path} cannot be locked: fs-native-extensions does not load on ${target}`;
    if (!prebuilt.includes(target))
      throw holdfastError("UNSUPPORTED_DISK", `${what}.`, { path, missing: ["OS lock"] }, cause);
    const why = `${what}, though it has a binary for it: it was left out of the installation or packed into a bundle. Install it beside the bundle and leave it out (--external:fs-native-extensions; docs/bundlers.md).`;
    throw holdfastError("UNSUPPORTED_DISK", why, { path, missing: [nativeModule] }, cause);
  });
  // A byte far behind the content, because on Windows a locked range cannot be read. macOS has
  // flock, which locks whole files and does not stop readers.
  const [offset, length] = platform === "darwin" ? [0, 0] : [2 ** 40, 1];
  return {
    tryLock: (fd) => native.tryLock(fd, offset, length),
    unlock: (fd) => native.unlock(fd, offset, length),
  };
}
