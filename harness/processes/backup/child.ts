// One process that writes to all parts of a store and reports what was acknowledged. Some of these also work on tickets.
import { openStore } from "../../../src/store.ts";
import { Chance } from "../chance.ts";
import { finishSignal, report } from "../child-side.ts";

export interface BackupChildOrders {
  readonly directory: string;
  readonly name: string;
  readonly seed: number;
}

/** An acknowledged write. `what` names it in its part. */
export interface Acknowledged {
  readonly part: "events" | "ticket" | "unkeyed" | "object" | "file" | "moved" | "part";
  readonly what: string;
}

const { directory, name, seed } = JSON.parse(process.argv[2] ?? "") as BackupChildOrders;
const finish = finishSignal();
const chance = new Chance(seed ^ process.pid);
const unique = `${name}.${process.pid}`;
const acknowledge = (part: Acknowledged["part"], what: string): void => report({ part, what } satisfies Acknowledged);

const store = await openStore(directory, { lockTimeoutMs: 60_000 });
const events = await store.events();
const [box, sent] = [await store.handoff("in"), await store.handoff("out")];
const objects = await store.objects({ inlineMax: 64 });
const bucket = await objects.bucket("photos");
const files = await store.files({ work: false, timeoutMs: 60_000 });

/** Returns tickets again and again, and finishes some: an event first, and a ticket for the other box with the commit. */
async function work(): Promise<void> {
  const delivery = await box.take();
  if (delivery === undefined) return;
  if (chance.happens(0.6)) return await delivery[Symbol.asyncDispose]();
  await events.append({ type: "Handled", data: { id: delivery.id }, tags: [`ticket:${delivery.id}`] });
  await delivery.send(sent, { "note.txt": delivery.id }, { key: `sent ${delivery.id}` });
  await delivery.ack();
}

const steps: (readonly [number, (what: string) => Promise<void>])[] = [
  [
    3,
    async (what) => {
      await events.append({ type: "Written", data: { what }, tags: [`what:${what}`] });
      acknowledge("events", what);
    },
  ],
  [
    2,
    async (what) => {
      await box.publish({ "a.txt": what }, { key: what });
      acknowledge("ticket", what);
    },
  ],
  [
    2,
    async (what) => {
      const { id } = await box.publish({ "a.txt": what }, chance.happens(0.3) ? { group: "till" } : {});
      acknowledge("unkeyed", id);
    },
  ],
  [
    2,
    async (what) => {
      const key = `keys/${what.length % 3}/${what}`;
      await bucket.put(key, what.repeat(20));
      if (chance.happens(0.3)) await bucket.put(key, what.repeat(20));
      acknowledge("object", key);
    },
  ],
  // One key with many versions, which many processes put.
  [1, async (what) => void (await bucket.put("hot", what.repeat(20)))],
  [1, async () => void (await bucket.delete("hot"))],
  [
    2,
    async (what) => {
      await files.write(`work/${what}.txt`, what);
      acknowledge("file", `work/${what}.txt`);
    },
  ],
  [
    2,
    async (what) => {
      await files.write(`a/${what}.txt`, what);
      await files.move(`a/${what}.txt`, `z/${what}.txt`);
      acknowledge("moved", `z/${what}.txt`);
      await files.move(`z/${what}.txt`, `a/${what}.txt`);
    },
  ],
  [5, work],
];
const total = steps.reduce((sum, [weight]) => sum + weight, 0);
for (let count = 0; !finish.aborted; count++) {
  let at = chance.between(0, total);
  const step = steps.find(([weight]) => (at -= weight) < 0)?.[1];
  await step?.(`${unique}.${count}`).catch((error: unknown) => {
    // The machine is busy and leases are short: this process was taken for dead, or waited for too long. Nothing was
    // acknowledged then.
    const { code } = error as { readonly code?: string };
    if (!["CLAIM_LOST", "LOCK_LOST", "LOCK_TIMEOUT", "RESOURCE_BUSY", "OUTCOME_UNKNOWN"].includes(code ?? ""))
      throw error;
  });
}
await store.close();
process.exit(0);
