// Holds within holds: what is committed under an inner one counts as under the outer one, and none outlives what it is within.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { PathHold } from "../../src/locks/path-hold.ts";
import type { RedoDraft } from "../../src/locks/redo.ts";
import type { TablePathLocks } from "../../src/locks/table-path-locks.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import { changedDisk } from "../durable/places.ts";
import { LocksWorld } from "./locks-world.ts";

let world: LocksWorld;
let a: TablePathLocks;
let b: TablePathLocks;
/** Whether what `a` wants to rename to d/f is in use. */
let isBusy: boolean;

beforeEach(async () => {
  world = await LocksWorld.make();
  isBusy = false;
  a = await world.open({
    tamper: (ports) => ({
      ...ports,
      disk: changedDisk(ports.disk, (real) => ({
        rename: async (from, to) => {
          if (isBusy && to.endsWith("/d/f")) throw diskError("EBUSY", "rename", to);
          await real.rename(from, to);
        },
      })),
    }),
  });
  b = await world.open();
  await mkdir(join(world.root, "d"));
  await writeFile(join(world.root, "d/f"), "old");
});
afterEach(() => world.end());

const textOfFile = async (): Promise<string> => await readFile(join(world.root, "d/f"), "utf8");

async function newDraft(hold: PathHold, text: string): Promise<RedoDraft> {
  const draft = await a.draft(hold);
  await draft.in("d/f", (path) => a.table.ground.ports.disk.createFile(path, Buffer.from(text), { sync: true }));
  return draft;
}

describe("what is committed and cannot be completed yet", () => {
  it("under an inner hold keeps that and the outer one, and is not forgotten", async () => {
    const outer = await a.acquire("d", { mode: "tree" });
    const inner = await a.acquire("d/f", { within: outer });
    const draft = await newDraft(inner, "new");
    isBusy = true;
    await expect(draft.commit()).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    await expect(inner.release()).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    await expect(a.acquire("d/f", { within: outer })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    await expect(outer.transfer()).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    await expect(outer.release()).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    expect(await b.tryAcquire("d/f")).toBe(undefined);
    isBusy = false;
    await outer.release();
    const next = await b.acquire("d/f");
    expect(await textOfFile()).toBe("new");
    await next.release();
  });

  it("keeps a hold as wide as it was, because it would happen under the lock of whoever is let in", async () => {
    const hold = await a.acquire("d", { mode: "tree" });
    const draft = await newDraft(hold, "new");
    isBusy = true;
    await expect(draft.commit()).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    await expect(hold.downgrade("exact")).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    expect(await b.tryAcquire("d/f")).toBe(undefined);
    isBusy = false;
    await hold.downgrade("exact");
    expect(await textOfFile()).toBe("new");
    await (await b.acquire("d/f")).release();
    await hold.release();
  });
});

it("what was prepared before a downgrade is refused where the hold does not reach any more", async () => {
  const hold = await a.acquire("d", { mode: "tree" });
  const draft = await newDraft(hold, "new");
  await hold.downgrade("exact");
  const other = await b.acquire("d/f");
  await expect(draft.commit()).rejects.toMatchObject({ code: "NOT_HELD", path: "d/f" });
  await other.assertHeld();
  expect(await textOfFile()).toBe("old");
  await hold.assertHeld();
  await hold.release();
});

it("what is committed while its hold is downgraded is done by then, or refused", async () => {
  for (let round = 0; round < 10; round++) {
    const hold = await a.acquire("d", { mode: "tree" });
    const draft = await newDraft(hold, `new ${round}`);
    const commit = draft.commit().then(
      () => "committed",
      (error: { code: string }) => error.code,
    );
    await sleep(round % 3);
    await hold.downgrade("exact");
    const next = await b.acquire("d/f", { timeoutMs: 10_000 });
    const found = await textOfFile();
    expect(["committed", "NOT_HELD"]).toContain(await commit);
    expect(await textOfFile()).toBe(found);
    expect(found === `new ${round}`).toBe((await commit) === "committed");
    await next.release();
    await hold.release();
  }
});
