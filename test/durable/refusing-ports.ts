// Ports of a process that may change nothing: as another user, on a read-only mount, or on a full
// disk.
import { diskError } from "../../src/ports/disk-error.ts";
import type { Disk, DiskFile } from "../../src/ports/disk.ts";
import type { Ports } from "../../src/ports/ports.ts";

export type Refusal = "EROFS" | "EACCES" | "ENOSPC";

export interface RefusingPorts extends Ports {
  /** From now on everything is allowed, as when there is room again. */
  allow(): void;
  forbid(): void;
  /** What it asked for and was refused. */
  readonly refused: readonly string[];
}

type Change = (...args: never[]) => Promise<unknown>;

/**
 * `ports`, whose every change of the disk fails with `errno`. A full disk lets go of names, and
 * writes over what is there.
 */
export function refusingPorts(ports: Ports, errno: Refusal): RefusingPorts {
  const refused: string[] = [];
  let isAllowed = false;
  const refuse = (operation: string, path: string): void => {
    if (isAllowed) return;
    refused.push(`${operation} ${path}`);
    throw diskError(errno, operation, path);
  };
  const isFull = errno === "ENOSPC";
  const changes = ["createFile", "link", "rename", "mkdir", ...(isFull ? [] : ["unlink", "rmdir"])];
  const open: Disk["open"] = async (path, mode) => {
    if (mode === "create" || (mode === "write" && !isFull)) refuse("open", path);
    return refusingFile(await ports.disk.open(path, mode), path, refuse);
  };
  const disk = new Proxy(ports.disk, {
    get: (target, name: keyof Disk) => {
      if (name === "open") return open;
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return async (...args: never[]): Promise<unknown> => {
        if (changes.includes(name)) refuse(name, String(args[0]));
        return await (value as Change).apply(target, args);
      };
    },
  });
  const osLock: Ports["osLock"] = {
    ...ports.osLock,
    open: async (path) => {
      if (!isFull) refuse("open lock", path);
      return await ports.osLock.open(path);
    },
  };
  return {
    ...ports,
    disk,
    osLock,
    refused,
    allow: () => void (isAllowed = true),
    forbid: () => void (isAllowed = false),
  };
}

/** Growing is what a full disk refuses, and not before some of it is written. */
function refusingFile(file: DiskFile, path: string, refuse: (operation: string, path: string) => void): DiskFile {
  return {
    read: (offset, length) => file.read(offset, length),
    write: async (offset, bytes) => {
      try {
        if (offset + bytes.length > (await file.stat()).size) refuse("write", path);
      } catch (error) {
        await file.write(offset, bytes.subarray(0, bytes.length / 2));
        throw error;
      }
      await file.write(offset, bytes);
    },
    sync: (options) => file.sync(options),
    stat: () => file.stat(),
    close: () => file.close(),
  };
}
