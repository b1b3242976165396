// Recovery: what the dead had in hand goes back, damaged tickets end with a reason, and foreign files hide nothing.
import { describe, expect, it } from "vitest";
import type { Box } from "../../../src/handoff/box/box.ts";
import { claimNext } from "../../../src/handoff/consume/claim.ts";
import { commitResult, noteKind } from "../../../src/handoff/consume/settle.ts";
import { findTicketName } from "../../../src/handoff/model/ticket-name.ts";
import { recoverHolder } from "../../../src/handoff/recover/return-tickets.ts";
import { removeTree } from "../../../src/durable/publish/directory.ts";
import { getRecord } from "../../../src/durable/publish/record-file.ts";
import { checksumOf } from "../../../src/format/checksum.ts";
import { diskError } from "../../../src/ports/disk-error.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import { changedDisk, readText } from "../../sites/disks.ts";
import { boxSites, openBoxOn, openOn, statesOf, ticketsBelow } from "./boxes.ts";
import { TrialWorld } from "./trials.ts";

async function reasonOf(box: Box, id: string, claims = 1): Promise<string> {
  const note = await getRecord(box.disk, noteKind, box.layout.note(id, String(claims)));
  return `${note.outcome}: ${note.reason}`;
}

async function rewrite(disk: Disk, path: string, change: (text: string) => string): Promise<void> {
  const text = change(await readText(disk, path));
  await disk.unlink(path);
  await disk.createFile(path, Buffer.from(text), { sync: true });
}

/** With the checksum that belongs to it, as an editor that knows the format would write it. */
function withChecksum(text: string): string {
  const head = text.replace(/,"crc":"[0-9a-f]{8}"\}\n$/, "");
  return `${head},"crc":"${checksumOf(head)}"}\n`;
}

const large = "x".repeat(70_000);

