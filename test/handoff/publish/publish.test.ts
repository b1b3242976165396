// What a producer can rely on, on every kind of disk.
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { changedDisk } from "../../sites/disks.ts";
import { makeRealSite, sites } from "../../sites/sites.ts";
import { failureOf, listOf } from "../../sites/event-logs.ts";
import { diskError } from "../../../src/ports/disk-error.ts";
import { until } from "../../waiting.ts";
import { releaseKey } from "../../../src/handoff/operate/key-release.ts";
import { recoverHolder } from "../../../src/handoff/recover/return-tickets.ts";
import { openBoxOn } from "../consume/boxes.ts";
import { drain, filesIn, openOn } from "./opened-box.ts";

const large = "line of a large file\n".repeat(5_000);

function sha256Of(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

async function* chunks(...texts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

describe.each(sites)("on %s", (_name, makeSite) => {
  it("the manifest has name, size, SHA-256, records and type of each file, and key, time and producer of the ticket", async () => {
    const { directory, openPorts } = await makeSite();
    const box = await openOn(await openPorts(), `${directory}/box`);
    const published = await box.publish(
      { "a.csv": "1;2\n", constructor: chunks(large.slice(0, 10), large.slice(10)) },
      {
        key: "invoice 7",
        priority: 3,
        expiresMs: 60_000,
        records: { "a.csv": 1 },
        contentTypes: { "a.csv": "text/csv" },
        meta: { from: "till" },
      },
    );
    expect(published).toMatchObject({ key: "invoice 7", duplicate: false });
    const delivery = await box.take();
    expect(delivery).toMatchObject({ id: published.id, key: "invoice 7", priority: 3, meta: { from: "till" } });
    expect(delivery?.files).toEqual([
      { name: "a.csv", size: 4, sha256: sha256Of("1;2\n"), records: 1, contentType: "text/csv" },
      { name: "constructor", size: large.length, sha256: sha256Of(large) },
    ]);
    expect(delivery?.createdAt).toBeInstanceOf(Date);
    expect(delivery?.expiresAt?.getTime()).toBe((delivery?.createdAt.getTime() ?? 0) + 60_000);
    expect(delivery?.producer.pid).toBeGreaterThan(0);
    expect(await delivery?.text("constructor")).toBe(large);
    await delivery?.ack();
  });

  it("a second publish with a key returns the first id, and leaves one delivery and one payload", async () => {
    const { directory, openPorts } = await makeSite();
    const ports = await openPorts();
    const [ada, bea] = [await openOn(ports, `${directory}/box`), await openOn(await openPorts(), `${directory}/box`)];
    const first = await ada.publish({ "a.txt": large }, { key: "k" });
    expect(await bea.publish({ "a.txt": large }, { key: "k" })).toEqual({ ...first, duplicate: true });
    expect(await drain(ada)).toMatchObject([{ id: first.id, files: { "a.txt": large } }]);
    // Also after it was processed.
    expect(await bea.publish({ "a.txt": "other" }, { key: "k" })).toEqual({ ...first, duplicate: true });
    expect(await drain(bea)).toEqual([]);
    expect(await filesIn(ports.disk, `${directory}/box/data`)).toHaveLength(1);
    expect(await filesIn(ports.disk, `${directory}/box/staging`)).toEqual([]);
  });

  it("bytes that change while they are published give one version of each piece, and its hash matches", async () => {
    const { directory, openPorts } = await makeSite();
    const box = await openOn(await openPorts(), `${directory}/box`);
    const bytes = Buffer.alloc(3 * 1024 * 1024, "a");
    let isOver = false;
    const publishing = box.publish({ "a.bin": bytes, "b.bin": bytes.subarray(0, 10) }).finally(() => (isOver = true));
    for (let turn = 0; !isOver; turn++) {
      bytes.fill(65 + (turn % 26));
      await new Promise((resolve) => setImmediate(resolve));
    }
    const { id } = await publishing;
    // A payload that does not fit its hash would go to the dead letters instead.
    const delivery = await box.take();
    expect(delivery?.id).toBe(id);
    await delivery?.ack();
  });

  it("a source may reuse its buffer for every chunk", async () => {
    const { directory, openPorts } = await makeSite();
    const box = await openOn(await openPorts(), `${directory}/box`);
    async function* reusing(count: number): AsyncGenerator<Uint8Array> {
      const buffer = Buffer.alloc(1024);
      for (let index = 0; index < count; index++) yield buffer.fill(String(index % 10));
    }
    await box.publish({ small: reusing(3), large: reusing(200) });
    const [taken] = await drain(box);
    const expected = (count: number): string =>
      Array.from({ length: count }, (_, index) => String(index % 10).repeat(1024)).join("");
    expect(taken?.files).toEqual({ small: expected(3), large: expected(200) });
  });

  it.each([
    [
      "gives nothing more",
      async function* () {
        yield Buffer.alloc(70_000);
        await new Promise(() => undefined);
      },
    ],
    [
      "never begins",
      async function* () {
        await new Promise(() => undefined);
        yield Buffer.alloc(1);
      },
    ],
  ] as const)("an abort ends the wait for a source that %s, and nothing is left", async (_how, source) => {
    const { directory, openPorts } = await makeSite();
    const ports = await openPorts();
    const box = await openOn(ports, `${directory}/box`);
    const abort = new AbortController();
    const publishing = failureOf(box.publish({ "a.bin": source() }, { key: "k", signal: abort.signal }));
    setImmediate(() => abort.abort(new Error("enough")));
    expect(await publishing).toMatchObject({ message: "enough" });
    for (const place of ["staging", "data", "keys", "incoming"])
      expect(await filesIn(ports.disk, `${directory}/box/${place}`)).toEqual([]);
    expect(await box.publish({ "a.bin": "again" }, { key: "k" })).toMatchObject({ duplicate: false });
  });

  it("a source that fails, or yields strings instead of bytes, leaves nothing", async () => {
    const { directory, openPorts } = await makeSite();
    const ports = await openPorts();
    const box = await openOn(ports, `${directory}/box`);
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(70_000);
      throw new Error("the source failed");
    }
    expect(await failureOf(box.publish({ "a.bin": failing() }))).toMatchObject({ message: "the source failed" });
    async function* texts(): AsyncGenerator<Uint8Array> {
      yield "text" as unknown as Uint8Array;
    }
    expect(await failureOf(box.publish({ "a.bin": texts() }))).toBeInstanceOf(TypeError);
    for (const place of ["staging", "data", "incoming"])
      expect(await filesIn(ports.disk, `${directory}/box/${place}`)).toEqual([]);
  });

  it("publishMany answers in the order given, and a ticket that fails fails alone", async () => {
    const { directory, openPorts } = await makeSite();
    const box = await openOn(await openPorts(), `${directory}/box`);
    const files: Record<string, string> = { "a.txt": "x" };
    const items = Array.from({ length: 150 }, (_, index) => ({ files, key: `k${index}` }));
    items[70] = { files: { con: "x" }, key: "k70" };
    const answers = box.publishMany(items);
    const told: string[] = [];
    for (;;)
      try {
        const { done, value } = await answers.next();
        if (done === true) break;
        told.push(value.key);
      } catch (error) {
        told.push((error as { code: string }).code);
      }
    expect(told).toEqual(items.map(({ key }) => (key === "k70" ? "INVALID_NAME" : key)));
    // A loop ends at the failure, and everything that was begun is settled by then.
    const begun = items.map((item, index) => ({ ...item, key: index === 70 ? "k70" : `again ${index}` }));
    const seen: string[] = [];
    const looping = (async () => {
      for await (const { key } of box.publishMany(begun)) seen.push(key);
    })();
    expect(await failureOf(looping)).toMatchObject({ code: "INVALID_NAME" });
    expect(seen).toHaveLength(70);
  });

  it("publishMany reports a failed source after the results of tickets already started", async () => {
    const { directory, openPorts } = await makeSite();
    const box = await openOn(await openPorts(), `${directory}/box`);
    function* failing(): Generator<{ files: { a: string } }> {
      yield { files: { a: "1" } };
      throw new Error("no more");
    }
    const answers = box.publishMany(failing());
    expect(await answers.next()).toMatchObject({ done: false });
    expect(await failureOf(answers.next())).toMatchObject({ message: "no more" });
    expect(await answers.next()).toEqual({ done: true, value: undefined });
    expect(await listOf(box.publishMany([]))).toEqual([]);
  });

  it("limits refuse a publish while the box is full, and admit it once a consumer has caught up", async () => {
    const { directory, openPorts } = await makeSite();
    const ports = await openPorts();
    const box = await openOn(ports, `${directory}/box`, { limits: { tickets: 3, bytes: 100_000 } });
    const some = Array.from({ length: 3 }, () => ({ files: { a: "x" } }));
    expect(await listOf(box.publishMany(some))).toHaveLength(3);
    const full = await failureOf(box.publish({ a: "x" }));
    expect(full).toMatchObject({ code: "RESOURCE_BUSY", action: "retry", worthWaiting: true });
    const delivery = await box.take();
    expect(await failureOf(box.publish({ a: "x" }))).toMatchObject({ code: "RESOURCE_BUSY" });
    await delivery?.ack();
    await box.publish({ a: "y".repeat(99_000) });
    await drain(box);
    // By bytes: the payload is known only when it was written, and is removed again.
    await box.publish({ a: "y".repeat(70_000) });
    expect(await failureOf(box.publish({ a: "y".repeat(70_000) }))).toMatchObject({ code: "RESOURCE_BUSY" });
    expect(await failureOf(box.publish({ a: "y".repeat(100_001) }))).toMatchObject({
      code: "TOO_LARGE",
      limit: 100_000,
    });
    expect(await filesIn(ports.disk, `${directory}/box/staging`)).toEqual([]);
    expect(await filesIn(ports.disk, `${directory}/box/data`)).toHaveLength(2);
  });
});

it("limits are exact for the publishes of one process, and cost no count for each when counts are slow", async () => {
  const { directory, openPorts } = await makeRealSite();
  const ports = await openPorts();
  let counts = 0;
  const disk = changedDisk(ports.disk, (whole) => ({
    list: async (path) => {
      if (!path.endsWith("/delayed")) return await whole.list(path);
      counts++;
      // Time passes: the count takes as long as that of many tickets.
      await sleep(60);
      return await whole.list(path);
    },
  }));
  const box = await openOn({ ...ports, disk }, `${directory}/box`, { limits: { tickets: 40 } });
  const publish = async (): Promise<string> =>
    await box.publish({ a: "x" }).then(
      () => "published",
      (error: unknown) => (error as { code: string }).code,
    );
  // One after the other up to near the limit, then many at the same moment.
  const told = [];
  for (let count = 0; count < 35; count++) told.push(await publish());
  told.push(...(await Promise.all(Array.from({ length: 15 }, publish))));
  expect(told.filter((each) => each === "published")).toHaveLength(40);
  expect(told.filter((each) => each === "RESOURCE_BUSY")).toHaveLength(10);
  expect(await listOf(box.list("incoming"))).toHaveLength(40);
  expect(counts).toBeLessThan(6);
});

it("a ticket that contains its payload is created, filled and synced by one open", async () => {
  const { directory, openPorts } = await makeRealSite();
  const ports = await openPorts();
  const calls: string[] = [];
  const note = (call: string, path: string): void => {
    if (path.includes("/staging/")) calls.push(call);
  };
  const disk = changedDisk(ports.disk, (whole) => ({
    createFile: async (path, bytes, options) => {
      note(`create${bytes.length > 0 ? " filled" : ""}${options.sync ? ", sync" : ""}`, path);
      await whole.createFile(path, bytes, options);
    },
    open: async (path, mode, options) => {
      note(`open to ${mode}`, path);
      return await whole.open(path, mode, options);
    },
  }));
  const box = await openOn({ ...ports, disk }, `${directory}/box`);
  await box.publish({ "a.txt": "small" });
  expect(calls.splice(0)).toEqual(["create filled, sync"]);
  // Before the payload: a sweeper finds the payload of a dead publisher by its ticket.
  await box.publish({ "a.txt": large });
  expect(calls).toEqual(["create", "open to write"]);
  expect(await drain(box)).toHaveLength(2);
});

it("publishes of many new keys at once share the syncs of the directory above them, and a known one needs none", async () => {
  const { directory, openPorts } = await makeRealSite();
  const ports = await openPorts();
  const synced: string[] = [];
  const made: string[] = [];
  const disk = changedDisk(ports.disk, (whole) => ({
    syncDirectory: async (path) => {
      synced.push(path.slice(directory.length));
      await whole.syncDirectory(path);
    },
    mkdir: async (path) => {
      made.push(path.slice(directory.length));
      await whole.mkdir(path);
    },
  }));
  const box = await openOn({ ...ports, disk }, `${directory}/box`);
  const keys = Array.from({ length: 48 }, (_, index) => `invoice ${index}`);
  await listOf(box.publishMany(keys.map((key) => ({ files: { "a.txt": "1" }, key }))));
  const shards = new Set(made.filter((path) => path.startsWith("/box/keys/")));
  expect(shards.size).toBeGreaterThan(40);
  expect(synced.filter((path) => path === "/box/keys").length).toBeLessThan(shards.size / 2);
  for (const shard of shards) expect(synced).toContain(shard);
  // The same directories again: each key is synced, and nothing is made or looked for above it.
  await drain(box);
  synced.length = made.length = 0;
  const known = await box.publish({ "a.txt": "2" }, { key: "invoice 7" });
  expect(known.duplicate).toBe(true);
  expect(made).toEqual([]);
  expect(synced.filter((path) => path.startsWith("/box/keys"))).toHaveLength(1);
});

it("keys that are published together share a file, and a duplicate among them affects no other", async () => {
  const { directory, openPorts } = await makeRealSite();
  const ports = await openPorts();
  const box = await openOn(ports, `${directory}/box`);
  const keys = ["a", "b", "c", "d", "b", "e"];
  const published = await listOf(box.publishMany(keys.map((key) => ({ files: { "a.txt": key }, key }))));
  // Of the two under one key either may be first.
  expect(published[4]!.duplicate).toBe(!published[1]!.duplicate);
  expect(published[4]!.id).toBe(published[1]!.id);
  for (const index of [0, 2, 3, 5]) expect(published[index]!.duplicate).toBe(false);
  const { layout } = await openBoxOn(ports, `${directory}/box`);
  const identities = await Promise.all(
    ["a", "b", "c", "d", "e"].map(async (key) => (await ports.disk.stat(layout.key(key))).identity),
  );
  expect(new Set(identities).size).toBeLessThan(5);
  for (const [index, key] of keys.entries())
    expect((await box.publish({ "a.txt": "again" }, { key })).id).toBe(published[index]!.id);
  expect(await drain(box)).toHaveLength(5);
  expect((await box.verify()).problems).toEqual([]);
});

it("a key of a shared file is released when its ticket is removed, and the other keys of the file stay", async () => {
  const { directory, openPorts } = await makeRealSite();
  const ports = await openPorts();
  const box = await openOn(ports, `${directory}/box`);
  const publish = (keys: string[]) => listOf(box.publishMany(keys.map((key) => ({ files: { "a.txt": key }, key }))));
  const keys = ["a", "b", "c", "d", "e", "f"];
  const first = await publish(keys);
  // As a process does that has removed two tickets, and has looked at another one.
  const opened = await openBoxOn(ports, `${directory}/box`);
  await releaseKey(opened, "c", first[2]!.id);
  await releaseKey(opened, "d", "another ticket");
  await releaseKey(opened, "e", first[4]!.id);
  const isFree = (await publish(keys)).map(({ duplicate }) => !duplicate);
  expect(isFree).toEqual([false, false, true, false, true, false]);
});

// It was told IO_ERROR, "it is not there".
it.each([
  ["writes its payload", "/data/", { "a.txt": large }],
  ["syncs its staging", "/staging/", { "a.txt": "1" }],
])(
  "a producer that is taken for dead while it %s is told LOCK_LOST, and publishes in a new session",
  async (_what, at, files) => {
    const { directory, openPorts } = await makeRealSite();
    const ports = await openPorts();
    let isDead = false;
    const disk = changedDisk(ports.disk, (real) => ({
      syncDirectory: async (path) => {
        if (path.includes(at) && !isDead) {
          isDead = true;
          const holders = `${directory}/box/.holdfast/holders`;
          const [record = ""] = (await real.list(holders)).filter((name) => name.endsWith(".json"));
          await real.rename(`${holders}/${record}`, `${holders}/${record.replace(/json$/, "dead")}`);
          const other = await openBoxOn(await openPorts(), `${directory}/box`);
          expect(await other.ground.settle(record.slice(0, 36))).toBe(true);
          await recoverHolder(other, record.slice(0, 36));
        }
        await real.syncDirectory(path);
      },
    }));
    const box = await openOn({ ...ports, disk }, `${directory}/box`);
    expect(await failureOf(box.publish(files, { key: "k" }))).toMatchObject({ code: "LOCK_LOST" });
    expect(isDead).toBe(true);
    expect(await box.publish(files, { key: "k" })).toMatchObject({ duplicate: false });
    expect(await drain(box)).toMatchObject([{ files }]);
  },
);

describe("a ticket of a group", () => {
  const inGroup = { key: "k", group: "customer 7" };

  // It was discarded, and both were told that it was published.
  it("keeps its position when its publish is repeated, even if it cannot be read", async () => {
    const { directory, openPorts } = await makeRealSite();
    const ports = await openPorts();
    let goOn = (): void => undefined;
    const isRepeated = new Promise<void>((resolve) => (goOn = resolve));
    let staged = "";
    const disk = changedDisk(ports.disk, (real) => ({
      rename: async (from, to) => {
        if (to.includes("/lanes/")) {
          staged = from;
          await isRepeated;
        }
        await real.rename(from, to);
      },
    }));
    const ada = await openOn({ ...ports, disk }, `${directory}/box`);
    const bea = await openOn(await openPorts(), `${directory}/box`);
    const publishing = ada.publish({ "a.txt": "1" }, inGroup);
    await until(() => staged !== "");
    const file = await ports.disk.open(staged, "write");
    await file.write(0, Buffer.from("{{"));
    await file.close();
    const repeated = await bea.publish({ "a.txt": "1" }, inGroup);
    expect(repeated.duplicate).toBe(true);
    goOn();
    expect(await publishing).toEqual({ ...repeated, duplicate: false });
    expect((await filesIn(ports.disk, `${directory}/box/lanes`)).join()).toContain(repeated.id);
  });

  // It was acknowledged although it was gone, and its key stayed taken.
  it.each([["a group", inGroup] as const, ["no group", { key: "k" }] as const])(
    "of %s that a person removes from staging/ is not acknowledged, and can be published again",
    async (_what, options) => {
      const { directory, openPorts } = await makeRealSite();
      const ports = await openPorts();
      let isCleared = false;
      const disk = changedDisk(ports.disk, (real) => ({
        rename: async (from, to) => {
          if (from.includes("/staging/") && !isCleared) {
            isCleared = true;
            await real.unlink(from);
          }
          await real.rename(from, to);
        },
      }));
      const box = await openOn({ ...ports, disk }, `${directory}/box`);
      expect(await failureOf(box.publish({ "a.txt": "1" }, options))).toMatchObject({ code: "OUTCOME_UNKNOWN" });
      expect(await box.publish({ "a.txt": "2" }, options)).toMatchObject({ duplicate: false });
      expect(await drain(box)).toMatchObject([{ files: { "a.txt": "2" } }]);
      expect(await box.verify()).toMatchObject({ ok: true, problems: [] });
    },
  );

  it("fails with OUTCOME_UNKNOWN, and requests no more positions, if none can be made durable", async () => {
    const { directory, openPorts } = await makeRealSite();
    const ports = await openPorts();
    let isBroken = false;
    const disk = changedDisk(ports.disk, (real) => ({
      syncDirectory: async (path) => {
        if (isBroken && /\/order\/\d/.test(path)) throw diskError("EIO", "sync", path);
        await real.syncDirectory(path);
      },
    }));
    const box = await openOn({ ...ports, disk }, `${directory}/box`);
    await box.publish({ "a.txt": "1" }, { group: "customer 7" });
    isBroken = true;
    expect(await failureOf(box.publish({ "a.txt": "2" }, inGroup))).toMatchObject({ code: "OUTCOME_UNKNOWN" });
    isBroken = false;
    expect((await box.publish({ "a.txt": "2" }, inGroup)).duplicate).toBe(true);
    expect(await drain(box)).toMatchObject([{ files: { "a.txt": "1" } }, { files: { "a.txt": "2" } }]);
  });
});
