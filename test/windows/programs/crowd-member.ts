// One process of a crowd: it uses every part of one store until it is killed or told to finish, and keeps a journal of
// what was acknowledged. Arguments: the orders as JSON.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { isHoldfastError, openStore, type Store } from "../../../src/index.ts";
import { bucketName, insideFile, linesFile, noteFiles, type CrowdEntry, type CrowdOrders } from "./orders.ts";

const [, , ordersText = ""] = process.argv;
const orders = JSON.parse(ordersText) as CrowdOrders;
const { store: folder, shared, journal, finish, leaseMs, turn, restMs } = orders;
/** They call each part at the same time. */
const callers = [1, 2, 3, 4];
/** Other starts of the same member have other process ids, but perhaps not on another system. */
const name = `${orders.name}-${process.pid}-${Date.now()}`;

try {
  for (let count = 1; !existsSync(finish);) count = await liveFrom(count);
  tell({ kind: "finished" });
} catch (error) {
  const { code, message, stack } = error as Error & { code?: string };
  tell({ kind: "failed", code: code ?? "", message, stack: stack ?? "" });
  process.exitCode = 1;
}
process.exit();

/** Works until it must finish, or until its session is over because it was too slow. Returns where to continue. */
async function liveFrom(from: number): Promise<number> {
  let count = from;
  const store = await openStore(folder, { name, leaseMs, lockTimeoutMs: 60_000 });
  try {
    const inOrder = await openParts(store);
    const first = turn % inOrder.length;
    const parts = [...inOrder.slice(first), ...inOrder.slice(0, first)];
    tell({ kind: "opened" });
    for (; !existsSync(finish); count++) {
      for (const part of parts) await Promise.all(callers.map((caller) => part(`${name}-${count}-${caller}`)));
      tell({ kind: "round" });
      // Time passes: a slower kind of process gets its turn.
      if (restMs > 0) await sleep(restMs);
    }
  } catch (error) {
    if (!isHoldfastError(error, "LOCK_LOST", "CLAIM_LOST")) throw error;
    tell({ kind: "lost", message: error.message });
  } finally {
    await store.close();
  }
  return count + 1;
}

/** Each function does one operation of a part, which it names after its argument. */
async function openParts(store: Store): Promise<((id: string) => Promise<void>)[]> {
  const locks = await store.locks({ timeoutMs: 60_000 });
  const log = await store.events("log");
  const box = await store.handoff("box");
  const objects = await store.objects();
  const bucket = (await objects.findBucket(bucketName)) ?? (await makeBucket());
  const files = await store.files({ timeoutMs: 60_000 });
  return [
    async (id) => {
      const fence = await locks.withLock("lines", async (hold) => {
        writeFileSync(`${shared}/${insideFile}`, id);
        appendFileSync(`${shared}/${linesFile}`, `${id} ${hold.fence}\n`);
        if (readFileSync(`${shared}/${insideFile}`, "utf8") !== id) throw new Error(`${id} was not alone inside`);
        return hold.fence;
      });
      tell({ kind: "done", part: "locks", id, number: fence });
    },
    async (id) => {
      await log.append({ type: "Worked", data: { id } });
      tell({ kind: "done", part: "events", id });
    },
    async (id) => {
      await box.publish({ "ticket.txt": id }, { key: id });
      tell({ kind: "done", part: "publish", id });
      const delivery = await box.take();
      if (delivery === undefined) return;
      if ((await delivery.text("ticket.txt")) !== delivery.key) throw new Error(`${delivery.key} has other bytes`);
      await delivery.ack();
      tell({ kind: "done", part: "handoff", id: delivery.key });
    },
    async (id) => {
      let number = 0;
      await bucket.update("counter", async (current) => {
        number = Number((await current?.text()) ?? 0) + 1;
        return String(number);
      });
      tell({ kind: "done", part: "objects", id, number });
    },
    async (id) => {
      const file = noteFiles[Number(id.at(-1)) % noteFiles.length] ?? "";
      await files.updateText(file, (text) => `${text ?? ""}${id}\n`);
      tell({ kind: "done", part: "files", id });
    },
  ];

  async function makeBucket(): ReturnType<typeof objects.createBucket> {
    try {
      return await objects.createBucket(bucketName, { versioning: "enabled" });
    } catch (error) {
      // Another member was faster.
      if (!isHoldfastError(error, "BUCKET_EXISTS")) throw error;
      return await objects.bucket(bucketName);
    }
  }
}

/** The line reaches the system before this returns, so a kill takes nothing of it back. */
function tell(entry: CrowdEntry): void {
  appendFileSync(journal, `${JSON.stringify(entry)}\n`);
}
