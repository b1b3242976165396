// One process of the failure tables: it does one piece of work on a tree, and ends or waits at one point of it.
import { once } from "node:events";
import { openNodeFolder, openNodePorts } from "../../../src/ports/node/ports.ts";
import { finishSignal, goOn, report } from "../child-side.ts";
import { openWorked, works, type TreeSite, type WorkName } from "./works.ts";

/** The one argument of the child, as JSON. */
export interface TreeChildOrders extends TreeSite {
  readonly work: WorkName;
  readonly point: string;
  /** Acts when the child reaches the point for this time, counted from 1. */
  readonly time: number;
  /** "wait": the child continues when its parent tells it to. */
  readonly how: "kill" | "wait";
  readonly hasSummaries: boolean;
  readonly leaseMs: number;
}

/** The child has reached its point, its work is done, or its work has failed. */
export type TreeChildReport =
  { readonly kind: "reached" } | { readonly kind: "done" } | { readonly kind: "failed"; readonly error: string };

const orders = JSON.parse(process.argv[2] ?? "") as TreeChildOrders;
const finish = finishSignal();
const tell = (what: TreeChildReport): void => report(what);
let times = 0;

async function at(point: string): Promise<void> {
  if (point !== orders.point || ++times !== orders.time) return;
  tell({ kind: "reached" });
  if (orders.how === "kill") {
    process.kill(process.pid, "SIGKILL");
    // A signal that a process sends to itself may arrive a moment later.
    await new Promise(() => undefined);
  }
  await goOn();
}

const { root, leaseMs, hasSummaries, work } = orders;
const ports = await openNodePorts(root);
const files = await openWorked(ports, orders, {
  leaseMs,
  work: false,
  hasSummaries,
  at,
  openFolder: openNodeFolder,
});
try {
  await works[work](files, orders);
  // The operation makes its ticket only after it has answered.
  if (orders.how === "kill") await files.close();
  tell({ kind: "done" });
} catch (error) {
  tell({ kind: "failed", error: String(error) });
}
// The parent decides when to close: meanwhile others see what an open process still holds.
if (orders.how === "wait" && !finish.aborted) await once(finish, "abort");
await files.close();
// Exits explicitly: the channel to the parent keeps the event loop alive.
process.exit(0);
