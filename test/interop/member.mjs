// A Node process of a mixed crowd: what member.py does, with the built package.
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { openHandoff } from "../../dist/handoff/index.js";
import { Semaphore } from "../../dist/locks/index.js";

const orders = JSON.parse(process.argv[2]);
const { name, box, keys, lock, journal, rounds } = orders;
const note = (line) => appendFileSync(journal, `${line}\n`);

const tasks = {
  hold: async () => {
    const semaphore = new Semaphore(lock, { retryMs: 5, fsync: false });
    for (let round = 0; round < rounds; round++)
      await semaphore.withLock(async () => {
        note(`begin ${name}`);
        // Time passes, in which a second holder would be noticed.
        await sleep(Math.random() * 2);
        note(`end ${name}`);
      });
  },
  produce: async () => {
    const handoff = await openHandoff(box, { leaseMs: 2_000 });
    for (const key of keys) {
      await handoff.publish({ "key.txt": key, "more.txt": "x".repeat(Math.random() < 0.2 ? 100_000 : 10) }, { key });
      console.log(key);
    }
    await handoff.close();
  },
  consume: async () => {
    const handoff = await openHandoff(box, { leaseMs: 2_000 });
    const work = async (delivery) => {
      note(`${delivery.key} ${name}`);
      await sleep(Math.random() * 10);
      if (Math.random() < 0.1) await delivery.retry({ delayMs: 0, reason: "later" });
      else await delivery.ack(name);
    };
    handoff.consume(work, { attempts: 1000 });
  },
};
await tasks[orders.task]();
