// What a lock costs in operations: a few, however large the tree is that it covers.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Ports } from "../../src/ports/ports.ts";
import { LocksWorld } from "../sites/path-locks.ts";

let world: LocksWorld;
beforeEach(async () => {
  world = await LocksWorld.make();
});
afterEach(() => world.end());

/** Notes the name of each call to the disk. */
function noting(calls: string[]): (ports: Ports) => Ports {
  return (ports) => ({
    ...ports,
    disk: new Proxy(ports.disk, {
      get: (disk, name) => {
        const value = Reflect.get(disk, name) as unknown;
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => {
          calls.push(String(name));
          return Reflect.apply(value, disk, args) as unknown;
        };
      },
    }),
  });
}

it("a tree lock makes the same calls above one file and above thousands, and an exact lock no others", async () => {
  for (let directory = 0; directory < 20; directory++) {
    await mkdir(join(world.root, `many/${directory}`), { recursive: true });
    for (let file = 0; file < 100; file++) await writeFile(join(world.root, `many/${directory}/${file}`), "");
  }
  await mkdir(join(world.root, "one"));
  const calls: string[] = [];
  const locks = await world.open({ tamper: noting(calls) });
  const costOf = async (path: string, mode: "exact" | "tree"): Promise<string[]> => {
    await (await locks.acquire(path, { mode })).release();
    calls.length = 0;
    await (await locks.acquire(path, { mode })).release();
    return [...calls];
  };
  const cost = await costOf("one", "tree");
  expect(cost).toEqual(["hasLink", "createFile", "link", "canOpen", "hasLink", "unlink"]);
  expect(await costOf("many", "tree")).toEqual(cost);
  expect(await costOf("many/1/1", "exact")).toEqual(cost);
});
