// The ledger: a key is committed once, whatever compaction, expiry and sleeping workers do meanwhile.
import { describe, expect, it } from "vitest";
import type { Box } from "../../../src/handoff/box/box.ts";
import { compactLedger } from "../../../src/handoff/ledger/compaction.ts";
import { expireLedger } from "../../../src/handoff/ledger/expiry.ts";
import { commit } from "../../../src/handoff/ledger/group-commit.ts";
import { findCommitted, type Committed } from "../../../src/handoff/ledger/ledger.ts";
import type { Published } from "../../../src/handoff/model/publication.ts";
import { changedDisk } from "../../sites/disks.ts";
import { failureOf } from "../../sites/event-logs.ts";
import { makeNetworkSite } from "../../sites/sites.ts";
import { boxSiteOn, boxSites, openBoxOn, statesOf } from "./boxes.ts";
import { leaseMs, TrialWorld } from "./trials.ts";

const dayMs = 86_400_000;

function committedOf(box: Box, key: string, more: Partial<Committed> = {}): Committed {
  return {
    key,
    id: box.newId(),
    claims: 1,
    replays: 0,
    holder: "a worker",
    at: new Date(0).toISOString(),
    result: `result of ${key}`,
    outputs: [],
    sent: [],
    ...more,
  };
}

async function put(box: Box, key: string, more: Partial<Committed> = {}): Promise<void> {
  const session = await box.ground.session();
  await commit(box, session, box.layout.ledger(key, 0), committedOf(box, key, more));
}

/** Keys that all belong to one shard. */
function keysOfOneShard(box: Box, count: number): string[] {
  const shardOf = (key: string): string | undefined => box.layout.ledger(key, 0).split("/").at(-2);
  const keys: string[] = [];
  for (let number = 0; keys.length < count; number++)
    if (shardOf(`key ${number}`) === shardOf("key 0")) keys.push(`key ${number}`);
  return keys;
}

async function resultOf(box: Box, key: string): Promise<unknown> {
  return (await findCommitted(box, box.layout.ledger(key, 0)))?.committed.result;
}

it("compaction leaves entries alone on a share, where a rename may vacate the name that it replaces", async () => {
  const { site, directory } = boxSiteOn(await makeNetworkSite());
  const box = await openBoxOn(await site.openPorts(), directory);
  const keys = keysOfOneShard(box, 12);
  for (const key of keys) await put(box, key);
  expect(await compactLedger(box)).toBe(0);
  const identities = new Set<string>();
  for (const key of keys) identities.add((await box.disk.stat(box.layout.ledger(key, 0))).identity);
  expect(identities.size).toBe(keys.length);
});

