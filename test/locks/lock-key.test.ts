// Keys of paths with symbolic links that lead to nothing: writing to such a link creates its
// target.
import { mkdir, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { LocksWorld } from "../sites/path-locks.ts";

let world: LocksWorld;
beforeEach(async () => {
  world = await LocksWorld.make();
});
afterEach(() => world.end());

const link = (target: string, name: string): Promise<void> => symlink(target, join(world.root, name));

it("a link that leads to nothing has the key of what it leads to", async () => {
  await mkdir(join(world.root, "dir"));
  await link("dir", "through");
  await link("missing", "plain");
  await link("plain", "twice");
  await link("../missing", "dir/up");
  await link(join(world.root, "missing"), "absolute");
  const [a, b] = [await world.open(), await world.open()];
  const hold = await a.acquire("missing", { mode: "tree" });
  for (const path of ["plain", "twice", "dir/up", "through/up", "absolute", "plain/below/it"])
    expect(await b.tryAcquire(path)).toBe(undefined);
  await hold.release();
  const below = await a.acquire("twice/below");
  expect(await b.tryAcquire("missing/below")).toBe(undefined);
  await (await b.acquire("missing/beside")).release();
  await below.release();
});

it("a link that leads to nothing out of the root is refused, and one that leads around back into it is not", async () => {
  await link("/no/such/place", "out");
  await link("../missing-beside-the-root", "beside");
  await link(`../${world.root.slice(dirname(world.root).length + 1)}/missing`, "back");
  await link("other", "circle");
  await link("circle", "other");
  const [a, b] = [await world.open(), await world.open()];
  for (const path of ["out", "out/below", "beside", "circle", "circle/below"])
    await expect(a.acquire(path)).rejects.toMatchObject({ code: "INVALID_PATH" });
  const hold = await a.acquire("back");
  expect(await b.tryAcquire("missing")).toBe(undefined);
  await hold.release();
});
