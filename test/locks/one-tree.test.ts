// A ground is of one tree: another one is refused, and every process completes a commit in the tree
// that it was made for.
import { existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Ground } from "../../src/durable/liveness/ground.ts";
import { holdfastError } from "../../src/errors.ts";
import { LockTable } from "../../src/locks/table/lock-table.ts";
import { TablePathLocks } from "../../src/locks/path/service.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { World } from "../sites/world.ts";

/** Names of work, as consumers of a log have them. */
const keys = {
  clean: (key: string) => key,
  locate: async (key: string) => ({ path: key, key }),
  keyOf: async (key: string) => key,
};

/** Commits, and comes no further. */
class Unable extends LockTable {
  protected override async apply(): Promise<void> {
    throw holdfastError("RESOURCE_BUSY", "It is open elsewhere.", { path: "", blockedBy: [], worthWaiting: true });
  }
}

async function open(ports: Ports, root?: string, TableClass = LockTable): Promise<TablePathLocks> {
  const ground = await Ground.open(ports, "/ground", {});
  const options = root === undefined ? { keys } : { root };
  return await TablePathLocks.open(ground, { ...options, TableClass, ownsGround: true });
}

/** A world in which `/files/report` is to go, and its remover was killed after the commit. */
async function afterTheKill(): Promise<World> {
  const world = new World();
  const { disk } = world.ports("setup");
  for (const path of ["/files", "/events"]) await disk.mkdir(path);
  for (const path of ["/files/report", "/events/report"]) await disk.createFile(path, Buffer.from(""), { sync: false });
  const locks = await open(world.ports("ada"), "/files", Unable);
  const draft = await locks.draft(await locks.acquire("report"));
  await draft.out("report");
  await expect(draft.commit()).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
  world.kill("ada");
  return world;
}

describe("a ground of path locks", () => {
  it("is refused for another tree, and nothing that was committed is lost by that", async () => {
    const world = await afterTheKill();
    await expect(open(world.ports("bea"), "/events")).rejects.toMatchObject({
      code: "WRONG_STORE",
      action: "fix-caller",
      path: "/ground",
      expected: "/events",
      found: "/files",
    });
    const { disk } = world.ports("setup");
    expect(await disk.canOpen("/files/report")).toBe(true);
    await (await open(world.ports("cleo"), "/files")).close();
    expect([await disk.canOpen("/files/report"), await disk.canOpen("/events/report")]).toEqual([false, true]);
  });

  it("has commits completed in its own tree by processes that lock names only", async () => {
    const world = await afterTheKill();
    const leases = await open(world.ports("bea"));
    const { disk } = world.ports("setup");
    expect([await disk.canOpen("/files/report"), await disk.canOpen("/events/report")]).toEqual([false, true]);
    const hold = await leases.acquire("/consumer");
    await expect(leases.draft(hold)).rejects.toThrow(TypeError);
    await leases.close();
    const next = await open(world.ports("cleo"), "/files");
    await (await next.acquire("report")).release();
    await next.close();
  });

  it("is of no tree as long as only names are locked in it", async () => {
    const world = new World();
    const { disk } = world.ports("setup");
    await disk.mkdir("/files");
    const leases = await open(world.ports("ada"));
    const locks = await open(world.ports("bea"), "/files");
    await leases.close();
    await locks.close();
    await disk.mkdir("/events");
    await expect(open(world.ports("cleo"), "/events")).rejects.toMatchObject({ code: "WRONG_STORE" });
  });

  it("is of one tree also when two processes open it for two at the same moment", async () => {
    const world = new World();
    const { disk } = world.ports("setup");
    for (const path of ["/a", "/b"]) await disk.mkdir(path);
    const opened = await Promise.allSettled([open(world.ports("ada"), "/a"), open(world.ports("bea"), "/b")]);
    expect(opened.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    for (const each of opened) if (each.status === "fulfilled") await each.value.close();
  });

  it("keeps names of work apart from paths: a lock on the whole tree stops no consumer, and none stops it", async () => {
    const world = new World();
    await world.ports("setup").disk.mkdir("/files");
    const locks = await open(world.ports("ada"), "/files");
    const leases = await open(world.ports("bea"));
    const whole = await locks.acquire("", { mode: "tree" });
    const lease = await leases.acquire("/consumers/mailer");
    expect((await locks.list()).map(({ path }) => path).sort()).toEqual(["", "/consumers/mailer"]);
    expect(await leases.tryAcquire("/consumers/mailer")).toBeUndefined();
    // Nor does a break of the one reach the other.
    expect((await locks.break("")).map(({ path }) => path)).toEqual([""]);
    await lease.assertHeld();
    await whole.release();
    await (await locks.acquire("", { mode: "tree" })).release();
    await leases.close();
    await locks.close();
  });

  it("is the same by whatever way its tree is reached, and when both were moved together", async () => {
    const base = mkdtempSync(join(tmpdir(), "holdfast-one-tree-"));
    mkdirSync(join(base, "store", "files"), { recursive: true });
    writeFileSync(join(base, "store", "files", "f"), "");
    symlinkSync(join(base, "store"), join(base, "link"));
    for (const way of ["store", "link"]) {
      const ports = await openNodePorts(join(base, way));
      const ground = await Ground.open(ports, join(base, way, "ground"), {});
      const locks = await TablePathLocks.open(ground, { root: join(base, way, "files"), ownsGround: true });
      const hold = await locks.acquire("f");
      const draft = await locks.draft(hold);
      await draft.out("f");
      await draft.commit();
      expect(existsSync(join(base, "store", "files", "f"))).toBe(false);
      await locks.close();
      writeFileSync(join(base, "store", "files", "f"), "");
    }
  });
});
