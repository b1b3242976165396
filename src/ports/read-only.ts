// Ports of a process that only watches: every change fails as on a read-only mount, so that it
// leaves no trace.
import { HoldfastError } from "../errors.ts";
import { diskError } from "./disk-error.ts";
import type { Disk } from "./disk.ts";
import type { Ports } from "./ports.ts";

/** The calls of a disk that change it. `syncDirectory` is not one: it adds and removes nothing. */
const changes: readonly (keyof Disk)[] = ["createFile", "link", "rename", "unlink", "rmdir"];

/** Returns ports that read through `ports`, and refuse every change and every lock with NO_PERMISSION. */
export function readOnlyPorts(ports: Ports): Ports {
  const open: Disk["open"] = async (path, mode, options) => {
    if (mode !== "read") throw refused(mode, path);
    return await ports.disk.open(path, mode, options);
  };
  const disk = new Proxy(ports.disk, {
    get: (target, name: keyof Disk) => {
      if (name === "open") return open;
      if (name === "mkdir")
        return async (path: string) => {
          // Report an existing directory as existing, as a read-only mount does.
          if ((await target.findStat(path)) !== undefined) throw diskError("EEXIST", name, path);
          throw refused(name, path);
        };
      if (name === "syncDirectory") return async () => undefined;
      if (changes.includes(name)) return async (path: string) => await Promise.reject(refused(name, path));
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
  const osLock: Ports["osLock"] = { open: async (path) => await Promise.reject(refused("lock", path)) };
  return { ...ports, disk, osLock };
}

function refused(operation: string, path: string): Error {
  const message = `${operation} ${path}: this process opened the store with readOnly, and changes nothing. Open it without.`;
  return new HoldfastError("NO_PERMISSION", message, { path, errno: "EROFS" });
}