describe.each(boxSites)("on %s", (_site, make) => {
  it("two processes that recover the same tickets at once return each of them once", async () => {
    const { site, directory } = await make();
    const [dead, ada, bob] = [
      await openOn(await site.openPorts(), directory),
      await openBoxOn(await site.openPorts(), directory),
      await openBoxOn(await site.openPorts(), directory),
    ];
    const ids: string[] = [];
    for (const text of ["one", "two", "three"]) ids.push((await dead.publish({ "a.txt": text })).id);
    const victim = await openBoxOn(await site.openPorts(), directory);
    for (const _ of ids) await claimNext(victim);
    const { holder } = await victim.ground.session();
    await Promise.all([recoverHolder(ada, holder.id), recoverHolder(bob, holder.id)]);
    const { incoming, ...others } = await statesOf(ada.disk, directory);
    expect(others).toEqual({});
    expect(incoming?.map((name) => findTicketName(name)?.id).sort()).toEqual([...ids].sort());
    expect(incoming?.every((name) => findTicketName(name)?.claims === 1)).toBe(true);
    expect(await ada.disk.list(ada.layout.processings)).not.toContain(holder.id);
  });

  it("the history records an attempt whose worker died as lost, unless it was committed", async () => {
    const { site, directory } = await make();
    const box = await openOn(await site.openPorts(), directory);
    const victim = await openBoxOn(await site.openPorts(), directory);
    const { id } = await box.publish({ "a.txt": "one" });
    await claimNext(victim);
    const reaper = await openBoxOn(await site.openPorts(), directory);
    await recoverHolder(reaper, (await victim.ground.session()).holder.id);
    const lost = { attempt: 1, outcome: "lost", reason: expect.stringContaining("died") as string };
    expect(await box.find(id)).toMatchObject({ state: "incoming", attempt: 1, history: [lost] });
    const second = await openBoxOn(await site.openPorts(), directory);
    const claim = await claimNext(second);
    if (claim === undefined || "damage" in claim) throw new Error("there was no ticket");
    await commitResult(second, claim, "done");
    await recoverHolder(reaper, (await second.ground.session()).holder.id);
    expect(await box.find(id)).toMatchObject({ state: "archive", result: "done", history: [lost] });
  });

  it("a session whose directory was removed claims nothing in it, and its process continues in a new one", async () => {
    const { site, directory } = await make();
    const worker = await openOn(await site.openPorts(), directory);
    const box = await openBoxOn(await site.openPorts(), directory);
    await worker.publish({ "a.txt": "one" });
    // Made by its first claim.
    await using first = await worker.take();
    expect(first).toBeDefined();
    const { id } = await worker.publish({ "a.txt": "two" });
    const [holder] = await box.disk.list(box.layout.processings);
    await recoverHolder(box, holder!);
    const second = await worker.take({ waitMs: 20_000 });
    expect(second).toBeDefined();
    const third = await worker.take({ waitMs: 20_000 });
    expect([second!.id, third!.id].sort()).toEqual([id, first!.id].sort());
    const holders = (await ticketsBelow(box.disk, box.layout.processings)).map((path) => path.split("/").at(-2));
    expect(holders).not.toContain(holder);
    await second!.ack();
    await third!.ack();
    await expect(first!.ack()).rejects.toMatchObject({ code: "CLAIM_LOST" });
  });

  it("a minute's directory that is removed under a publisher is created again, and the ticket arrives", async () => {
    const { site, directory } = await make();
    const ports = await site.openPorts();
    let removed = 0;
    const disk = changedDisk(ports.disk, (real) => ({
      rename: async (from, to) => {
        // Just before the ticket arrives, a consumer finds the directory empty and past.
        if (to.includes("/incoming/") && removed < 2) {
          removed++;
          await real.rmdir(to.slice(0, to.lastIndexOf("/"))).catch(() => undefined);
        }
        await real.rename(from, to);
      },
    }));
    const publisher = await openOn({ ...ports, disk }, directory);
    const { id } = await publisher.publish({ "a.txt": "one" });
    expect(removed).toBe(2);
    expect(await statesOf(ports.disk, directory)).toEqual({ incoming: [`${id}-0.json`] });
  });

  it("a consumer survives a collector whose clock is ahead and removes today's dead letters and archive", async () => {
    const { site, directory, open } = await make();
    const publisher = await open();
    for (const meta of ["fails", "fails too", "done"]) await publisher.publish({ "a.txt": "one" }, { meta });
    const ports = await site.openPorts();
    let removed = 0;
    const disk = changedDisk(ports.disk, (real) => ({
      rename: async (from, to) => {
        const day = to.slice(0, to.lastIndexOf("/"));
        const isDay = /\/(error|archive)\/[0-9]{8}$/.test(day);
        // Just before the ticket arrives, it finds the directory empty.
        if (isDay && removed < 3) {
          removed++;
          await real.rmdir(day).catch(() => undefined);
        }
        await real.rename(from, to);
      },
      syncDirectory: async (path) => {
        // Just before the sync, it has removed the ticket and the directory.
        if (/\/error\/[0-9]{8}$/.test(path)) await removeTree(real, path);
        await real.syncDirectory(path);
      },
    }));
    const consumer = await openOn({ ...ports, disk }, directory);
    const failing = async ({ meta }: { meta?: unknown }): Promise<void> => {
      if (meta !== "done") throw new Error("no");
    };
    await consumer.consume(failing, { attempts: 1, idleMs: 0 }).done;
    expect(removed).toBe(3);
    expect(await statesOf(ports.disk, directory)).toMatchObject({ archive: [expect.any(String)] });
    expect(await consumer.verify()).toMatchObject({ ok: true });
  });

  it("a ticket that had won its key when its publisher died is published", async () => {
    const { site, directory } = await make();
    const ports = await site.openPorts();
    const disk = changedDisk(ports.disk, (real) => ({
      rename: async (from, to) => {
        if (to.includes("/incoming/")) throw diskError("EACCES", "rename", to);
        await real.rename(from, to);
      },
    }));
    const box = await openBoxOn({ ...ports, disk }, directory);
    const publisher = await openOn({ ...ports, disk }, directory);
    await expect(publisher.publish({ "a.txt": "one" }, { key: "order" })).rejects.toThrow();
    const next = await openOn(await site.openPorts(), directory);
    const second = await next.publish({ "a.txt": "one" }, { key: "order" });
    expect(second.duplicate).toBe(true);
    for (const holder of await ports.disk.list(box.layout.stagings))
      await recoverHolder(await openBoxOn(await site.openPorts(), directory), holder);
    const delivery = await next.take();
    expect(delivery?.id).toBe(second.id);
    await delivery!.ack();
  });

  it("a payload that does not match its manifest ends in error, with the reason, and no handler sees it", async () => {
    const { site, directory, open } = await make();
    const box = await openBoxOn(await site.openPorts(), directory);
    const handoff = await open();
    const { id } = await handoff.publish({ "a.txt": large });
    await rewrite(box.disk, `${box.layout.payload(id)}/a.txt`, (text) => `y${text.slice(1)}`);
    const cut = await handoff.publish({ "a.txt": large });
    await rewrite(box.disk, `${box.layout.payload(cut.id)}/a.txt`, (text) => text.slice(1));
    expect(await handoff.take()).toBeUndefined();
    expect(await statesOf(box.disk, directory)).toEqual({ error: [`${id}-1.json`, `${cut.id}-1.json`].sort() });
    expect(await reasonOf(box, id)).toMatch(/^mismatch: The file "a.txt" .* its SHA-256 is /);
    expect(await reasonOf(box, cut.id)).toMatch(/^mismatch: .* it has 69999 instead of 70000 bytes/);
  });

  it.each([
    ["is torn", (text: string) => text.slice(0, 100), /does not end in a checksum/],
    ["was edited", (text: string) => text.replace('"priority":5', '"priority":0'), /its checksum does not match/],
    [
      "was edited into nonsense",
      (text: string) => withChecksum(text.replace('"files":[{', '"files":[{},{')),
      /its body is invalid/,
    ],
    ["is of a newer version", (text: string) => withChecksum(text.replace('"format":', '"format":9')), /Upgrade/],
    ["is empty", () => "", /does not end in a checksum/],
  ])("a ticket that %s ends in error, with the reason", async (_what, change, reason) => {
    const { site, directory, open } = await make();
    const box = await openBoxOn(await site.openPorts(), directory);
    const handoff = await open();
    const { id } = await handoff.publish({ "a.txt": "one" });
    const [path] = await ticketsBelow(box.disk, `${directory}/incoming`);
    await rewrite(box.disk, path!, change);
    const good = await handoff.publish({ "a.txt": "two" });
    const delivery = await handoff.take();
    expect(delivery?.id).toBe(good.id);
    await delivery!.ack();
    expect(await handoff.take()).toBeUndefined();
    expect(await statesOf(box.disk, directory)).toMatchObject({ error: [`${id}-1.json`] });
    expect(await reasonOf(box, id)).toMatch(reason);
  });

  it("thousands of foreign files hide no ticket, and none of them is touched", async () => {
    const { site, directory, open } = await make();
    const box = await openBoxOn(await site.openPorts(), directory);
    const handoff = await open();
    await handoff.publish({ "a.txt": "first" });
    await (await handoff.take())!.ack();
    const foreign = await box.disk.list(box.layout.incoming(5)).then(([name]) => `${box.layout.incoming(5)}/${name}`);
    for (let number = 0; number < 3000; number++)
      await box.disk.createFile(`${foreign}/foreign-${number}.tmp`, new Uint8Array(), { sync: false });
    for (const path of [`${directory}/incoming/README`, `${box.layout.incoming(5)}/notes.txt`])
      await box.disk.createFile(path, new Uint8Array(), { sync: false });
    const { id } = await handoff.publish({ "a.txt": "second" });
    const delivery = await handoff.take();
    expect(delivery?.id).toBe(id);
    await delivery!.ack();
    expect((await box.disk.list(foreign)).filter((name) => name.startsWith("foreign-"))).toHaveLength(3000);
  });

  it("a parked ticket returns when it is due, also while a delayed ticket waits for a later minute", async () => {
    const { open } = await make();
    const handoff = await open();
    await handoff.publish({ "a.txt": "later" }, { delayMs: 600_000 });
    const { id } = await handoff.publish({ "a.txt": "now" });
    expect(await handoff.takeParked(1)).toMatchObject({ id });
    const delivery = await handoff.take({ waitMs: 20_000 });
    expect(delivery).toMatchObject({ id, attempt: 2 });
    await delivery!.ack();
  });
});

