// Work that is halfway done when a scenario begins: an actor begins it in `prepare`, and goes on in `run`. What comes
// before that point is not tried in every order, so that the rest can be.
import type { Disk } from "../../ports/disk.ts";

/** Begins `work`, and resolves when it calls `halt`, where it stands still. What is given lets it go on. */
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

/** Halts when a name in `directory` was linked. */
export function haltingAtLink(disk: Disk, directory: string, halt: () => Promise<void>): Disk {
  const link: Disk["link"] = async (from, to) => {
    await disk.link(from, to);
    if (to.startsWith(`${directory}/`)) await halt();
  };
  return new Proxy(disk, {
    get: (target, name) => {
      if (name === "link") return link;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
