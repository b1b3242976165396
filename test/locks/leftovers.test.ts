// What processes leave in the directories of the lock table: what is removed, and what must stay.
import { readFileSync, writeFileSync } from "node:fs";
import { mkdir, readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { TablePathLocks } from "../../src/locks/path/service.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import { LocksWorld, withDisk } from "../sites/path-locks.ts";

let world: LocksWorld;
beforeEach(async () => {
  world = await LocksWorld.make();
});
afterEach(() => world.end());

const at = (...names: string[]): string => join(world.root, ...names);

/** What a process does that takes it for dead and is killed then. */
async function declareDead({ table }: TablePathLocks): Promise<void> {
  const { layout } = table.ground;
  const { holder } = await table.ground.session();
  await rename(layout.record(holder.id), layout.deathRecord(holder.id));
}

/**
 * Opens the locks. `meanwhile` happens after all holders were judged, and before leftovers are
 * looked for.
 */
async function openWhile(meanwhile: () => Promise<void>): Promise<TablePathLocks> {
  let isFirst = true;
  const list = async (path: string, really: () => Promise<string[]>): Promise<string[]> => {
    if (isFirst && path.endsWith("/holds")) {
      isFirst = false;
      await meanwhile();
    }
    return await really();
  };
  return await world.open({ tamper: withDisk((disk) => ({ list: (path) => list(path, () => disk.list(path)) })) });
}

describe("what a holder staged that is declared dead during a sweep", () => {
  it("stays when it is committed, until it is done", async () => {
    writeFileSync(at("f"), "old");
    let onCommitted = (): void => undefined;
    const committed = new Promise<void>((resolve) => (onCommitted = resolve));
    const committer = await world.open({
      isClosedByItself: true,
      tamper: withDisk((disk) => ({
        rename: async (from, to) => {
          if (to !== at("f")) return await disk.rename(from, to);
          onCommitted();
          return await new Promise<never>(() => undefined);
        },
      })),
    });
    const draft = await committer.draft(await committer.acquire("f"));
    await draft.in("f", async (path) => writeFileSync(path, "committed"));
    void draft.commit();
    await committed;
    await openWhile(() => declareDead(committer));
    await (await world.open()).acquire("f");
    expect(readFileSync(at("f"), "utf8")).toBe("committed");
  });

  it("stays as long as it can still be committed", async () => {
    writeFileSync(at("f"), "old");
    const sleeper = await world.open({ isClosedByItself: true });
    const draft = await sleeper.draft(await sleeper.acquire("f"));
    await draft.in("f", async (path) => writeFileSync(path, "committed"));
    await openWhile(() => declareDead(sleeper));
    await draft.commit();
    expect(readFileSync(at("f"), "utf8")).toBe("committed");
  });

  it("goes when it can no longer be committed", async () => {
    const sleeper = await world.open({ isClosedByItself: true });
    const draft = await sleeper.draft(await sleeper.acquire("f"));
    await draft.in("f", async (path) => writeFileSync(path, "never committed"));
    await declareDead(sleeper);
    await world.open();
    expect(await readdir(at(".holdfast/redo"))).toEqual([]);
    await expect(draft.commit()).rejects.toMatchObject({ code: expect.stringMatching(/LOCK_LOST|IO_ERROR/) as string });
  });
});

it("a transfer that lapsed leaves nothing", async () => {
  const [giver, taker] = [await world.open(), await world.open()];
  await (await giver.acquire("x")).transfer({ expiresMs: 1 });
  await expect
    .poll(async () => {
      const hold = await taker.tryAcquire("x");
      await hold?.release();
      return hold !== undefined;
    })
    .toBe(true);
  expect(await readdir(at(".holdfast/holds"))).toEqual([]);
});

it("the file of an offer that is over is removed by the next opening, though all processes closed in good order", async () => {
  const giver = await world.open({ isClosedByItself: true });
  const taker = await world.open({
    isClosedByItself: true,
    tamper: withDisk((disk) => ({
      unlink: async (path) => {
        if (path.endsWith(".transfer")) throw diskError("EACCES", "unlink", path);
        await disk.unlink(path);
      },
    })),
  });
  await (await taker.receive(await (await giver.acquire("x")).transfer())).release();
  await taker.close();
  await giver.close();
  expect(await readdir(at(".holdfast/holds"))).toHaveLength(1);
  await world.open();
  expect(await readdir(at(".holdfast/holds"))).toEqual([]);
});

it("an offer that stands keeps its file when others open the locks, and another offer has another file", async () => {
  const giver = await world.open();
  const first = await (await giver.acquire("x")).transfer();
  const [file] = (await readdir(at(".holdfast/holds"))).filter((name) => name.endsWith(".transfer"));
  const taker = await world.open();
  expect(await readdir(at(".holdfast/holds"))).toContain(file);
  const received = await taker.receive(first);
  const second = await received.transfer();
  const [other] = (await readdir(at(".holdfast/holds"))).filter((name) => name.endsWith(".transfer"));
  expect(other).toBeDefined();
  expect(other).not.toBe(file);
  await (await giver.receive(second)).release();
  expect(await readdir(at(".holdfast/holds"))).toEqual([]);
});

it("the trash of a remover that died is emptied by the next process that opens the locks", async () => {
  await mkdir(at(".holdfast/trash/of-the-dead/inside"), { recursive: true });
  writeFileSync(at(".holdfast/trash/of-the-dead/inside/f"), "");
  writeFileSync(at(".holdfast/trash/another"), "");
  await world.open();
  expect(await readdir(at(".holdfast/trash"))).toEqual([]);
});
