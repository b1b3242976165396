// Makes a child of a hand-off crew crash: it takes an order, and at the named point it kills itself, or has itself
// stopped, in the middle of the step.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { Disk } from "../../../src/ports/disk.ts";
import { report } from "../child-side.ts";
import { crashPointDisk, type DiskChange } from "../crash-point-disk.ts";
import { findTicketName } from "../../../src/handoff/model/ticket-name.ts";
import type { CrashOrder, HandoffOrders, HandoffReport } from "./orders.ts";
import { stepOf } from "./steps.ts";

/** After this many other points, the order is carried out at the next point. */
const pointsInVainMax = 40;
/** Only tickets at their last attempt reach these steps: a crash uses up no attempt. */
const lastSteps = ["before failing for good", "after failing for good"];
/** A ticket that was hit this often is spared: only a ticket that itself kills workers may reach its last attempt. */
const claimsMax = 3;

export class Crash {
  readonly #orders: HandoffOrders;
  #order: CrashOrder | undefined;
  #times = 0;
  #points = 0;
  /** The points at which this or another child has crashed. */
  readonly #known = new Set<string>();
  /** The number of spared deliveries in progress. */
  #spared = 0;

  constructor(orders: HandoffOrders) {
    this.#orders = orders;
    this.#order = takeOrder(orders);
  }

  disk(disk: Disk): Disk {
    return crashPointDisk(disk, stepOf, (point, change) => this.#pass(point, change));
  }

  /** Handles a delivery. If its ticket was hit often enough, there is no crash until it is settled. */
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
    // The first child at a point crashes there, whatever its order says: some points are rare.
    if (!this.#isFirstAt(point) && !isDue) return;
    this.#order = undefined;
    report({ kind: "crash", order, point } satisfies HandoffReport);
    if (order.how === "kill") {
      process.kill(process.pid, "SIGKILL");
      // A signal that a process sends to itself may arrive a moment later.
      await new Promise(() => undefined);
    }
    // Blocks right here until the parent has read the report and stops the process.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, this.#orders.leaseMs);
    [this.#order, this.#times, this.#points] = [takeOrder(this.#orders), 0, 0];
  }

  /** Returns true once among all children. */
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

/** Called in the parent: puts the orders where the children find them. */
export function giveOrders(directory: string, role: HandoffOrders["role"], orders: readonly CrashOrder[]): void {
  mkdirSync(placeOf(directory, role), { recursive: true });
  mkdirSync(pointsOf(directory), { recursive: true });
  for (const [index, order] of orders.entries())
    writeFileSync(`${placeOf(directory, role)}/${String(index).padStart(4, "0")}`, JSON.stringify(order));
}

/** Each order goes to one of several children: removing its file succeeds only once. */
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

/** The directory with a file for each point at which a child has crashed. */
function pointsOf(directory: string): string {
  return `${directory}/points`;
}
