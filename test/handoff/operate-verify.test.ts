// Verify explains what is wrong with a box and repairs it without deleting anything; collect removes what the
// retention lets go, and what crashes have left.
import { describe, expect, it } from "vitest";
import type { Problem } from "../../src/common.ts";
import { createHash } from "node:crypto";
import { dayMs } from "../../src/handoff/box/layout.ts";
import type { BoxHandoff } from "../../src/handoff/handoff.ts";
import { verifyDirectory } from "../../src/handoff/operate/verify/verify.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { boxSites, openOn, statesOf, ticketsBelow, type BoxSite } from "./consume/boxes.ts";
import { failureOf, listOf } from "../sites/event-logs.ts";
import { refusingPorts } from "../durable/refusing-ports.ts";

const large = "x".repeat(70_000);

interface World {
  readonly site: BoxSite;
  readonly box: BoxHandoff;
  readonly disk: Disk;
  readonly path: (name: string) => string;
}

async function makeWorld(make: () => Promise<BoxSite>): Promise<World> {
  const site = await make();
  const box = await site.open();
  const { disk } = await site.site.openPorts();
  return { site, box, disk, path: (name) => `${site.directory}/${name}` };
}

/** Replaces a file by bytes that are no record. */
async function spoil(disk: Disk, path: string): Promise<void> {
  await disk.unlink(path);
  await disk.createFile(path, Buffer.from("garbage"), { sync: false });
}

async function take(box: BoxHandoff): Promise<NonNullable<Awaited<ReturnType<BoxHandoff["take"]>>>> {
  const delivery = await box.take();
  if (delivery === undefined) throw new Error("there was no ticket");
  return delivery;
}

const short = ({ severity, path, repaired }: Problem): string =>
  `${severity} ${path.replace(/^.*\/box\//, "").replace(/[0-9a-z]{26,64}.*$/, "…")}${repaired ? ", repaired" : ""}`;

/** The ledger's name of a key. */
function hashOf(key: string): string {
  const hash = createHash("sha256").update(key).digest("hex");
  return `${hash.slice(0, 3)}/${hash}`;
}

