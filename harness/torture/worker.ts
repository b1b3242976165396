// One process of a torture. It works until it is killed or told to finish; after the run, an auditor reads the state.
import { setTimeout as sleep } from "node:timers/promises";
import { Ground } from "../../src/durable/liveness/ground.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { Chance } from "../processes/chance.ts";
import { finishSignal, report } from "../processes/child-side.ts";
import { dawdlingDisk } from "../processes/dawdling-disk.ts";
import { getTortureTask } from "./parts.ts";
import type { WorkerOrders, WorkerReport } from "./report.ts";
import type { TortureTools } from "./task.ts";

const orders = JSON.parse(process.argv[2] ?? "") as WorkerOrders;
const task = getTortureTask(orders.part);
const ports = await openNodePorts(orders.directory);
const finish = finishSignal();
await (orders.role === "auditor" ? audit() : work());
// Exits explicitly: the channel to the parent keeps the event loop alive.
process.exit(0);

async function work(): Promise<void> {
  // Each start has another seed. Otherwise each would be delayed at the same places.
  const chance = new Chance(orders.seed ^ process.pid);
  const probability = task.dawdling ?? 0.03;
  const slow: Ports = { ...ports, disk: dawdlingDisk(ports.disk, { chance, probability, msMax: 300 }) };
  const sync = chance.happens(0.25);
  while (!finish.aborted) {
    const ground = await openGround(slow);
    const tools = await toolsOf(ground, sync);
    try {
      await task.work(tools, finish);
    } catch (error) {
      // Once the session has ended, failures are expected: the temp files may be gone. Any other failure is a finding.
      if (!tools.life.isOver) throw error;
      tell({ kind: "lifeOver", why: String(error) });
    } finally {
      await ground.close();
    }
  }
}

async function audit(): Promise<void> {
  for (;;) {
    const ground = await openGround(ports);
    const tools = await toolsOf(ground, true);
    try {
      return tell(await findIn(ground, tools));
    } catch (error) {
      // The auditor's session can end, too, on a machine that is full. It then looks again with a new one.
      if (!tools.life.isOver) throw error;
    } finally {
      await ground.close();
    }
  }
}

async function findIn(ground: Ground, tools: TortureTools): Promise<WorkerReport> {
  const found = await task.find(tools);
  let unswept = await sweep(ground);
  // A killed process is proven dead at once, and one that was told to finish has left nothing. All others need a lease.
  for (const until = performance.now() + 3 * orders.leaseMs; unswept.length > 0 && performance.now() < until;) {
    await sleep(orders.leaseMs / 5);
    unswept = await sweep(ground);
  }
  return { kind: "found", ...found, unswept };
}

/**
 * Returns the remaining temp directories whose holders have a record. A process killed while it joined has no record,
 * and does not count.
 */
async function sweep(ground: Ground): Promise<string[]> {
  await ground.sweep();
  const { disk } = ground.ports;
  const own = (await ground.session()).holder.id;
  const records = new Set((await disk.list(ground.layout.holders)).map((name) => name.replace(/\.(json|dead)$/, "")));
  return (await disk.list(ground.layout.temps)).filter((id) => id !== own && records.has(id));
}

function openGround(on: Ports): Promise<Ground> {
  return Ground.open(on, `${orders.directory}/ground`, { leaseMs: orders.leaseMs, name: orders.name });
}

async function toolsOf(ground: Ground, sync: boolean): Promise<TortureTools> {
  return { ...orders, sync, ground, life: await ground.session(), report: tell };
}

function tell(what: WorkerReport): void {
  report(what);
}