describe.each(boxSites)("on %s", (siteName, make) => {
  it.skipIf(siteName.includes("network"))(
    "compaction puts old entries into one file, and each is found under its name",
    async () => {
      const { site, directory } = await make();
      const box = await openBoxOn(await site.openPorts(), directory);
      const keys = keysOfOneShard(box, 12);
      for (const key of keys) await put(box, key);
      const nowText = new Date(await box.nowMs()).toISOString();
      await put(box, "young", { at: nowText });
      const before = await Promise.all(keys.map((key) => findCommitted(box, box.layout.ledger(key, 0))));
      expect(await compactLedger(box)).toBe(keys.length);
      const identities = new Set<string>();
      for (const key of keys) identities.add((await box.disk.stat(box.layout.ledger(key, 0))).identity);
      expect(identities.size).toBe(1);
      expect(await Promise.all(keys.map((key) => findCommitted(box, box.layout.ledger(key, 0))))).toEqual(before);
      expect(await resultOf(box, "young")).toBe("result of young");
      // Once more there is nothing to do, and nothing is left in the temp directory.
      expect(await compactLedger(box)).toBe(0);
      expect(await box.disk.list((await box.ground.session()).temp)).toEqual([]);
      // A key that is in a block is taken.
      const again = await commit(
        box,
        await box.ground.session(),
        box.layout.ledger(keys[0]!, 0),
        committedOf(box, keys[0]!, { result: "second" }),
      );
      expect(again.committed.result).toBe(`result of ${keys[0]}`);
    },
  );

  it("an expired ledger entry is removed, also from a block, and its key is free again", async () => {
    const { site, directory, open } = await make();
    const box = await openBoxOn(await site.openPorts(), directory);
    const keys = keysOfOneShard(box, 9);
    for (const key of keys) await put(box, key);
    await compactLedger(box);
    const handoff = await open();
    await handoff.publish({ "a.txt": "one" }, { key: "young" });
    const delivery = await handoff.take();
    await delivery!.output("b.txt", "an output");
    await delivery!.ack("done");
    expect(await expireLedger(box, dayMs)).toBe(keys.length);
    for (const key of keys) expect(await resultOf(box, key)).toBeUndefined();
    expect(await resultOf(box, "young")).toBe("done");
    expect(await handoff.publish({ "a.txt": "one" }, { key: "young" })).toMatchObject({ duplicate: true });
    // With all that belongs to it.
    expect(await expireLedger(box, -dayMs)).toBe(1);
    expect(await box.disk.list(box.layout.trash)).toEqual([]);
    expect(await handoff.publish({ "a.txt": "two" }, { key: "young" })).toMatchObject({ duplicate: false });
    await (await handoff.take())!.ack("done again");
    expect(await resultOf(box, "young")).toBe("done again");
  });

  it("a key is released with the last of its ticket and its ledger entry, whatever the clocks", async () => {
    const { site, directory, open } = await make();
    const box = await openBoxOn(await site.openPorts(), directory);
    const handoff = await open({ retention: { archiveMs: -2 * dayMs } });
    const publish = async (key: string): Promise<Published> => await handoff.publish({ "a.txt": "one" }, { key });
    const isFree = async (key: string): Promise<boolean> => !(await publish(key)).duplicate;
    const first = await publish("clock ahead at publish");
    await put(box, "clock ahead at publish", { id: first.id });
    // Done by tickets of another program, which win no key.
    for (const key of ["ticket gone first", "ticket in the archive", "ticket waits"]) await put(box, key);
    await publish("ticket gone first");
    expect(await handoff.take()).toBeUndefined();
    await handoff.collect();
    await publish("ticket in the archive");
    expect(await handoff.take()).toBeUndefined();
    const waiting = await publish("ticket waits");
    // The clock was behind when it was replayed.
    const young = committedOf(box, "replay's entry goes first", { at: new Date(await box.nowMs()).toISOString() });
    await publish(young.key);
    const session = await box.ground.session();
    await commit(box, session, box.layout.ledger(young.key, 0), young);
    const replay = committedOf(box, young.key, { replays: 1 });
    await commit(box, session, box.layout.ledger(young.key, 1), replay);

    expect(await expireLedger(box, dayMs)).toBe(5);
    for (const key of ["clock ahead at publish", "ticket gone first", "ticket in the archive"])
      expect([key, await isFree(key)]).toEqual([key, true]);
    for (const key of ["ticket waits", young.key]) expect([key, await isFree(key)]).toEqual([key, false]);
    const taken = await Promise.all([1, 2, 3, 4].map(async () => (await handoff.take())?.id));
    expect(taken).toContain(waiting.id);
    expect(await handoff.verify()).toMatchObject({ ok: true, problems: [] });
  });

  it("finding a key takes the same few operations, however many keys there are", async () => {
    const { site, directory } = await make();
    const ports = await site.openPorts();
    let calls: string[] = [];
    // The heart and the lease have calls of their own.
    const count = (operation: string, path: string): void => {
      if (path.includes("/ledger/")) calls.push(operation);
    };
    const counted = changedDisk(ports.disk, (disk) => ({
      canOpen: async (path) => {
        count("canOpen", path);
        return await disk.canOpen(path);
      },
      readFile: async (path, bytesMax) => {
        count("readFile", path);
        return await disk.readFile(path, bytesMax);
      },
      list: async (path) => {
        count("list", path);
        return await disk.list(path);
      },
      look: async (path) => {
        count("look", path);
        return await disk.look(path);
      },
    }));
    const box = await openBoxOn({ ...ports, disk: counted }, directory);
    const counts: string[][] = [];
    for (const size of [1, 20]) {
      for (const key of keysOfOneShard(box, size)) await put(box, key);
      for (const key of ["key of none", keysOfOneShard(box, 1)[0]!]) {
        calls = [];
        await findCommitted(box, box.layout.ledger(key, 0));
        counts.push([...calls]);
      }
    }
    // On a local disk an absence is found without an error; on a share by one request.
    const [absent, present] =
      ports.disk.volume.kind === "local" ? [["canOpen"], ["canOpen", "readFile"]] : [["readFile"], ["readFile"]];
    expect(counts).toEqual([absent, present, absent, present]);
  });
});

