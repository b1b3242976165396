// One process of the failure tables: it does one work on a tree, and ends or waits at one point of it.
import { once } from "node:events";
import { openNodeFolder, openNodePorts } from "../../../ports/node/ports.ts";
import { finishSignal, goOn, report } from "../child-side.ts";
import { openWorked, works, type TreeSite, type WorkName } from "./works.ts";

/** The one argument of the child, as JSON. */
export interface TreeChildOrders extends TreeSite {
  readonly work: WorkName;
  readonly point: string;
  /** At which time that it comes there, from 1. */
  readonly time: number;
  /** "wait": it goes on when it is told to. */
  readonly how: "kill" | "wait";
  readonly hasSummaries: boolean;
  readonly leaseMs: number;
}

/** It has come to its point; its work is done; or its work has failed. */
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
    // A signal to oneself may arrive a moment later.
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
  // What the ticket of an operation is made with comes after its answer.
  if (orders.how === "kill") await files.close();
  tell({ kind: "done" });
} catch (error) {
  tell({ kind: "failed", error: String(error) });
}
// The parent says when: what an open process still holds is seen by others.
if (orders.how === "wait" && !finish.aborted) await once(finish, "abort");
await files.close();
// Not left to the event loop: the channel to the parent keeps it turning.
process.exit(0);
