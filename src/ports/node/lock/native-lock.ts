// Loads the native module that locks a descriptor, and selects the byte that it locks on each
// platform.
import { constants } from "node:fs";
import { holdfastError } from "../../../errors.ts";

/**
 * Each call can throw like a system call. A lock belongs to its descriptor and is released when
 * that closes. The module can also wait in the kernel; Holdfast does not use that, because nothing
 * can end such a wait.
 */
export interface NativeLock {
  tryLock(fd: number): boolean;
  unlock(fd: number): void;
}

export interface NativeModule {
  tryLock(fd: number, offset: number, length: number): boolean;
  unlock(fd: number, offset: number, length: number): void;
}

/** Named in the error if the module is missing, to distinguish that from a property of the file system. */
export const nativeModule = "fs-native-extensions";
const prebuilt: readonly string[] = ["darwin", "linux", "win32"].flatMap((os) => [`${os}-x64`, `${os}-arm64`]);

/** Writable: Linux and NFS refuse an exclusive lock on a read-only descriptor (EBADF). */
export const lockFileFlags: number = constants.O_RDWR | constants.O_CREAT;
/**
 * For an existing file. Without O_CREAT, because Linux may refuse it for a file of another user in
 * a sticky directory (`fs.protected_regular`), even if its mode lets everyone write. Windows has no
 * O_NOFOLLOW.
 */
export const existingLockFileFlags: number = constants.O_RDWR | (constants.O_NOFOLLOW ?? 0);

/**
 * Throws UNSUPPORTED_DISK under Deno. The native module needs functions of libuv that Deno lacks:
 * when it loads, the dynamic linker ends the process.
 */
export function mustRunOnNode(path: string, versions: NodeJS.ProcessVersions = process.versions): void {
  const deno = versions["deno"];
  if (deno === undefined) return;
  const message = `${path} cannot be opened: Holdfast needs Node for a directory, and this is Deno ${deno}. Run the program with Node. A store at "memory:" also works with Deno.`;
  throw holdfastError("UNSUPPORTED_DISK", message, { path, missing: [nativeModule] });
}

/** Throws UNSUPPORTED_DISK if the module has no binary for this platform or is missing from the installation. */
export async function loadNativeLock(
  path: string,
  load: () => Promise<NativeModule> = () => import("fs-native-extensions"),
  platform: NodeJS.Platform = process.platform,
): Promise<NativeLock> {
  // Loaded on first use, not at import: most users of the package never take an OS lock, and a
  // missing binary must not stop them.
  const native = await load().catch((cause: unknown) => {
    const target = `${platform}-${process.arch}`;
    const what = `${path} cannot be locked: fs-native-extensions does not load on ${target}`;
    if (!prebuilt.includes(target))
      throw holdfastError("UNSUPPORTED_DISK", `${what}.`, { path, missing: ["OS lock"] }, cause);
    const why = `${what}, though it has a binary for it: it was left out of the installation or packed into a bundle. Install it beside the bundle and leave it out (--external:fs-native-extensions; docs/bundlers.md).`;
    throw holdfastError("UNSUPPORTED_DISK", why, { path, missing: [nativeModule] }, cause);
  });
  // A byte far beyond the content, because on Windows a locked range cannot be read. macOS has
  // flock, which locks whole files and does not stop readers.
  const [offset, length] = platform === "darwin" ? [0, 0] : [2 ** 40, 1];
  return {
    tryLock: (fd) => native.tryLock(fd, offset, length),
    unlock: (fd) => native.unlock(fd, offset, length),
  };
}
