// A grant: the state of one hold in this process, from the moment its request holds until it is given up. The verbs
// (acquire, release, upgrade, downgrade, transfer) record in it what they have done.
import type { Session } from "../../durable/liveness/liveness.ts";
import { holdfastError } from "../../errors.ts";
import { signal } from "../../telemetry/signals.ts";
import type { Redo } from "../redo/redo.ts";
import { coversAll, pathsOf, type Claim, raisedBy } from "../table/conflict.ts";
import type { TableRequest } from "../table/request.ts";
import { LocalQueue, type LocalTurn } from "./local-queue.ts";
import type { AnyPathLocks } from "./table-path-locks.ts";

export interface NewGrant {
  /** The id of its request in the table. A covered grant has its parent's. */
  readonly id: string;
  readonly session: Session;
  /** The claims in the caller's spelling. */
  readonly asked: readonly Claim[];
  /** The same claims as keys. */
  readonly claims: readonly Claim[];
  readonly fence: number;
  readonly sinceMs: number;
  /** Its turn in the queue of this process, or of its family. A received grant has none. */
  readonly turn?: LocalTurn<Grant> | undefined;
  /** The outer hold, if this one was acquired `within` another. */
  readonly parent?: Grant | undefined;
  /** True if its parent covers it. Then it has no request of its own. */
  readonly isCovered?: boolean;
  /** How often its request was passed on within this process. */
  readonly passes?: number | undefined;
  /** When this process got its request, by the monotonic clock. */
  readonly requestedMs?: number;
}

export class Grant {
  readonly locks: AnyPathLocks;
  readonly id: string;
  readonly session: Session;
  readonly sinceMs: number;
  readonly parent: Grant | undefined;
  readonly isCovered: boolean;
  readonly passes: number;
  readonly requestedMs: number;
  readonly #turn: LocalTurn<Grant> | undefined;

  /** The claims in the caller's spelling. A change replaces the list. */
  asked: readonly Claim[];
  /** The same claims as keys. A change replaces the list. */
  claims: readonly Claim[];
  /** State of an upgrade announcement in the table: none, perhaps written, or to be retracted. */
  announcement: "none" | "maybe written" | "to retract" = "none";
  /** True if the table may have wider claims than this grant, because the reply to an append was lost. */
  isInDoubt = false;
  /**
   * Redos that were, or may have been, committed under its request and may not be applied yet. A redo is added before
   * the append that commits it: if the reply is lost, the hold must not end before the outcome is known. A covered
   * grant shares this map with its parent, because they share the request.
   */
  readonly redos: Map<string, Redo>;

  /** "ending": its owner has released it, but its request still belongs to it. */
  #state: "held" | "ending" | "released" | "lost" = "held";
  #isGivenUp = false;
  /** Why it is lost or about to be. */
  #reason: unknown;
  #signal: AbortController | undefined;
  readonly #overActions: (() => void)[] = [];
  #fence: number;
  /** The holds within it that are not given up yet. */
  readonly #inner = new Set<Grant>();
  #familyQueue: LocalQueue<Grant> | undefined;
  /** Appends and changes in progress under it. */
  readonly #running = new Set<Promise<unknown>>();
  #lastChange: Promise<unknown> = Promise.resolve();
  #lastEnd: Promise<unknown> = Promise.resolve();
  #lastActiveMs: number;
  /** The time of the last activity by the monotonic clock, which decides about `idleMs`. */
  #activeMs = 0;

  constructor(locks: AnyPathLocks, made: NewGrant) {
    this.locks = locks;
    this.id = made.id;
    this.session = made.session;
    this.sinceMs = made.sinceMs;
    this.parent = made.parent;
    this.isCovered = made.isCovered ?? false;
    this.passes = made.passes ?? 0;
    this.requestedMs = made.requestedMs ?? 0;
    this.#turn = made.turn;
    this.asked = made.asked;
    this.claims = made.claims;
    this.#fence = made.fence;
    this.#lastActiveMs = made.sinceMs;
    this.redos = (this.isCovered ? this.parent?.redos : undefined) ?? new Map();
    if (this.parent !== undefined) this.parent.#inner.add(this);
    if (!this.isCovered) this.#raiseOuterFences();
  }

