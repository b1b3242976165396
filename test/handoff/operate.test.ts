// What a producer and an operator ask of a box: where a ticket is, what became of it, and how to bring it back.
import { describe, expect, it } from "vitest";
import { createHash } from "node:crypto";
import type { Ports } from "../../src/ports/ports.ts";
import { boxSites, openOn, ticketsBelow, type BoxSite } from "./consume/boxes.ts";
import { failureOf, listOf } from "../sites/event-logs.ts";
import { changedDisk } from "../sites/disks.ts";
import { makeRealSite, makeSimulatedSite } from "../sites/sites.ts";

const unknownId = "0".repeat(36);

/** Takes one ticket and settles it. */
async function work(site: BoxSite, how: "ack" | "fail" | "retry", delayMs = 0): Promise<string> {
  const worker = await site.open();
  const delivery = await worker.take();
  if (delivery === undefined) throw new Error("there was no ticket");
  if (how === "ack") await delivery.ack({ done: delivery.attempt });
  else if (how === "fail") await delivery.fail("no such customer");
  else await delivery.retry({ delayMs, reason: "busy" });
  await worker.close();
  return delivery.id;
}

/** The paths of all files of that name below a directory. */
async function pathsNamed({ disk }: Ports, directory: string, wanted: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of await disk.list(directory).catch((): string[] => []))
    if (name === wanted) found.push(`${directory}/${name}`);
    else found.push(...(await pathsNamed({ disk } as Ports, `${directory}/${name}`, wanted)));
  return found;
}

