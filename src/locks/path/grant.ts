// A grant: the state of one hold in this process, from the moment in which its request holds until
// it is given up. The state is private. The verbs (acquire, release, upgrade, downgrade, transfer)
// call methods that say what happens to the hold.
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { holdfastError } from "../../errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { pathsOf, type Claim, type LockExtent } from "../table/claim.ts";
import { raisedBy } from "../table/conflict.ts";
import { fenceOf, type TableRequest } from "../table/request.ts";
import { HoldExtent } from "./hold-extent.ts";
import { HoldWork } from "./hold-work.ts";
import { LocalQueue, type LocalTurn } from "./local-queue.ts";

export interface NewGrant {
  /** Of its request in the table. A covered grant has that of its parent. */
  readonly id: string;
  readonly session: HolderSession;
  /** In the caller's spelling. */
  readonly asked: readonly Claim[];
  /** The same as keys. */
  readonly claims: readonly Claim[];
  readonly fence: number;
  readonly sinceMs: number;
  /** In the queue of this process, or in that of its family. A received grant has none. */
  readonly turn?: LocalTurn<Grant> | undefined;
  /** The hold that it is within. */
  readonly parent?: Grant | undefined;
  /** It is covered by its parent, and has no request of its own. */
  readonly isCovered?: boolean;
  /** How often its request was passed on within this process. */
  readonly passes?: number | undefined;
  /** When this process got its request, by the monotonic clock. */
  readonly requestedMs?: number;
}

export class Grant {
  readonly id: string;
  readonly session: HolderSession;
  readonly sinceMs: number;
  readonly parent: Grant | undefined;
  readonly isCovered: boolean;
  readonly passes: number;
  readonly requestedMs: number;
  readonly extent: HoldExtent;
  readonly work: HoldWork;
  readonly #turn: LocalTurn<Grant> | undefined;

  /** "ending": its owner has let go, and its request is still its own. */
  #state: "held" | "ending" | "released" | "lost" = "held";
  #isGivenUp = false;
  /** Why it is lost, or about to end. */
  #reason: unknown;
  #signal: AbortController | undefined;
  readonly #overActions: (() => void)[] = [];

  #fence: number;
  /** Holds within it, until they are given up. */
  readonly #inner = new Set<Grant>();
  #familyQueue: LocalQueue | undefined;
  #lastEnd: Promise<unknown> = Promise.resolve();
  #lastActiveMs: number;
  /** The same by the monotonic clock, which decides. */
  #activeMs = 0;

  constructor({
    id,
    session,
    asked,
    claims,
    fence,
    sinceMs,
    turn,
    parent,
    isCovered = false,
    passes = 0,
    requestedMs = 0,
  }: NewGrant) {
    this.id = id;
    this.session = session;
    this.sinceMs = sinceMs;
    this.parent = parent;
    this.isCovered = isCovered;
    this.passes = passes;
    this.requestedMs = requestedMs;
    this.#turn = turn;
    this.extent = new HoldExtent(asked, claims);
    this.#fence = fence;
    this.#lastActiveMs = sinceMs;
    this.work = new HoldWork(isCovered ? parent?.work : undefined);
    if (parent !== undefined) parent.#inner.add(this);
    if (!isCovered) this.#raiseOuterFences();
  }

  // What it is.

  /** In the caller's spelling. */
  get asked(): readonly Claim[] {
    return this.extent.asked;
  }

  /** As keys. The list is another one after each change. */
  get claims(): readonly Claim[] {
    return this.extent.claims;
  }

  covers(claims: readonly Claim[]): boolean {
    return this.extent.covers(claims);
  }

  /** A covered grant has the fence of its parent: they are one request. */
  get fence(): number {
    return this.isCovered && this.parent !== undefined ? this.parent.fence : this.#fence;
  }

  /**
   * A hold within this one has the fence `fence` and shares a path: this one must not write there
   * later with a lower fence.
   */
  raiseFence(fence: number): void {
    this.#fence = Math.max(this.#fence, fence);
  }

  get inner(): ReadonlySet<Grant> {
    return this.#inner;
  }