describe("a compaction that is killed at any call", () => {
  it("leaves every entry under its name, at every moment", async () => {
    const failures: string[] = [];
    for (let at = 1; ; at++) {
      const trials = new TrialWorld("local");
      const box = await trials.openBox("worker");
      const keys = keysOfOneShard(box, 9);
      for (const key of keys) await trials.step(put(box, key));
      const reader = await trials.openBox("reader");
      const before = trials.world.calls.length;
      await trials.world.killAtCall("worker", at, async () => await compactLedger(box));
      for (const key of keys)
        if ((await trials.step(resultOf(reader, key))) !== `result of ${key}`) failures.push(`${key} at call ${at}`);
      // What the dead one left is no hindrance.
      trials.world.kill("worker");
      await trials.step(compactLedger(reader));
      for (const key of keys)
        if ((await trials.step(resultOf(reader, key))) !== `result of ${key}`) failures.push(`${key} after call ${at}`);
      const made = trials.world.calls.slice(before).filter(({ process }) => process === "worker").length;
      if (made < at) break;
    }
    expect(failures).toEqual([]);
  });
});

describe("a worker that sleeps for a day without noticing", () => {
  it.each([
    ["without outputs", false, false],
    ["with outputs", true, false],
    ["without outputs, after the entry has expired", false, true],
    ["with outputs, after the entry has expired", true, true],
  ])("cannot commit any more, %s", async (_what, hasOutputs, isExpired) => {
    const trials = new TrialWorld("share");
    const { handoff: sleeper, sleep } = await trials.openSleeper("sleeper");
    await trials.step(sleeper.publish({ "a.txt": "one" }, { key: "order" }));
    const slept = (await trials.step(sleeper.take()))!;
    if (hasOutputs) await trials.step(slept.output("b.txt", "an output"));
    sleep();
    const worker = await trials.open("worker");
    await trials.workOff(worker);
    const box = await trials.openBox("keeper");
    await trials.world.advance(2 * leaseMs);
    if (isExpired) expect(await trials.step(expireLedger(box, leaseMs))).toBe(1);
    expect(slept.signal.aborted).toBe(false);
    expect(await trials.step(failureOf(slept.ack("too late")))).toMatchObject({ code: "CLAIM_LOST" });
    expect(slept.signal.aborted).toBe(true);
    const entry = await trials.step(findCommitted(box, box.layout.ledger("order", 0)));
    expect(entry === undefined).toBe(isExpired);
    expect(entry?.committed.result).toBeUndefined();
    expect(Object.keys(await statesOf(box.disk, "/box"))).toEqual(["archive"]);
    // It goes on with a new session.
    await trials.step(worker.publish({ "a.txt": "two" }, { key: "next order" }));
    const next = await trials.step(sleeper.take({ waitMs: 10 * leaseMs }));
    expect(next?.key).toBe("next order");
  });
});