describe.each(boxSites)("verify on %s", (_name, make) => {
  it("verify names an unreadable holder record, while consumers continue and tickets of living holders stay", async () => {
    const { box, site, disk, path } = await makeWorld(make);
    for (const key of ["a", "b"]) await box.publish({ f: "1" }, { key });
    const other = await site.open();
    await take(other);
    const own = (await listOf(box.list("processing"))).map(({ holder }) => holder?.id ?? "")[0] ?? "";
    const record = path(`.holdfast/holders/${own}.json`);
    await spoil(disk, record);
    await (await take(box)).ack();
    expect(await box.take()).toBe(undefined);
    expect((await box.stats()).processing).toBe(1);
    for (const repair of [false, true]) {
      const { ok, problems } = await box.verify({ repair });
      expect(ok).toBe(true);
      expect(problems).toMatchObject([
        { severity: "note", path: record, what: expect.stringContaining(own) as string },
      ]);
    }
  });

  it("verify finds nothing wrong with a box that is in use", async () => {
    const { box } = await makeWorld(make);
    for (const key of ["a", "b", "c", "d"]) await box.publish({ a: large, b: key }, { key });
    await box.publish({ a: "1" }, { group: "g" });
    await box.publish({ a: "1" }, { delayMs: 3_600_000 });
    const first = await take(box);
    await first.output("out.txt", "result");
    await first.ack();
    await (await take(box)).fail("no");
    await using _inHand = await take(box);
    const seen: [number, number][] = [];
    expect(await box.verify({ onProgress: (...each) => seen.push(each) })).toEqual({
      ok: true,
      checked: 6,
      problems: [],
    });
    const [done, total] = seen.at(-1) ?? [];
    expect(done).toBe(total);
  });

  it("a repair moves damaged tickets, and those with an altered payload, to the dead letters with the reason", async () => {
    const { box, disk, path } = await makeWorld(make);
    const torn = await box.publish({ a: "1" });
    const altered = await box.publish({ a: large });
    const [tornPath = ""] = (await ticketsBelow(disk, path("incoming"))).filter((each) => each.includes(torn.id));
    await spoil(disk, tornPath);
    await spoil(disk, path(`data/${altered.id.slice(-2)}/${altered.id}/a`));
    const { ok, problems } = await box.verify();
    expect(ok).toBe(false);
    const whatOf = (id: string): string | undefined => problems.find(({ path: each }) => each.includes(id))?.what;
    expect(problems.map(({ severity }) => severity)).toEqual(["damage", "damage"]);
    expect(whatOf(torn.id)).toContain("is not a valid ticket record");
    expect(whatOf(altered.id)).toContain("7 instead of 70000 bytes");
    const repaired = await box.verify({ repair: true });
    // The torn one cannot be replayed, which is told until it is moved aside.
    expect(repaired).toMatchObject({
      ok: false,
      problems: [{ repaired: true }, { repaired: true }, { severity: "damage", repaired: false }],
    });
    expect(await statesOf(disk, path(""))).toEqual({ error: [expect.any(String), expect.any(String)] });
    expect(await box.find(altered.id)).toMatchObject({ state: "error", history: [{ outcome: "mismatch" }] });
    expect((await box.verify()).problems.map(({ path: each, remedy }) => [each.includes(torn.id), remedy])).toEqual([
      [true, expect.stringContaining("cannot be replayed") as string],
    ]);
    expect(await box.verify({ repair: true })).toMatchObject({ ok: true });
    expect(await box.verify()).toMatchObject({ ok: true, problems: [] });
  });

  it("a repair of a box that is not open leaves nothing of its own in it", async () => {
    const { site, box, disk, path } = await makeWorld(make);
    await box.publish({ a: "1" });
    const [ticket = ""] = await ticketsBelow(disk, path("incoming"));
    await spoil(disk, ticket);
    await box.close();
    await verifyDirectory(await site.site.openPorts(), site.directory, { repair: true });
    for (const room of ["processing", "staging"]) expect(await disk.list(path(room)).catch(() => [])).toEqual([]);
  });

  it("a repair keeps the key of a damaged ledger entry taken, so that nothing is processed twice", async () => {
    const { box, disk, path } = await makeWorld(make);
    await box.publish({ a: "1" }, { key: "order 1" });
    await (await take(box)).ack("paid");
    const plain = await box.publish({ a: "2" });
    const delivery = await take(box);
    await delivery.output("out.txt", "result");
    await delivery.ack("sent");
    await spoil(disk, path(`ledger/${hashOf("order 1")}`));
    await spoil(disk, path(`ledger/${hashOf(plain.id)}/record.json`));
    expect((await box.verify()).problems.map(short)).toEqual(
      [/^damage ledger/, /^damage ledger/].map((each) => expect.stringMatching(each) as string),
    );
    expect(await box.verify({ repair: true })).toMatchObject({ ok: true });
    expect(await box.publish({ a: "again" }, { key: "order 1" })).toMatchObject({ duplicate: true });
    expect(await box.find(plain.id)).toMatchObject({ state: "archive" });
    // The outputs are there as before; what the handler had returned is lost.
    expect((await box.find(plain.id))?.result).toBeUndefined();
    expect(await disk.list(path("aside"))).toHaveLength(2);
    expect(await box.verify()).toMatchObject({ ok: true, problems: [] });
  });

  it("a repair moves aside payloads, keys and files without a ticket, and leaves foreign files alone", async () => {
    const { box, disk, path } = await makeWorld(make);
    const { id } = await box.publish({ a: large }, { key: "order 1" });
    const [ticket = ""] = await ticketsBelow(disk, path("incoming"));
    await disk.rename(ticket, path("lost.json"));
    await disk.createFile(`${ticket.slice(0, ticket.lastIndexOf("/"))}/note.txt`, Buffer.from("mine"), { sync: false });
    const { ok, problems } = await box.verify();
    // A key without its ticket does harm: a publish with it would be told that the ticket is there.
    expect(ok).toBe(false);
    expect(problems.map(short).sort()).toEqual([
      expect.stringMatching(/^damage keys\//),
      `leftover data/${id.slice(-2)}/…`,
      "leftover incoming/5/" +
        (problems
          .find((each) => each.path.endsWith("note.txt"))
          ?.path.split("/")
          .at(-2) ?? "") +
        "/note.txt",
      "note lost.json",
    ]);
    expect((await box.verify({ repair: true })).problems.filter(({ repaired }) => repaired)).toHaveLength(3);
    expect(await disk.list(path("aside"))).toHaveLength(3);
    expect((await box.verify()).problems.map(short)).toEqual(["note lost.json"]);
    // The key can be published again.
    expect(await box.publish({ a: "1" }, { key: "order 1" })).toMatchObject({ duplicate: false });
  });

  it("a repair writes a damaged box record again, and leaves the tickets where they are", async () => {
    const { site, box, disk, path } = await makeWorld(make);
    const { id } = await box.publish({ a: "1" });
    await box.close();
    await spoil(disk, path("box.json"));
    const ports = await site.site.openPorts();
    expect(await verifyDirectory(ports, site.directory, {})).toMatchObject({
      ok: false,
      problems: [{ severity: "damage" }],
    });
    expect(await verifyDirectory(ports, site.directory, { repair: true })).toMatchObject({ ok: true, checked: 1 });
    expect(await (await site.open()).find(id)).toMatchObject({ state: "incoming" });
  });

  it("a process that cannot write can find, list, count and verify, and its publish fails with the reason", async () => {
    const { site, box } = await makeWorld(make);
    const { id } = await box.publish({ a: "1" }, { key: "order 1" });
    await box.close();
    const ports = refusingPorts(await site.site.openPorts(), "EROFS");
    const reader = await openOn(ports, site.directory);
    expect(await reader.find(id)).toMatchObject({ state: "incoming" });
    expect(await reader.findByKey("order 1")).toMatchObject({ id });
    expect(await listOf(reader.list("incoming"))).toHaveLength(1);
    expect(await reader.stats()).toMatchObject({ incoming: 1 });
    expect(await reader.verify()).toMatchObject({ ok: true, checked: 1 });
    expect(await failureOf(reader.publish({ a: "2" }))).toMatchObject({ code: "NO_PERMISSION" });
  });
});

describe.each(boxSites)("collect on %s", (_name, make) => {
  /** As it would be after some days: the directories are named by them. */
  async function age(disk: Disk, parent: string, days: number): Promise<void> {
    for (const name of await disk.list(parent).catch((): string[] => [])) {
      const old = new Date(Date.UTC(+name.slice(0, 4), +name.slice(4, 6) - 1, +name.slice(6)) - days * dayMs);
      await disk.rename(`${parent}/${name}`, `${parent}/${old.toISOString().slice(0, 10).replaceAll("-", "")}`);
    }
  }

  it("collect removes expired tickets with their payload, notes and key, and nothing else", async () => {
    const { site, box, disk, path } = await makeWorld(make);
    await box.publish({ a: large }, { key: "done" });
    await (await take(box)).ack("paid");
    await box.publish({ a: large }, { key: "dead" });
    await (await take(box)).fail("no");
    await age(disk, path("archive"), 10);
    await age(disk, path("error"), 10);
    // Another process: this one remembers the directory of its day, which no retention takes away.
    const later = await site.open();
    const young = await later.publish({ a: large });
    await (await take(later)).ack();
    expect(await later.collect()).toEqual({ tickets: 0, bytes: 0 });
    const keeper = await site.open({ retention: { archiveMs: 20 * dayMs, errorMs: 5 * dayMs } });
    expect(await keeper.collect()).toEqual({ tickets: 1, bytes: 70_000 });
    expect(await keeper.findByKey("dead")).toBeUndefined();
    expect(await keeper.findByKey("done")).toMatchObject({ state: "archive" });
    const sweeper = await site.open({ retention: { archiveMs: 5 * dayMs, errorMs: 0 } });
    expect(await sweeper.collect()).toEqual({ tickets: 1, bytes: 70_000 });
    expect(await sweeper.find(young.id)).toMatchObject({ state: "archive" });
    expect(await statesOf(disk, path(""))).toEqual({ archive: [expect.stringContaining(young.id)] });
    // What was done stays done; what was never done can come again.
    expect(await box.publish({ a: "1" }, { key: "done" })).toMatchObject({ duplicate: true });
    expect(await box.publish({ a: "1" }, { key: "dead" })).toMatchObject({ duplicate: false });
    expect(await box.verify()).toMatchObject({ ok: true, problems: [] });
  });

  it("collect continues where a process died while removing a ticket", async () => {
    const { box, disk, path } = await makeWorld(make);
    const { id } = await box.publish({ a: large }, { key: "dead" });
    await (await take(box)).fail("no");
    const [ticket = ""] = await ticketsBelow(disk, path("error"));
    await disk.mkdir(path("trash"));
    await disk.rename(ticket, path(`trash/${id}-1-${"0".repeat(26)}`));
    expect(await box.verify()).toMatchObject({ ok: true, problems: [{ severity: "leftover" }] });
    await box.collect();
    expect(await disk.list(path("trash"))).toEqual([]);
    expect(await disk.list(path(`data/${id.slice(-2)}`))).toEqual([]);
    expect(await box.publish({ a: "1" }, { key: "dead" })).toMatchObject({ duplicate: false });
  });

  it("collect removes empty directories of past minutes", async () => {
    const { box, disk, path } = await makeWorld(make);
    await box.publish({ a: "1" });
    await disk.mkdir(path("incoming/5/0000000001"));
    await disk.mkdir(path("delayed")).catch(() => undefined);
    await disk.mkdir(path("delayed/0000000001"));
    await box.collect();
    expect(await disk.list(path("delayed"))).toEqual([]);
    expect(await disk.list(path("incoming/5"))).toHaveLength(1);
    expect(await box.stats()).toMatchObject({ incoming: 1 });
  });
});