  /**
   * Its request in a list. Undefined once it is given up: the next caller of this process may have
   * the request then.
   */
  findRequest(requests: readonly TableRequest[]): TableRequest | undefined {
    if (this.#isGivenUp) return undefined;
    const isMine = ({ id, holder, transfer }: TableRequest): boolean =>
      id === this.id && holder === this.session.holder.id && transfer === undefined;
    return requests.find(isMine);
  }

  // Whether it stands.

  get isHeld(): boolean {
    if (this.#state === "held") this.loseWithSession();
    return this.#state === "held";
  }

  /** Whether it is not held and will not be again. */
  get isOver(): boolean {
    return !this.isHeld && this.#state !== "ending";
  }

  /** LOCK_LOST. To be called before and after everything whose result is acted on. */
  mustHold(): void {
    if (!this.isHeld) throw this.#state === "lost" ? this.#reason : this.#lockLost("it was released");
  }

  /** Made on demand: most grants never need it, and it costs more than all the rest of a grant. */
  get signal(): AbortSignal {
    this.#signal ??= new AbortController();
    // Looked at now: after a sleep the caller may run before every timer.
    this.loseWithSession();
    if (this.#reason !== undefined) this.#signal.abort(this.#reason);
    return this.#signal.signal;
  }

  /**
   * Aborts its signal, and those of the holds within it: it is about to end without the will of its
   * owner.
   */
  warn(why: string): void {
    if (this.isHeld) this.#warn(this.#lockLost(why));
  }

  /** It is over without the will of its owner. Returns the error for callers. */
  lose(why: string): Error {
    const reason = this.#lockLost(why);
    this.#lose(reason);
    return reason;
  }

  /** Another process has dropped its request. Returns the error for callers. */
  loseAsDropped(): Error {
    return this.lose("it was broken, or this process was taken for dead");
  }

  /** Loses it if the session of this process is over. */
  loseWithSession(): void {
    if (this.session.isOver) this.#lose(this.session.signal.reason);
  }

  /** `action` is called once when it is over. */
  whenOver(action: () => void): void {
    this.#overActions.push(action);
  }

  // How it ends.

  /** Ends run one after the other: the second finds what the first made of it. */
  async inTurn<T>(end: () => Promise<T>): Promise<T> {
    const done = this.#lastEnd.then(end);
    // The caller of a failed end is told; the next end tries for itself.
    this.#lastEnd = done.catch(() => undefined);
    return await done;
  }

  /** Its owner lets go: nothing is begun under it from now on, and its request is still its own. */
  beginToEnd(): void {
    if (this.#state === "held") this.#state = "ending";
  }

  /** It could not be ended, and its owner goes on. */
  goOn(): void {
    if (this.#state === "ending") this.#state = "held";
  }

  get isGivenUp(): boolean {
    return this.#isGivenUp;
  }

  /** From now on its request may be another's. False when it was lost before. */
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

  /**
   * Whether its request may go to the next caller of this process that wants the same, unchanged.
   */
  get isPassable(): boolean {
    // Within another hold it has its turn in the family, and its request names what it is within.
    if (this.parent !== undefined || this.session.isOver || !this.#turn?.hasNext()) return false;
    return this.claims === this.#turn.claims && this.extent.isInTable;
  }

  passOn(): boolean {
    return this.#turn?.passOn(this) ?? false;
  }

  /** A change of its extent. LOCK_LOST, also while an earlier change is under way. */
  async duringChange<T>(change: () => Promise<T>): Promise<T> {
    this.mustHold();
    return await this.work.duringChange(change);
  }

  /** Its owner did something under it. */
  touch(clock: Clock): void {
    this.#lastActiveMs = clock.wallMs();
    this.#activeMs = clock.monotonicMs();
  }

  get lastActiveMs(): number {
    return this.#lastActiveMs;
  }

  idleMs(clock: Clock): number {
    return clock.monotonicMs() - this.#activeMs;
  }

  // Its family: all holds within one outermost hold.

  /**
   * Where the holds of a family exclude each other: those that the outermost hold covers are in no
   * other list.
   */
  get familyQueue(): LocalQueue {
    return this.parent?.familyQueue ?? (this.#familyQueue ??= new LocalQueue());
  }

  /** Its turn in that queue. The outermost hold has none, because it excludes no hold within it. */
  get familyTurn(): string | undefined {
    return this.parent === undefined ? undefined : this.#turn?.id;
  }

  /**
   * Excludes its family from `claims`. False, and nothing has changed, when a hold of its family
   * has a part of them.
   */
  claimInFamily(claims: readonly Claim[]): boolean {
    return this.parent === undefined || (this.#turn?.change(claims) ?? true);
  }

  /** Upgraded: its request in the table is `request` now. */
  upgrade(request: TableRequest, to: Partial<LockExtent>): void {
    this.extent.upgrade(request.claims, to);
    this.#fence = fenceOf(request);
    this.#raiseOuterFences();
  }

  /** Downgraded, and all that rests on it. `isInDoubt`: the table may not say so yet. */
  finishDowngrade(to: Partial<LockExtent>, options: { readonly isInDoubt: boolean }): void {
    this.extent.finishDowngrade(to, options);
    this.claimInFamily(this.claims);
    for (const inner of this.#inner)
      if (inner.isCovered && !this.covers(inner.claims)) inner.lose("the hold that it is within was downgraded");
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
    this.#reason ??= reason;
    this.#end("lost");
    // Within another hold no request keeps its family out of what is still to be done: that is done
    // first.
    if (this.parent === undefined || this.work.redos.size === 0) this.leaveQueue();
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
