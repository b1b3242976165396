// How a child of a hand-off crew comes to its end: it takes an order, and at the named point it
// kills itself, or has itself stopped, in the middle of the step.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { Disk } from "../../../ports/disk.ts";
import { report } from "../child-side.ts";
import { crashPointDisk, type DiskChange } from "../crash-point-disk.ts";
import { findTicketName } from "../../../handoff/model/ticket-name.ts";
import type { CrashOrder, HandoffOrders, HandoffReport } from "./orders.ts";
import { stepOf } from "./steps.ts";

/** After so many points in vain an order is obeyed at the next one. */
const pointsInVainMax = 40;
/** Only tickets at their last attempt come here: a crash takes no attempt from them. */
const lastSteps = ["before failing for good", "after failing for good"];
/** A ticket that was hit so often is spared: only one that kills by itself may come to its last attempt. */
const claimsMax = 3;

export class Crash {
  readonly #orders: HandoffOrders;
  #order: CrashOrder | undefined;
  #times = 0;
  #points = 0;
  /** Points at which this or another child has had a crash. */
  readonly #known = new Set<string>();
  /** Deliveries in hand that are spared. */
  #spared = 0;

  constructor(orders: HandoffOrders) {
    this.#orders = orders;
    this.#order = takeOrder(orders);
  }

  disk(disk: Disk): Disk {
    return crashPointDisk(disk, stepOf, (point, change) => this.#pass(point, change));
  }

  /** Of a delivery in hand: no crash until it is settled, if its ticket was hit often enough. */
  async sparing<T>(attempt: number, work: () => Promise<T>): Promise<T> {
    const isSpared = attempt >= claimsMax;
    if (isSpared) this.#spared++;
    try {
      return await work();
    } finally {
      if (isSpared) this.#spared--;
    }
  }

  async #pass(point: string, { path, target = path }: DiskChange): Promise<void> {
    const order = this.#order;
    if (order === undefined || this.#spared > 0) return;
    if (!lastSteps.includes(point) && (isWeary(path) || isWeary(target))) return;
    this.#points++;
    if (point === order.point) this.#times++;
    const isDue = this.#times >= order.time || this.#points >= pointsInVainMax;
    // The first child at a point has its crash there, whatever its order says: some are rare.
    if (!this.#isFirstAt(point) && !isDue) return;
    this.#order = undefined;
    report({ kind: "crash", order, point } satisfies HandoffReport);
    if (order.how === "kill") {
      process.kill(process.pid, "SIGKILL");
      // A signal to oneself may arrive a moment later.
      await new Promise(() => undefined);
    }
    // Stands still right here until the parent has heard it and stops the process.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, this.#orders.leaseMs);
    [this.#order, this.#times, this.#points] = [takeOrder(this.#orders), 0, 0];
  }

  /** True once in all children. */
  #isFirstAt(point: string): boolean {
    if (this.#known.has(point)) return false;
    this.#known.add(point);
    try {
      writeFileSync(`${pointsOf(this.#orders.directory)}/${point}`, "", { flag: "wx" });
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      return false;
    }
  }
}

function isWeary(path: string): boolean {
  return (findTicketName(path.slice(path.lastIndexOf("/") + 1))?.claims ?? 0) >= claimsMax;
}

/** In the parent: puts the orders where the children find them. */
export function giveOrders(directory: string, role: HandoffOrders["role"], orders: readonly CrashOrder[]): void {
  mkdirSync(placeOf(directory, role), { recursive: true });
  mkdirSync(pointsOf(directory), { recursive: true });
  for (const [index, order] of orders.entries())
    writeFileSync(`${placeOf(directory, role)}/${String(index).padStart(4, "0")}`, JSON.stringify(order));
}

/** Of several children one gets each: removing it succeeds once. */
function takeOrder({ directory, role }: HandoffOrders): CrashOrder | undefined {
  const place = placeOf(directory, role);
  for (const name of readdirSync(place).sort())
    try {
      const order = JSON.parse(readFileSync(`${place}/${name}`, "utf8")) as CrashOrder;
      rmSync(`${place}/${name}`);
      return order;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  return undefined;
}

function placeOf(directory: string, role: HandoffOrders["role"]): string {
  return `${directory}/orders/${role}`;
}

/** A file for each point at which a child had a crash. */
function pointsOf(directory: string): string {
  return `${directory}/points`;
}
