// Calls every traced operation of a store once.
import { decide } from "../../src/events/index.ts";
import type { Store } from "../../src/index.ts";
import type { PathHold } from "../../src/locks/index.ts";

async function drain(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _item of items);
}

async function firstOf<T>(items: AsyncIterable<T>): Promise<T | undefined> {
  for await (const item of items) return item;
  return undefined;
}

type Parts = Pick<Store, "events" | "handoff" | "locks" | "objects">;

export async function useEvents(store: Pick<Parts, "events">): Promise<void> {
  const events = await store.events("main");
  await events.append([
    { type: "Sold", data: 1 },
    { type: "Sold", data: 2 },
  ]);
  await drain(events.read());
  await events.last();
  await events.head();
  await events.bytes();
  await firstOf(events.subscribe());
  const consumer = events.consume("mail", "all", async () => undefined);
  await consumer.waitUntilProcessed(2);
  await consumer.stop();
  await events.consumers();
  await events.addTags([1], ["late"]);
  await decide(events, {}, () => ({ type: "Sold", data: 3 }));
  await events.verify();
  await events.close();
}

export async function useHandoff(store: Pick<Parts, "handoff">): Promise<void> {
  const box = await store.handoff("orders");
  const publish = async (key: string): Promise<string> => (await box.publish({ a: "1" }, { key })).id;
  const id = await publish("one");
  await (await box.take())?.retry({ reason: "later" });
  await (await box.take())?.postpone({ delayMs: 0 });
  await box.consume(async () => "done", { idleMs: 1000, signal: await untilDone(box, id) }).done.catch(() => undefined);
  await publish("two");
  await (await firstOf(box.deliveries()))?.fail("no");
  await publish("three");
  const parked = await box.takeParked(60_000);
  if (parked !== undefined) await (await box.resumeParked(parked.claim)).ack();
  await box.find(id);
  await box.findByKey("one");
  await drain(box.list("archive"));
  await drain(box.content(id, "a"));
  await box.stats();
  await box.replay({ from: "error" });
  await box.discard({ from: "archive" });
  await box.pause();
  await box.resume();
  await box.collect();
  await box.verify();
  await box.adopt("/nowhere", { include: "*" } as never).catch(() => undefined);
  await box.export("/nowhere").catch(() => undefined);
  await box.close();
}

/** Aborts once the ticket is done. */
async function untilDone(box: Awaited<ReturnType<Store["handoff"]>>, id: string): Promise<AbortSignal> {
  const done = new AbortController();
  void box.waitFor(id).then(
    () => done.abort(),
    () => undefined,
  );
  return done.signal;
}

export async function useLocks(store: { locks(): Promise<Awaited<ReturnType<Store["locks"]>>> }): Promise<void> {
  const locks = await store.locks();
  const useHold = async (hold: PathHold | undefined): Promise<void> => {
    await hold?.refresh();
    await hold?.assertHeld();
    await hold?.upgrade("tree");
    await hold?.downgrade("exact");
    await hold?.release();
  };
  await useHold(await locks.tryAcquire("a"));
  await (await locks.acquireAll(["a", "b"])).release();
  await (await locks.acquireMove("a", "b")).release();
  await locks.withLock("a", async () => undefined);
  const token = await (await locks.acquire("a")).transfer();
  await (await locks.receive(token)).release();
  await locks.list();
  await locks.break("a");
  await locks.close();
}

export async function useObjects(store: Pick<Parts, "objects">): Promise<void> {
  const objects = await store.objects();
  await objects.createBucket("photos", { objectLock: true });
  await objects.findBucket("photos");
  await objects.listBuckets();
  const bucket = await objects.bucket("photos");
  await bucket.put("k", "1");
  await (await bucket.get("k"))[Symbol.asyncDispose]();
  await bucket.head("k");
  await bucket.copy({ key: "k" }, "copied");
  await bucket.update("k", () => "2");
  await bucket.list();
  await bucket.listVersions();
  await drain(bucket.objects());
  await drain(bucket.versions());
  await bucket.tags("k");
  await bucket.parts("k");
  await bucket.setTags("k", { a: "b" });
  await bucket.setAcl("k", "private");
  await bucket.setLegalHold("k", false);
  await bucket.setRetention("k", undefined);
  await bucket.setConfig({});
  await bucket.setDocument("cors", undefined);
  const upload = await bucket.createUpload("k");
  await (await bucket.upload("k", upload.id)).copy(2, { key: "k" });
  const { etag } = await upload.put(1, "1");
  await upload.parts();
  await bucket.listUploads();
  await upload.complete([{ partNumber: 1, etag }]);
  await (await bucket.createUpload("k")).abort();
  await bucket.delete("copied");
  await bucket.deleteMany([{ key: "k" }]);
  await objects.collect();
  await objects.verify();
  await objects.deleteBucket("photos").catch(() => undefined);
  await objects.close();
}

export async function useFiles(store: Pick<Store, "files">): Promise<void> {
  const files = await store.files();
  const changes = firstOf(files.changes());
  await files.write("a", "text");
  await changes;
  await files.history();
  await files.read("a");
  await files.readText("a");
  await files.readStamped("a");
  await files.readTextStamped("a");
  await files.stat("a");
  await drain(files.list());
  await files.update("a", () => "other");
  await files.updateText("a", () => "text");
  await files.add("c", "/nowhere").catch(() => undefined);
  await files.settled();
  await files.search("text");
  await files.move("a", "b");
  await files.remove("b");
  await files.session("s");
  await files.rebuildIndex();
  await files.stats();
  await files.verify();
  await files.close();
}