  covers(claims: readonly Claim[]): boolean {
    return coversAll(this.claims, claims);
  }

  /** True if the table certainly has these claims, and no announcement. */
  get isInTable(): boolean {
    return this.announcement === "none" && !this.isInDoubt;
  }

  /** True if the table must be corrected: it may have wider claims, or an outdated announcement. */
  get needsCorrection(): boolean {
    return this.announcement === "to retract" || this.isInDoubt;
  }

  noteInTable(): void {
    this.announcement = "none";
    this.isInDoubt = false;
  }

  /** A covered grant has the fence of its parent, because they share one request. */
  get fence(): number {
    return this.isCovered && this.parent !== undefined ? this.parent.fence : this.#fence;
  }

  /** Takes the fence of a wider request. */
  upgradeFence(fence: number): void {
    this.#fence = fence;
    this.#raiseOuterFences();
  }

  /**
   * Raises the fence: a hold within this one shares a path with it and has `fence`, and this one must not write there
   * with a lower one.
   */
  raiseFence(fence: number): void {
    this.#fence = Math.max(this.#fence, fence);
  }

  /**
   * Returns its request from a list. Returns undefined once it is given up, because another caller of this process
   * may own the request then.
   */
  findRequest(requests: readonly TableRequest[]): TableRequest | undefined {
    if (this.#isGivenUp) return undefined;
    const isMine = ({ id, holder, transfer }: TableRequest): boolean =>
      id === this.id && holder === this.session.holder.id && transfer === undefined;
    return requests.find(isMine);
  }

  get isHeld(): boolean {
    if (this.#state === "held") this.loseWithSession();
    return this.#state === "held";
  }

  /** True if it is no longer held, permanently. */
  get isOver(): boolean {
    return !this.isHeld && this.#state !== "ending";
  }

  get isGivenUp(): boolean {
    return this.#isGivenUp;
  }

  /** Throws LOCK_LOST. Call it before and after every step whose result you act on. */
  mustHold(): void {
    if (!this.isHeld) throw this.#state === "lost" ? this.#reason : this.#lockLost("it was released");
  }

  /** Created on demand: most grants never need a signal, and it costs more than the rest of a grant. */
  get signal(): AbortSignal {
    this.#signal ??= new AbortController();
    // Check now: after a sleep the caller may run before any timer.
    this.loseWithSession();
    if (this.#reason !== undefined) this.#signal.abort(this.#reason);
    return this.#signal.signal;
  }

  /** Aborts its signal and those of the holds within it, because it is about to end involuntarily. */
  warn(why: string): void {
    if (this.isHeld) this.#warn(this.#lockLost(why));
  }

  /** Ends it involuntarily. Returns the error for callers. */
  lose(why: string): Error {
    const reason = this.#lockLost(why);
    this.#lose(reason);
    return reason;
  }

  /** Ends it because another process has dropped its request. Returns the error for callers. */
  loseAsDropped(): Error {
    return this.lose("it was broken, or this process was judged dead");
  }

  /** Ends it if the session of this process is over. */
  loseWithSession(): void {
    if (this.session.isOver) this.#lose(this.session.signal.reason);
  }

  /** Calls `action` once, when it is over. */
  whenOver(action: () => void): void {
    this.#overActions.push(action);
  }

  /** Records activity of its owner. */
  touch(): void {
    this.#lastActiveMs = this.locks.clock.wallMs();
    this.#activeMs = this.locks.clock.monotonicMs();
  }

  get lastActiveMs(): number {
    return this.#lastActiveMs;
  }

  get idleMs(): number {
    return this.locks.clock.monotonicMs() - this.#activeMs;
  }

  /**
   * Runs an append under the hold. The request stays this grant's own until the append has ended, because it may
   * count until then.
   */
  async during<T>(work: () => Promise<T>): Promise<T> {
    const done = work();
    this.#running.add(done);
    try {
      return await done;
    } finally {
      this.#running.delete(done);
    }
  }

  /** Runs a change of its extent. Changes are serialized, because each builds on the one before. Throws LOCK_LOST. */
  async duringChange<T>(change: () => Promise<T>): Promise<T> {
    this.mustHold();
    return await this.during(async () => {
      const done = this.#lastChange.then(change);
      this.#lastChange = done.catch(() => undefined);
      return await done;
    });
  }

  /** Resolves when nothing is in progress. Call it once nothing new can begin. */
  async untilQuiet(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  /** Serializes attempts to end it, so that the second sees the result of the first. */
  async inTurn<T>(end: () => Promise<T>): Promise<T> {
    const done = this.#lastEnd.then(end);
    // The caller gets the error of a failed attempt. The next attempt runs regardless.
    this.#lastEnd = done.catch(() => undefined);
    return await done;
  }

  /** Its owner releases it: from now on nothing new begins under it, but it still owns its request. */
  beginToEnd(): void {
    if (this.#state === "held") this.#state = "ending";
  }

  /** Undoes `beginToEnd`: it could not be ended, and its owner continues. */
  goOn(): void {
    if (this.#state === "ending") this.#state = "held";
  }

  /** From now on another grant may own its request. Returns false if it was lost before. */
  giveUp(): boolean {
    this.#isGivenUp = true;
    if (this.parent !== undefined) this.parent.#inner.delete(this);
    if (this.#state === "lost") return false;
    this.#end("released");
    return true;
  }

  leaveQueue(): void {
    this.#turn?.leave();
  }

  /** True if its request may be passed unchanged to the next caller of this process that wants the same. */
  get isPassable(): boolean {
    // Within another hold its turn is in the family's queue, and its request names the outer hold.
    if (this.parent !== undefined || this.session.isOver || !this.#turn?.hasNext()) return false;
    return this.claims === this.#turn.claims && this.isInTable;
  }

  passOn(): boolean {
    return this.#turn?.passOn(this) ?? false;
  }

  /** The holds directly within it. */
  get inner(): ReadonlySet<Grant> {
    return this.#inner;
  }

  /**
   * The queue of its family: all holds within one outermost hold. They exclude each other here, because the table
   * does not list those that the outermost hold covers.
   */
  get familyQueue(): LocalQueue<Grant> {
    return this.parent?.familyQueue ?? (this.#familyQueue ??= new LocalQueue());
  }

  /** Its turn in that queue. The outermost hold has none, because it does not exclude the holds within it. */
  get familyTurn(): string | undefined {
    return this.parent === undefined ? undefined : this.#turn?.id;
  }

  /**
   * Changes its turn in the family's queue to `claims`. Returns false, without a change, if a hold of the family
   * conflicts with them.
   */
  claimInFamily(claims: readonly Claim[]): boolean {
    return this.parent === undefined || (this.#turn?.change(claims) ?? true);
  }

  #raiseOuterFences(): void {
    const outer: Grant[] = [];
    for (let next = this.parent; next !== undefined; next = next.parent) outer.push(next);
    for (const grant of raisedBy(outer, this)) grant.raiseFence(this.fence);
  }

  #warn(reason: unknown): void {
    this.#reason ??= reason;
    this.#signal?.abort(this.#reason);
    for (const grant of this.#inner) grant.#warn(reason);
  }

  #lose(reason: unknown): void {
    if (this.#state !== "held" && this.#state !== "ending") return;
    const error = (this.#reason ??= reason);
    this.#end("lost");
    signal("holdfast:lock.lost", () => {
      return { location: this.locks.root, path: pathsOf(this.asked), id: this.id, error };
    });
    // For a hold within another, only this queue excludes the family from paths with unapplied redos. So it stays in
    // the queue until they are done.
    if (this.parent === undefined || this.redos.size === 0) this.leaveQueue();
    this.#signal?.abort(this.#reason);
    for (const grant of this.#inner) grant.#lose(reason);
  }

  #end(state: "released" | "lost"): void {
    this.#state = state;
    for (const action of this.#overActions.splice(0)) action();
  }

  #lockLost(why: string): Error {
    const path = pathsOf(this.asked);
    const message = `The lock on ${path} with fence ${this.fence} is no longer held: ${why}. Commits under it are refused.`;
    return holdfastError("LOCK_LOST", message, { path, fence: this.fence });
  }
}
