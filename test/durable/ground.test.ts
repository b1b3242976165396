import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path/posix";
import { pathToFileURL } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { putIfAbsent } from "../../src/durable/publish/publish.ts";
import { Ground, openGround, type GroundOptions } from "../../src/durable/index.ts";
import { packageVersion } from "../../src/format/version.ts";
import { makeScratch } from "../sites/scratch.ts";
import { startChild, startHolder } from "./child.ts";
import { World } from "../sites/world.ts";

async function open(directory: string | URL, options?: GroundOptions): Promise<Ground> {
  const ground = await openGround(directory, options);
  onTestFinished(() => ground.close());
  return ground;
}

const holdersIn = (directory: string): string[] => readdirSync(join(directory, "holders")).sort();

describe("a ground on the real disk", () => {
  it("is made by the first process, with all that is missing above it, and keeps its id for ever", async () => {
    const directory = join(makeScratch(), "a", "b", "ground");
    const ground = await open(directory);
    expect(readdirSync(directory).sort()).toEqual(["ground.json", "holders", "temp"]);
    const record = readFileSync(join(directory, "ground.json"), "utf8");
    expect(JSON.parse(record)).toMatchObject({ kind: "ground", body: { id: ground.id } });
    await ground.close();
    const again = await open(directory);
    expect(again.id).toBe(ground.id);
    expect(readFileSync(join(directory, "ground.json"), "utf8")).toBe(record);
  });

  it("has one id for all processes that open it at the same moment", async () => {
    const directory = join(makeScratch(), "ground");
    const grounds = await Promise.all(Array.from({ length: 8 }, () => open(directory)));
    expect(new Set(grounds.map(({ id }) => id)).size).toBe(1);
    expect(await grounds[0]!.judgeHolders()).toHaveLength(8);
  });

  it.each([["holders"], ["temp"], ["holders", "temp"]])(
    "is joined also when a backup has left out what was empty: %s",
    async (...names) => {
      const directory = join(makeScratch(), "ground");
      const first = await open(directory);
      await first.close();
      for (const name of names) rmdirSync(join(directory, name));
      const restored = await open(directory);
      expect(restored.id).toBe(first.id);
      expect(await restored.judgeHolders()).toHaveLength(1);
    },
  );

  it("is closed when its close resolves, for every caller", async () => {
    const directory = join(makeScratch(), "ground");
    const ground = await open(directory);
    void ground.close();
    await ground.close();
    expect(holdersIn(directory)).toEqual([]);
  });

  it("takes a file: URL for the path that it stands for", async () => {
    const directory = join(makeScratch(), "with space ü");
    const ground = await open(pathToFileURL(directory));
    expect(ground.layout.directory).toBe(directory);
    expect(existsSync(join(directory, "ground.json"))).toBe(true);
  });

  it("shows its holders to each other, in one process and in two", async () => {
    const directory = makeScratch();
    const child = startHolder(directory);
    const childId = await child.hear();
    const ground = await open(directory, { name: "till 3" });
    const own = (await ground.session()).holder;
    const infos = await ground.holders();
    expect(infos.map(({ id }) => id).sort()).toEqual([childId, own.id].sort());
    expect(infos.find(({ id }) => id === childId)).toMatchObject({
      pid: child.process.pid,
      host: own.host,
      state: "alive",
      version: packageVersion,
    });
    const [seenAt, startedAt] = [infos[0]!.lastSeenAt, infos[0]!.startedAt];
    expect(Date.now() - seenAt.getTime()).toBeLessThan(600_000);
    expect(startedAt.getTime()).toBeLessThanOrEqual(Date.now());
    expect((await ground.judgeHolders()).map(({ holder }) => holder.name).sort()).toEqual(["child", "till 3"]);
    child.tell("close");
    expect(await child.hear()).toBe("closed");
    expect((await ground.judgeHolders()).map(({ holder }) => holder.id)).toEqual([own.id]);
  });

  it("keeps nothing of a session that has ended: no record, no heartbeat, no temp file", async () => {
    const directory = makeScratch();
    const ground = await openGround(directory);
    const { holder, temp } = await ground.session();
    expect(holdersIn(directory)).toEqual([`${holder.id}.beat`, `${holder.id}.json`]);
    writeFileSync(join(temp, "half-written"), "x");
    await ground.close();
    expect(holdersIn(directory)).toEqual([]);
    expect(readdirSync(join(directory, "temp"))).toEqual([]);
    await ground.close();
  });

  it("refuses everything after it was closed", async () => {
    const directory = makeScratch();
    await using ground = await openGround(directory);
    const { staging } = ground;
    const { signal } = await ground.session();
    await ground[Symbol.asyncDispose]();
    expect(signal.reason).toMatchObject({ code: "LOCK_LOST", path: directory });
    await expect(ground.session()).rejects.toMatchObject({ code: "CLOSED", action: "reopen" });
    await expect(putIfAbsent(staging, join(directory, "x"), Buffer.from("x"))).rejects.toMatchObject({
      code: "CLOSED",
    });
    expect(existsSync(join(directory, "x"))).toBe(false);
  });

  it("finds a killed process dead at the next look, and removes what it left", async () => {
    const directory = makeScratch();
    const child = startHolder(directory);
    const childId = await child.hear();
    writeFileSync(join(directory, "temp", childId, "half-written"), "x");
    const ground = await open(directory);
    expect(await ground.sweep()).toEqual([]);
    await child.end("SIGKILL");
    expect((await ground.sweep()).map(({ id }) => id)).toEqual([childId]);
    expect(readdirSync(join(directory, "temp"))).toEqual([(await ground.session()).holder.id]);
    expect(holdersIn(directory)).toContain(`${childId}.dead`);
    expect(holdersIn(directory)).not.toContain(`${childId}.beat`);
    expect(await ground.sweep()).toEqual([]);
  });

  it.skipIf(process.platform === "win32")(
    "does not take a stopped process for a dead one: its lock is held, and its lease is not over",
    async () => {
      const directory = makeScratch();
      const child = startHolder(directory);
      const childId = await child.hear();
      child.process.kill("SIGSTOP");
      const ground = await open(directory);
      for (let look = 0; look < 3; look++)
        expect((await ground.judgeHolders()).find(({ holder }) => holder.id === childId)?.state).toBe("alive");
      child.process.kill("SIGCONT");
      child.tell("close");
      expect(await child.hear()).toBe("closed");
    },
  );

  it("keeps no process running that has nothing else to do, also while its heart beats", async () => {
    const child = startChild(
      `
      const ground = await durable.openGround(args[0], { leaseMs: 8000 });
      const path = ground.layout.beat((await ground.session()).holder.id);
      const { readFileSync } = await import("node:fs");
      while (readFileSync(path, "utf8").startsWith("beat 0000000000000000")) await new Promise((go) => setTimeout(go, 5));
      say("beats");
      process.stdin.destroy();`,
      makeScratch(),
    );
    const exited = once(child.process, "exit");
    expect(await child.hear()).toBe("beats");
    expect(await exited).toEqual([0, null]);
  });

  it.each([0, -1, 0.5, NaN, Infinity, 2 ** 31, 1e300])(
    "refuses a lease of %d ms, and writes nothing",
    async (leaseMs) => {
      const directory = join(makeScratch(), "ground");
      await expect(openGround(directory, { leaseMs })).rejects.toThrow(RangeError);
      expect(existsSync(directory)).toBe(false);
    },
  );
});