describe.each(boxSites)("on %s", (_name, make) => {
  it("find returns the state of a ticket, its holder, its attempts and its result", async () => {
    const site = await make();
    const box = await site.open();
    const { id } = await box.publish({ "a.txt": "one" }, { meta: { from: "till 3" } });
    expect(await box.find(id)).toMatchObject({ id, state: "incoming", attempt: 0, history: [], duplicate: false });
    const worker = await site.open();
    const delivery = await worker.take();
    await delivery?.progress({ percent: 50 });
    expect(await box.find(id)).toMatchObject({
      state: "processing",
      attempt: 1,
      holder: { state: "alive" },
      progress: { percent: 50 },
      meta: { from: "till 3" },
    });
    await delivery?.retry({ delayMs: 3_600_000, reason: "busy" });
    expect(await box.find(id)).toMatchObject({
      state: "delayed",
      history: [{ attempt: 1, outcome: "retry", reason: "busy" }],
    });
    expect(await box.find(unknownId)).toBeUndefined();
    expect(await box.find("not an id")).toBeUndefined();
  });

  it("a ticket whose file is damaged is found and listed with the reason, and its replay fails with it", async () => {
    const site = await make();
    const box = await site.open();
    const { id } = await box.publish({ a: "1" }, { key: "order 1" });
    const { disk } = await site.site.openPorts();
    const [path = ""] = await ticketsBelow(disk, `${site.directory}/incoming`);
    await disk.unlink(path);
    await disk.createFile(path, Buffer.from("garbage"), { sync: false });
    const damaged = expect.stringContaining("is not a valid ticket record") as string;
    expect(await box.find(id)).toMatchObject({ id, key: "", files: [], state: "incoming", attempt: 0, damaged });
    // A worker meets it.
    expect(await (await site.open()).take()).toBeUndefined();
    const dead = { id, state: "error", attempt: 1, damaged, history: [{ outcome: "fail", reason: damaged }] };
    expect(await box.find(id)).toMatchObject(dead);
    expect(await listOf(box.list("error"))).toMatchObject([dead]);
    expect(await box.waitFor(id)).toMatchObject(dead);
    expect(await box.verify()).toMatchObject({ ok: false, problems: [{ severity: "damage" }] });
    expect(await failureOf(box.replay({ from: "error", id }))).toMatchObject({
      code: "CORRUPT",
      message: expect.stringMatching(/cannot be replayed, because its file is damaged/) as string,
    });
  });

  it("content reads a handler's output, and prefers a file of the ticket with the same name", async () => {
    const site = await make();
    const box = await site.open();
    const { id } = await box.publish({ a: "handed over" }, { key: "order 1" });
    const delivery = await (await site.open()).take();
    await delivery?.output("a", "made");
    await delivery?.output("receipt.txt", "paid");
    expect((await box.find(id))?.outputs).toEqual([]);
    await delivery?.ack();
    const sha256 = createHash("sha256").update("paid").digest("hex");
    expect((await box.find(id))?.outputs).toMatchObject([{ name: "a" }, { name: "receipt.txt", size: 4, sha256 }]);
    const textOf = async (name: string, options = {}): Promise<string> =>
      Buffer.concat(await listOf(box.content(id, name, options))).toString();
    expect(await textOf("receipt.txt")).toBe("paid");
    expect(await textOf("a")).toBe("handed over");
    expect(await textOf("a", { output: true })).toBe("made");
    expect(await failureOf(textOf("b"))).toMatchObject({
      code: "NO_SUCH_FILE",
      message: expect.stringContaining("the files a and the outputs a, receipt.txt") as string,
    });
    const [path = ""] = await pathsNamed(await site.site.openPorts(), `${site.directory}/ledger`, "receipt.txt");
    const { disk } = await site.site.openPorts();
    await disk.unlink(path);
    await disk.createFile(path, Buffer.from("owed"), { sync: false });
    expect(await failureOf(textOf("receipt.txt"))).toMatchObject({ code: "PAYLOAD_MISMATCH", file: "receipt.txt" });
  });

  it("findByKey finds a ticket by the key of its producer, or by its id, in every state", async () => {
    const site = await make();
    const box = await site.open();
    const { id } = await box.publish({ a: "1" }, { key: "order 1", group: "customer 7" });
    expect(await box.findByKey("order 1")).toMatchObject({ id, state: "incoming", key: "order 1" });
    await work(site, "ack");
    expect(await box.findByKey("order 1")).toMatchObject({ id, state: "archive", result: { done: 1 } });
    const plain = await box.publish({ a: "2" });
    expect(await box.findByKey(plain.id)).toMatchObject({ id: plain.id });
    expect(await box.findByKey("order 2")).toBeUndefined();
  });

  it("list yields the tickets of a state in processing order, by group, and up to a limit", async () => {
    const box = await (await make()).open();
    for (const [name, priority] of [["later", 7] as const, ["first", 0] as const, ["then", 5] as const])
      await box.publish({ [name]: name }, { priority });
    for (const number of [1, 2, 3]) await box.publish({ a: String(number) }, { group: "g", meta: number });
    await box.publish({ a: "x" }, { group: "other" });
    const names = (await listOf(box.list("incoming"))).map(({ files }) => files[0]?.name);
    expect(names.slice(0, 3)).toEqual(["first", "then", "later"]);
    expect(names).toHaveLength(7);
    expect((await listOf(box.list("incoming", { group: "g" }))).map(({ meta }) => meta)).toEqual([1, 2, 3]);
    expect(await listOf(box.list("incoming", { limit: 2 }))).toHaveLength(2);
    expect(await listOf(box.list("archive"))).toEqual([]);
    expect(() => box.list("done" as never)).toThrow(/there is no state done/);
    expect(() => box.list("error", { max: 3 } as object)).toThrow(/list: there is no option "max"/);
  });

  it("waitFor resolves with the outcome of the ticket as soon as it is done or has failed", async () => {
    const site = await make();
    const box = await site.open();
    const good = await box.publish({ a: "1" });
    const receipt = box.waitFor(good.id);
    await work(site, "ack");
    expect(await receipt).toMatchObject({ id: good.id, state: "archive", result: { done: 1 } });
    const bad = await box.publish({ a: "2" });
    const [other] = await Promise.all([box.waitFor(bad.id), work(site, "fail")]);
    expect(other).toMatchObject({ state: "error", history: [{ outcome: "fail", reason: "no such customer" }] });
  });

  it("waitFor rejects for a ticket that does not exist, on abort, and on close", async () => {
    const site = await make();
    const box = await site.open();
    expect(await failureOf(box.waitFor(unknownId))).toMatchObject({ code: "NO_SUCH_TICKET", id: unknownId });
    const { id } = await box.publish({ a: "1" });
    const reason = new Error("enough");
    expect(await failureOf(box.waitFor(id, { signal: AbortSignal.abort(reason) }))).toBe(reason);
    const waiting = failureOf(box.waitFor(id));
    await box.close();
    expect(await waiting).toMatchObject({ code: "CLOSED" });
  });

  it("a ticket whose worker died after its commit is done: the ledger is authoritative", async () => {
    const site = await make();
    const box = await site.open();
    const { id } = await box.publish({ a: "1" });
    const worker = await site.open();
    const delivery = await worker.take();
    const { disk } = await site.site.openPorts();
    // The archive cannot be reached, so the worker commits and gets no further.
    await disk.createFile(`${site.directory}/archive`, new Uint8Array(), { sync: false });
    await delivery?.ack("done");
    expect(await box.waitFor(id)).toMatchObject({ state: "archive", result: "done" });
  });

  it("stats counts the tickets of each state, the workers, and how long the oldest waits", async () => {
    const site = await make();
    const box = await site.open();
    expect(await box.stats()).toEqual({
      incoming: 0,
      delayed: 0,
      processing: 0,
      archive: 0,
      error: 0,
      holders: 0,
      paused: false,
    });
    for (const key of ["a", "b", "c", "d", "e"]) await box.publish({ key }, { group: key === "e" ? "g" : undefined });
    await box.publish({ a: "later" }, { delayMs: 3_600_000 });
    await work(site, "ack");
    await work(site, "fail");
    const worker = await site.open();
    await using _delivery = await worker.take();
    const stats = await box.stats();
    expect(stats).toMatchObject({ incoming: 2, delayed: 1, processing: 1, archive: 1, error: 1, holders: 1 });
    expect(stats.oldestIncomingMs).toBeGreaterThanOrEqual(0);
    expect(stats.oldestIncomingMs).toBeLessThan(60_000);
  });

  it("replay returns dead letters with their attempts reset, and archived tickets as new deliveries", async () => {
    const site = await make();
    const box = await site.open();
    const { id } = await box.publish({ a: "1" });
    await work(site, "fail");
    expect(await box.replay({ from: "archive", id })).toBe(0);
    expect(await box.replay({ from: "error", id })).toBe(1);
    expect(await box.find(id)).toMatchObject({ state: "incoming", attempt: 0, history: [{ outcome: "fail" }] });
    await work(site, "ack");
    expect(await box.find(id)).toMatchObject({ state: "archive", result: { done: 1 } });
    expect(await box.replay({ from: "archive" })).toBe(1);
    expect(await box.find(id)).toMatchObject({ state: "incoming" });
    await work(site, "ack");
    expect(await box.find(id)).toMatchObject({ state: "archive", result: { done: 2 }, duplicate: false });
    await expect(box.replay({ from: "incoming" as never })).rejects.toThrow(/from must be "error" or "archive"/);
  });

  it("a paused box delivers nothing to any process until it is resumed", async () => {
    const site = await make();
    const [box, other] = [await site.open(), await site.open()];
    await box.publish({ a: "1" });
    await box.pause("the ERP is down");
    expect(await box.stats()).toMatchObject({ paused: true, pauseReason: "the ERP is down" });
    expect(await other.take()).toBeUndefined();
    // Producers go on.
    await box.publish({ a: "2" });
    await box.pause();
    expect((await other.stats()).pauseReason).toBeUndefined();
    await box.resume();
    await box.resume();
    expect((await box.stats()).paused).toBe(false);
    const delivery = await other.take({ waitMs: 60_000 });
    expect(delivery?.attempt).toBe(1);
    await delivery?.ack();
  });
});

