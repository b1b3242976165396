// Starts a scenario in the middle of some work: an actor begins the work in `prepare` and continues it in `run`. The
// part before that point is not tried in every order, so that the rest can be.
import type { Disk } from "../../ports/disk.ts";

/** Begins `work`, and resolves when it calls `halt` and stops there. Returns a function that lets it continue. */
export async function beginUntilHalt<T>(work: (halt: () => Promise<void>) => Promise<T>): Promise<() => Promise<T>> {
  let goOn = (): void => undefined;
  const going = new Promise<void>((resolve) => void (goOn = resolve));
  return await new Promise((resolve, reject) => {
    const ended = work(async () => {
      resolve(async () => {
        goOn();
        return await ended;
      });
      await going;
    });
    ended.then(() => reject(new Error("The work ended without a halt.")), reject);
  });
}

/** Calls `halt` after a link in `directory`. */
export function haltingAtLink(disk: Disk, directory: string, halt: () => Promise<void>): Disk {
  return linkingBy(disk, async (from, to) => {
    await disk.link(from, to);
    if (to.startsWith(`${directory}/`)) await halt();
  });
}

/** Calls `halt` before each link. */
export function haltingBeforeLink(disk: Disk, halt: () => Promise<void> | undefined): Disk {
  return linkingBy(disk, async (from, to) => {
    await halt();
    await disk.link(from, to);
  });
}

function linkingBy(disk: Disk, link: Disk["link"]): Disk {
  return new Proxy(disk, {
    get: (target, name) => {
      if (name === "link") return link;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