describe("a ticket that kills its workers", () => {
  it.each(["local", "share"] as const)("ends in error after its attempts, on a %s disk", async (volume) => {
    const trials = new TrialWorld(volume);
    const publisher = await trials.open("publisher");
    await trials.step(publisher.publish({ "a.txt": "poison" }, { key: "poison" }));
    for (const worker of ["first", "second", "third"]) {
      const consumer = (await trials.open(worker)).consume(async ({ attempt }) => {
        trials.handled.push(`${worker} ${attempt}`);
        trials.world.kill(worker);
        await new Promise(() => undefined);
      });
      consumer.done.catch(() => undefined);
      const count = trials.handled.length + 1;
      for (let step = 0; step < 1000 && trials.handled.length < count; step++) await trials.world.advance(20);
    }
    expect(trials.handled).toEqual(["first 1", "second 2", "third 3"]);
    const last = await trials.open("last");
    const consumer = last.consume(async () => void trials.handled.push("last"), { attempts: 3 });
    const { disk } = trials.world.ports("looker");
    for (let step = 0; step < 1000 && (await statesOf(disk, "/box")).error === undefined; step++)
      await trials.world.advance(20);
    await trials.step(consumer.stop());
    expect(await statesOf(disk, "/box")).toEqual({ error: [expect.stringMatching(/-4\.json$/)] });
    expect(trials.handled).toHaveLength(3);
  });
});
