// A process that works on all parts of one store, until it is killed or told to finish.
import { setTimeout as sleep } from "node:timers/promises";
import { isHoldfastError } from "../../src/errors.ts";
import { openStore, type Store } from "../../src/store.ts";
import { Chance } from "../processes/chance.ts";
import { finishSignal, report } from "../processes/child-side.ts";

const [directory = "", name = ""] = process.argv.slice(2);
/** The longest pause between two operations. The console is what is measured, so the disk should not be busy. */
const pauseMsMax = 60;
const reportEvery = 20;
const chance = new Chance(process.pid);
const finish = finishSignal();
const numbered = (what: string, count: number): string => `${what}-${Math.floor(chance.between(0, count))}`;

await work();
// Exits explicitly: the channel to the parent keeps the event loop alive.
process.exit(0);

async function work(): Promise<void> {
  let operations = 0;
  while (!finish.aborted) {
    const store = await openStore(directory, { name, leaseMs: 2000 });
    try {
      const operate = await prepare(store);
      while (!finish.aborted) {
        await operate();
        if (++operations % reportEvery === 0) report({ operations: reportEvery });
        await sleep(chance.between(0, pauseMsMax));
      }
    } catch (error) {
      // A process that was stopped past its lease has lost its session: it opens the store again.
      if (!isHoldfastError(error)) throw error;
    } finally {
      await store.close();
    }
  }
}

/** Returns a function that makes one random operation. */
async function prepare(store: Store): Promise<() => Promise<unknown>> {
  const log = await store.events("sales");
  const box = await store.handoff("labels");
  const objects = await store.objects();
  const bucket = (await objects.findBucket("photos")) ?? (await objects.createBucket("photos"));
  const tree = await store.files();
  const locks = await store.locks();
  const operations: readonly (() => Promise<unknown>)[] = [
    () => log.append({ type: "Sold", data: { by: name }, tags: [`till:${name}`] }),
    () => box.publish({ "label.txt": "Label" }, { group: numbered("customer", 20) }),
    async () => {
      const delivery = await box.take();
      await (chance.happens(0.1) ? delivery?.fail("no paper") : delivery?.ack({ by: name }));
    },
    () => bucket.put(numbered("photo", 200), "x".repeat(200)),
    () => tree.write(`notes/${numbered("note", 100)}.md`, `written by ${name}`),
    () =>
      locks.withLock(numbered("shelf", 5), async () => await sleep(chance.between(0, 50)), {
        timeoutMs: 10_000,
      }),
  ];
  return async () => {
    try {
      await chance.pick(operations)?.();
    } catch (error) {
      // Somebody else was first: a bucket, a ticket, a lock. Whatever ends the session is thrown by the next operation.
      if (!isHoldfastError(error) || ["reopen", "fix-data", "report"].includes(error.action)) throw error;
    }
  };
}
