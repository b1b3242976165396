// One process of a hand-off crew: a producer publishes its documents, a worker handles deliveries. Each crashes as its
// orders say.
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { isHoldfastError } from "../../../src/errors.ts";
import { openBox } from "../../../src/handoff/box/open-box.ts";
import { BoxLayout } from "../../../src/handoff/box/layout.ts";
import { BoxHandoff } from "../../../src/handoff/handoff.ts";
import type { Delivery } from "../../../src/handoff/model/delivery.ts";
import { openNodePorts } from "../../../src/ports/node/ports.ts";
import { finishSignal, report } from "../child-side.ts";
import { Crash } from "./crash.ts";
import { publicationsOf, textOf, type Document } from "./documents.ts";
import type { HandoffOrders, HandoffReport, Result } from "./orders.ts";
import { boxName, nextBoxName } from "./steps.ts";

class NotYet extends Error {}

/** The number of deliveries that this process handles now. */
let inProgress = 0;

const orders = JSON.parse(process.argv[2] ?? "") as HandoffOrders;
const finish = finishSignal();
const crash = new Crash(orders);
const layout = new BoxLayout(`${orders.directory}/${boxName}`);
const box = await open(boxName);
await (orders.role === "producer" ? produce() : work());
await box.close();
// Exits explicitly: the channel to the parent keeps the event loop alive.
process.exit(0);

async function open(name: string): Promise<BoxHandoff> {
  const ports = await openNodePorts(orders.directory);
  const { leaseMs, directory } = orders;
  // A kill removes nothing from the page cache. Some processes sync and some do not, for more races a second.
  const isSynced = process.pid % 2 === 0;
  for (;;)
    try {
      const crashing = { ...ports, disk: crash.disk(ports.disk) };
      return new BoxHandoff(await openBox(crashing, `${directory}/${name}`, { leaseMs, isSynced }), { leaseMs });
    } catch (error) {
      // The process slept while it opened, and its prepared files were swept: it opens again.
      if (!isHoldfastError(error, "LOCK_LOST")) throw error;
    }
}

async function produce(): Promise<void> {
  const documents = publicationsOf(orders.plan, orders.number);
  const progress = `${orders.directory}/${orders.name}`;
  let next = existsSync(progress) ? Number(readFileSync(progress, "utf8")) : 0;
  while (next < documents.length && !finish.aborted) {
    const document = documents[next] as Document;
    const { key, group } = document;
    try {
      const { duplicate } = await box.publish({ "document.txt": textOf(document) }, { key, group, meta: document });
      tell({ kind: "published", key, duplicate });
    } catch (error) {
      // The process slept, or the outcome is unknown. The key makes it safe to publish again.
      if (!isHoldfastError(error, "LOCK_LOST", "OUTCOME_UNKNOWN")) throw error;
      continue;
    }
    writeFileSync(`${progress}.new`, String(++next));
    renameSync(`${progress}.new`, progress);
  }
  if (!finish.aborted) tell({ kind: "finished" });
  while (!finish.aborted) await sleep(5);
}

/** Alternates between the two ways that a program has: its own loop, and a handler. */
async function work(): Promise<void> {
  const next = await open(nextBoxName);
  const { attempts } = orders;
  if (orders.number % 2 === 0) {
    const consumer = box.consume((delivery) => crash.sparing(delivery.attempt, () => handle(delivery, next)), {
      concurrency: 2,
      attempts,
      backoffMs: { min: 5, max: 20 },
      signal: finish,
    });
    await consumer.done;
  } else
    while (!finish.aborted) {
      const delivery = await box.take({ waitMs: 20 });
      if (delivery !== undefined) await crash.sparing(delivery.attempt, () => settle(delivery, next));
    }
  await next.close();
}

async function settle(delivery: Delivery, next: BoxHandoff): Promise<void> {
  try {
    const result = await handle(delivery, next);
    await delivery.ack(result);
    tell({ kind: "committed", key: delivery.key, result });
  } catch (error) {
    // The ticket is back in the queue or will be. Another worker repeats the work, or finds it done.
    if (isHoldfastError(error, "CLAIM_LOST", "LOCK_LOST", "OUTCOME_UNKNOWN")) return;
    if (!(error instanceof NotYet)) throw error;
    await delivery.retry({ delayMs: 10, reason: error.message }).catch((failure: unknown) => {
      if (!isHoldfastError(failure, "CLAIM_LOST", "LOCK_LOST", "OUTCOME_UNKNOWN")) throw failure;
    });
  }
}

async function handle(delivery: Delivery, next: BoxHandoff): Promise<Result> {
  inProgress++;
  try {
    return await handleDocument(delivery, next);
  } finally {
    inProgress--;
  }
}

async function handleDocument(delivery: Delivery, next: BoxHandoff): Promise<Result> {
  const { key, attempt } = delivery;
  const document = delivery.meta as Document;
  if ((await delivery.text("document.txt")) !== textOf(document)) wrong(`${key} was delivered with other bytes`);
  // The check runs while the claim is held: a process that lost it sees what others did later.
  const { before } = document;
  const isBeforeSettled = before === undefined || existsSync(layout.ledger(before, 0)) || isDeadLetter(before);
  if (!isBeforeSettled && !delivery.signal.aborted) wrong(`${key} was delivered before ${before} was settled`);
  if (document.isPoison) {
    // Waits until it is alone: a ticket handled beside it would be lost each time too, and would be claimed again
    // together with it.
    while (inProgress > 1) await sleep(1);
    tell({ kind: "poisoned", key });
    process.kill(process.pid, "SIGKILL");
    await new Promise(() => undefined);
  }
  if (document.isRetried && attempt === 1) throw new NotYet(`${key} is not to be done at once`);
  for (const name of document.outputs) await delivery.output(name, `${name} of ${key}`);
  if (document.isSent) await delivery.send(next, { "sent.txt": key }, { meta: key });
  return { by: orders.name, pid: process.pid, attempt };
}

function isDeadLetter(key: string): boolean {
  const error = `${layout.directory}/error`;
  if (!existsSync(error)) return false;
  return readdirSync(error).some((day) =>
    readdirSync(`${error}/${day}`).some((name) =>
      readFileSync(`${error}/${day}/${name}`, "utf8").includes(`"key":${JSON.stringify(key)},`),
    ),
  );
}

function wrong(what: string): void {
  tell({ kind: "wrong", what: `${orders.name}: ${what}` });
}

function tell(what: HandoffReport): void {
  report(what);
}