describe("a box with years of tickets", () => {
  it("a ticket is found without listing the minutes and days in which it cannot be", async () => {
    const { directory, openPorts } = await makeSimulatedSite();
    const ports = await openPorts();
    const listed: string[] = [];
    const disk = new Proxy(ports.disk, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        return (...args: readonly unknown[]): unknown => {
          if (name === "list") listed.push(String(args[0]));
          return Reflect.apply(value, target, args);
        };
      },
    });
    const box = await openOn({ ...ports, disk }, directory);
    const old: string[] = [];
    for (const parent of ["incoming/5", "archive", "error"]) {
      const [first = "", ...rest] = parent.split("/");
      await disk.mkdir(`${directory}/${first}`);
      for (const name of rest) await disk.mkdir(`${directory}/${first}/${name}`);
      const names = parent === "incoming/5" ? ["0000000001", "0000000002"] : ["20200101", "20200102"];
      old.push(...names.map((name) => `${directory}/${parent}/${name}`));
    }
    for (const path of old) await disk.mkdir(path);
    const findAll = async (id: string, key: string): Promise<unknown[]> => {
      listed.length = 0;
      return [
        (await box.find(id))?.state,
        (await box.findByKey(key))?.state,
        listed.filter((path) => old.includes(path)),
      ];
    };
    const plain = await box.publish({ a: "1" });
    expect(await findAll(plain.id, plain.id)).toEqual(["incoming", "incoming", []]);
    const delivery = await box.take();
    expect(await findAll(plain.id, plain.id)).toEqual(["processing", "processing", []]);
    await delivery?.ack();
    expect(await findAll(plain.id, plain.id)).toEqual(["archive", "archive", []]);
    const keyed = await box.publish({ a: "2" }, { key: "order 1", group: "g" });
    expect(await findAll(keyed.id, "order 1")).toEqual(["incoming", "incoming", []]);
    await (await box.take())?.fail("no");
    expect(await findAll(keyed.id, "order 1")).toEqual(["error", "error", []]);
  });
});

it("list reads one file for each ticket that nobody has claimed or committed", async () => {
  const { directory, openPorts } = await makeRealSite();
  const ports = await openPorts();
  const read: string[] = [];
  const disk = changedDisk(ports.disk, (real) => ({
    readFile: async (path, bytesMax) => {
      read.push(path);
      return await real.readFile(path, bytesMax);
    },
  }));
  const box = await openOn({ ...ports, disk }, `${directory}/box`);
  await box.publish({ a: "1" });
  await box.publish({ a: "2" }, { key: "k" });
  read.length = 0;
  expect(await listOf(box.list("incoming"))).toHaveLength(2);
  expect(read.map((path) => path.split("/").at(-4))).toEqual(["incoming", "incoming"]);
});
