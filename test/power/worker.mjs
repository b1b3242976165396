// A process of the power test: it works in one role until the disk fails or it is killed, and tells
// each thing that it was promised on its stdout.
import { text } from "node:stream/consumers";
import { openEvents } from "../../dist/events/index.js";
import { openFiles } from "../../dist/files/index.js";
import { openHandoff } from "../../dist/handoff/index.js";
import { openObjects } from "../../dist/objects/index.js";
import { openPathLocks } from "../../dist/locks/index.js";
import { audit } from "./audit.mjs";

const role = process.argv[2];
const task = JSON.parse(await text(process.stdin));
const { directory, sabotage } = task;
const logs = { local: `${directory}/local`, share: `${directory}/share` };
const places = { box: `${directory}/box`, objects: `${directory}/objects`, files: `${directory}/files` };

const tell = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

/** Segments of 8 MiB are full soon. */
const bulk = "x".repeat(1 << 20);

async function append(path, { durability, data }) {
  const events = await openEvents(path, { durability });
  for (let number = 1; ; number++) {
    const id = `${role}-${number}`;
    const { last } = await events.append({ type: role, data: data ?? number, id });
    tell({ position: last, id });
  }
}

async function follow(path) {
  const events = await openEvents(path);
  for await (const { position, id } of events.subscribe()) tell({ position, id });
}

const roles = {
  make: async () => {
    for (const mode of ["local", "share"]) {
      const events = await openEvents(logs[mode], { mode });
      await events.append({ type: "made", data: null, id: "made" });
      await events.close();
    }
    const objects = await openObjects(places.objects);
    await objects.createBucket("photos", { versioning: "enabled" });
    await objects.close();
    tell({ made: true });
  },
  till: () => append(logs.local, { durability: sabotage ? "none" : "fsync" }),
  import: () => append(logs.local, { durability: "none", data: bulk }),
  reader: () => follow(logs.local),
  "share-till": () => append(logs.share, {}),
  "share-reader": () => follow(logs.share),
  consumer: async () => {
    const events = await openEvents(logs.local);
    await events.consume("mail", "all", async ([{ position }]) => tell({ position })).done;
  },
  locker: async () => {
    const locks = await openPathLocks(directory);
    for (;;) {
      const hold = await locks.acquire("stock", { timeoutMs: 10_000 });
      tell({ fence: hold.fence });
      await hold.release();
    }
  },
  publisher: async () => {
    const box = await openHandoff(places.box);
    for (let number = 1; ; number++) tell({ ticket: (await box.publish({ "order.txt": String(number) })).id });
  },
  putter: async () => {
    const objects = await openObjects(places.objects);
    const bucket = await objects.bucket("photos");
    for (let number = 1; ; number++)
      tell({ version: (await bucket.put(`key-${number % 3}`, String(number))).versionId });
  },
  filer: async () => {
    const files = await openFiles(places.files, { index: false });
    for (let number = 1; ; number++) {
      await files.write("draft", String(number));
      tell({ written: number });
      await files.move("draft", `done-${number}`);
      tell({ moved: number });
    }
  },
  audit: async () => tell(await audit({ logs, places }, task)),
};

try {
  await roles[role]();
} catch (error) {
  // What the cut does to those who are at work.
  if (
    !["IO_ERROR", "OUTCOME_UNKNOWN", "LOCK_LOST", "CLOSED", "CORRUPT", "NO_PERMISSION", "RESOURCE_BUSY"].includes(
      error.code,
    )
  )
    throw error;
}
process.exit(0);
