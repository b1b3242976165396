// The parts that grow, and the calls that users make most: how each is filled to a size, and what is measured there.
import { mkdirSync, writeFileSync } from "node:fs";
import { openEvents } from "../../dist/events/index.js";
import { openFiles } from "../../dist/files/index.js";
import { openHandoff } from "../../dist/handoff/index.js";
import { openPathLocks } from "../../dist/locks/index.js";
import { openObjects } from "../../dist/objects/index.js";
import { newSale } from "../events/contestants.mjs";
import { endWorkers, startWorkers } from "../processes.mjs";
import { sized } from "../settings.mjs";

const durability = "none";
const body = Buffer.alloc(1024, "x");
const atOnce = 64;
const sizesTo = (last) => [10, 100, 1_000, 10_000, 100_000, 1_000_000].filter((size) => size <= sized(last, 100));

/** By its name: `unit` is what there is more and more of. */
export const growingParts = {
  locks: { unit: "other locks", sizes: sizesTo(1_000), open: openLocks },
  events: { unit: "events", sizes: sizesTo(1_000_000), open: openLog },
  handoff: { unit: "waiting tickets", sizes: sizesTo(10_000), open: openBox },
  objects: { unit: "keys", sizes: sizesTo(10_000), open: openBucket },
  files: { unit: "files", sizes: sizesTo(100_000), open: openTree },
};

/** Another process holds the others. */
async function openLocks(directory) {
  const [worker] = startWorkers(new URL("../locks/worker.mjs", import.meta.url), 1);
  const locks = await openPathLocks(directory);
  let held = 0;
  return {
    fill: async (size) => {
      await worker.ask("holdMany", { directory, from: held, count: size });
      held = size;
    },
    calls: { "acquire and release": async () => (await locks.acquire("own")).release() },
    close: async () => {
      await locks.close();
      await endWorkers([worker]);
    },
  };
}

async function openLog(directory) {
  const events = await openEvents(directory, { durability });
  let n = 1e9;
  return {
    fill: async (size) => {
      for (let head = await events.head(); head < size; head = await events.head())
        await events.append(Array.from({ length: Math.min(1_000, size - head) }, (_, i) => newSale(head + i)));
    },
    calls: {
      "append, condition on a new tag": () => {
        const sale = newSale(++n);
        return events.append(sale, { condition: { failIfEventsMatch: { tags: [sale.tags[0]] } } });
      },
      "last event of a rare tag": () => events.last({ tags: ["sale:7"] }),
    },
    close: () => events.close(),
  };
}

async function openBox(directory) {
  const box = await openHandoff(directory, { durability });
  let waiting = 0;
  let n = 0;
  return {
    fill: async (size) => {
      const items = Array.from({ length: size - waiting }, () => ({ files: { "a.json": "{}" } }));
      for await (const { id } of box.publishMany(items)) if (id !== undefined) waiting++;
    },
    calls: {
      "publish with a key, take, ack": async () => {
        await box.publish({ "a.json": "{}" }, { key: `key-${++n}` });
        await (await box.take()).ack();
      },
      "find by key": () => box.findByKey("key-1"),
    },
    close: () => box.close(),
  };
}

async function openBucket(directory) {
  const objects = await openObjects(directory, { durability });
  const bucket = await objects.createBucket("bench", { versioning: "enabled" });
  let keys = 0;
  let n = 0;
  const keyOf = (key) => `folder-${key % 100}/${key}`;
  return {
    fill: async (size) => {
      while (keys < size)
        await Promise.all(Array.from({ length: Math.min(atOnce, size - keys) }, () => bucket.put(keyOf(keys++), body)));
    },
    calls: {
      "put a new key": () => bucket.put(`new/${++n}`, body),
      "put an existing key": () => bucket.put(keyOf(1), body),
      get: async () => {
        const object = await bucket.get(keyOf(2));
        await object.bytes();
        await object[Symbol.asyncDispose]();
      },
    },
    close: () => objects.close(),
  };
}

/** The files around it are written by hand: any program may do that. */
async function openTree(directory) {
  const files = await openFiles(directory, { index: false });
  await files.write("own/a", body);
  let made = 0;
  let at = "a";
  return {
    fill: (size) => {
      for (; made < size; made++) {
        const folder = `${directory}/around/${Math.floor(made / 50)}`;
        if (made % 50 === 0) mkdirSync(folder, { recursive: true });
        writeFileSync(`${folder}/${made}`, "x");
      }
    },
    calls: {
      write: () => files.write("own/written", body),
      move: async () => {
        const to = at === "a" ? "b" : "a";
        await files.move(`own/${at}`, `own/${to}`);
        at = to;
      },
    },
    close: () => files.close(),
  };
}