describe("a ground that could not be joined", () => {
  it("keeps nothing of the attempt, also when only the last sync has failed", async () => {
    const world = new World();
    await (await Ground.open(world.ports("bea"), "/ground")).close();
    const fault = { process: "ada", at: "sync directory /ground/holders", label: "EIO", lasting: false };
    const isSpoiled = await world.withFault(fault, async () => {
      await expect(Ground.open(world.ports("ada"), "/ground")).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    });
    expect(isSpoiled).toBe(true);
    expect(Object.keys(world.tree("/ground"))).toEqual(["/ground/holders/", "/ground/temp/", "/ground/ground.json"]);
    expect([...world.server.handles]).toEqual([]);
  });
});

describe("a ground whose session is over", () => {
  const leaseMs = 8000;

  it("begins one new session for all callers, and staging works again", async () => {
    const world = new World();
    const ground = await Ground.open(world.ports("ada", "machine", 0), "/ground", { leaseMs });
    const first = await ground.session();
    expect(await ground.session()).toBe(first);
    await world.advance(leaseMs);
    expect(first.signal.aborted).toBe(true);
    const sessions = await Promise.all(Array.from({ length: 5 }, () => ground.session()));
    expect(new Set(sessions).size).toBe(1);
    expect(sessions[0]!.holder.id).not.toBe(first.holder.id);
    expect(sessions[0]!.isOver).toBe(false);
    expect(await putIfAbsent(ground.staging, "/ground/x", Buffer.from("x"))).toBe(true);
    // Of the first one only the record of its death is left.
    const left = Object.keys(world.tree("/ground")).filter((path) => path.includes(first.holder.id));
    expect(left).toEqual([`/ground/holders/${first.holder.id}.dead`]);
    await ground.close();
  });

  it("says LOCK_LOST when others have swept its temp directory before it noticed", async () => {
    const world = new World();
    const ground = await Ground.open(world.ports("ada"), "/ground", { leaseMs });
    const { temp } = await ground.session();
    await world.ports("bea").disk.rmdir(temp);
    await expect(putIfAbsent(ground.staging, "/ground/x", Buffer.from("x"))).rejects.toMatchObject({
      code: "LOCK_LOST",
      action: "reopen",
      path: expect.stringContaining(temp) as string,
    });
    await ground.close();
  });

  it("has its old session swept by the next process, where it could not do that itself", async () => {
    const world = new World();
    const ground = await Ground.open(world.ports("ada", "machine", 0), "/ground", { leaseMs });
    const first = await ground.session();
    await world.advance(leaseMs);
    const record = `/ground/holders/${first.holder.id}.json`;
    await world.withFault({ process: "ada", at: `rename ${record}`, label: "EACCES", lasting: false }, async () => {
      // Its lock was given up with the old session, so that it is proven dead.
      await ground.session();
    });
    expect((await ground.sweep()).map(({ id }) => id)).toEqual([first.holder.id]);
    expect(Object.keys(world.tree("/ground/temp"))).toEqual([`/ground/temp/${(await ground.session()).holder.id}/`]);
    await ground.close();
  });

  it("tries again at the next call when a new session could not begin, and can be closed meanwhile", async () => {
    const world = new World();
    const ground = await Ground.open(world.ports("ada", "machine", 0), "/ground", { leaseMs });
    await world.advance(leaseMs);
    await world.withFault({ process: "ada", at: 1, label: "ENOSPC", lasting: true }, async () => {
      await expect(ground.session()).rejects.toMatchObject({ code: "DISK_FULL" });
    });
    expect((await ground.session()).isOver).toBe(false);
    await world.advance(leaseMs);
    let closing: Promise<void> | undefined;
    await world.withFault({ process: "ada", at: 1, label: "ENOSPC", lasting: false }, async () => {
      const asked = ground.session();
      closing = ground.close();
      await expect(asked).rejects.toMatchObject({ code: "DISK_FULL" });
      await closing;
    });
    await expect(ground.session()).rejects.toMatchObject({ code: "CLOSED" });
  });
});
