// A store with something to count in every part.
import parsePrometheus from "parse-prometheus-text-format";
import { openStore, type Store } from "../../src/index.ts";

/** While it is open, a lock is held and another caller waits for it. */
export async function makeBusyStore(directory: string): Promise<AsyncDisposable> {
  const store: Store = await openStore(directory);
  const events = await store.events("main");
  const consumer = events.consume("mail", { types: ["Never"] }, async () => undefined);
  await consumer.position();
  await consumer.stop();
  await events.append(["A", "B", "C"].map((type) => ({ type, data: 1 })));
  const box = await store.handoff('a "box"\\of\nmine');
  await box.publish({ a: "1" });
  await (await box.take())?.fail("torn");
  await box.publish({ a: "1" });
  await box.pause();
  const bucket = await (await store.objects()).createBucket("photos");
  await bucket.put("one", "1");
  await bucket.put("two", "1234");
  const files = await store.files({ work: false });
  await files.write("a", "text");
  const locks = await store.locks();
  const hold = await locks.acquire("b");
  const stop = new AbortController();
  const waiting = locks.acquire("b", { timeoutMs: Infinity, signal: stop.signal }).catch(() => undefined);
  // A request of this process waits in its own queue; that of another object is in the table.
  const other = await openStore(directory);
  const there = (await other.locks()).acquire("b", { timeoutMs: Infinity, signal: stop.signal }).catch(() => undefined);
  while ((await locks.list())[0]?.waiting.length !== 1) await new Promise((resolve) => setTimeout(resolve, 5));
  return {
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await Promise.all([waiting, there]);
      await hold.release();
      await other.close();
      await store.close();
    },
  };
}

/** Returns the value of each series, by name and labels as they are written. Throws if two have the same name. */
export function valuesOf(text: string): Record<string, number> {
  const values: Record<string, number> = {};
  for (const { name, metrics } of parsePrometheus(text))
    for (const { labels = {}, value } of metrics) {
      const shown = Object.entries(labels).map(([label, each]) => `${label}=${JSON.stringify(each)}`);
      const series = shown.length === 0 ? name : `${name}{${shown.join(",")}}`;
      if (series in values) throw new Error(`${series} is there twice.`);
      values[series] = Number(value);
    }
  return values;
}
