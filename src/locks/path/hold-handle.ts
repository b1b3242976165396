// The handle of a hold: the object that its owner has. Its methods call the verbs, which have one file each.
import type { Waiting } from "../../common.ts";
import { traceMethods } from "../../telemetry/trace.ts";
import type { Claim } from "../table/conflict.ts";
import { tracedHoldMethods } from "../traced-methods.ts";
import { downgrade } from "./downgrade.ts";
import type { Grant } from "./grant.ts";
import { check } from "./monitor.ts";
import type { LockChange, PathHold } from "./path-hold.ts";
import { release } from "./release.ts";
import { transfer } from "./transfer.ts";
import { upgrade } from "./upgrade.ts";

/**
 * Refers to its grant, but nothing refers to the handle: once its owner drops it, the garbage collector tells the
 * monitor, which releases the grant.
 */
export class HoldHandle implements PathHold {
  static {
    traceMethods(this, tracedHoldMethods);
  }

  readonly #grant: Grant;

  constructor(grant: Grant) {
    this.#grant = grant;
  }

  /** Returns the grant of a hold of path locks, or undefined for any other hold. */
  static findGrant(hold: PathHold): Grant | undefined {
    return hold instanceof HoldHandle ? hold.#grant : undefined;
  }

  get id(): string {
    return this.#grant.id;
  }
  /** The root of its locks. */
  get root(): string {
    return this.#grant.locks.root;
  }
  /** False for a lock that Holdfast took for its own work. */
  get isOfUser(): boolean {
    return this.#grant.locks.isOfUser;
  }
  get fence(): number {
    return this.#grant.fence;
  }
  get requests(): readonly Claim[] {
    // A copy: a caller that changes it does not change the lock.
    return this.#grant.asked.map((claim) => ({ ...claim }));
  }
  get signal(): AbortSignal {
    return this.#grant.signal;
  }
  get acquiredAt(): Date {
    return new Date(this.#grant.sinceMs);
  }
  get lastActiveAt(): Date {
    return new Date(this.#grant.lastActiveMs);
  }

  async refresh(): Promise<void> {
    await this.assertHeld();
    this.#grant.touch();
  }
  async assertHeld(): Promise<void> {
    await check(this.#grant);
  }
  async upgrade(to: LockChange, options: Waiting = {}): Promise<void> {
    await upgrade(this.#grant, to, options);
  }
  async downgrade(to: LockChange): Promise<void> {
    await downgrade(this.#grant, to);
  }
  async transfer(options: { expiresMs?: number | undefined } = {}): Promise<string> {
    return await transfer(this.#grant, options);
  }
  async release(): Promise<void> {
    await release(this.#grant);
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}
