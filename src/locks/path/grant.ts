// One grant as this process knows it: what it covers, whether it still stands, and what ends with it.
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { holdfastError } from "../../errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Claim } from "../table/claim.ts";
import { covers, raisedBy } from "../table/conflict.ts";
import { LocalQueue, type LocalTurn } from "./local-queue.ts";
import type { Redo } from "../redo/record.ts";

export interface GrantFacts {
  /** Of its request in the table; that of what it is within, when it is covered by that. */
  readonly id: string;
  readonly life: HolderSession;
  /** In the caller's spelling. */
  readonly asked: readonly Claim[];
  readonly claims: readonly Claim[];
  readonly fence: number;
  readonly sinceMs: number;
  readonly tag?: string | undefined;
  readonly parent?: Grant | undefined;
  /** It has no request of its own. */
  readonly isCovered?: boolean;
  /** How often its request was passed on before, and since when this process has it. */
  readonly turn?: number | undefined;
  readonly requestedMs?: number;
}

/** What is left to the next caller of this process who wants the same: a request that holds. */
export interface PassedRequest {
  readonly id: string;
  readonly life: HolderSession;
  /** For the one who gets it. */
  readonly fence: number;
  readonly turn: number;
  readonly requestedMs: number;
}

export class Grant {
  readonly id: string;
  readonly life: HolderSession;
  readonly parent: Grant | undefined;
  readonly isCovered: boolean;
  readonly sinceMs: number;
  readonly tag: string | undefined;
  asked: readonly Claim[];
  claims: readonly Claim[];
  #fence: number;
  lastActiveMs: number;
  /** The same by the monotonic clock, for what is decided by it. */
  #activeMs = 0;
  /** Committed under its request, or perhaps committed, and not known to be done: by whoever has a part of it. */
  readonly redos: Map<string, Redo>;
  /** Whether the list says that it waits to become wider, or perhaps does; stale when nobody waits for that any more. */
  wish: "none" | "said" | "stale" = "none";
  /** The list may say that it is wider than it is, because the answer to a change of its width was lost. */
  isWidthInDoubt = false;
  /** What ends when this one ends, until it is given up. */
  readonly inner: Set<Grant> = new Set();
  /** Its place in the line of this process, or in that of its family; left by whoever releases it, and when it is lost. */
  place: LocalTurn<PassedRequest> | LocalTurn<never> | undefined;
  /** What is to be done once when it is over. */
  readonly onOver: (() => void)[] = [];
  readonly turn: number;
  /** By the monotonic clock. */
  readonly requestedMs: number;
  #state: "held" | "ending" | "released" | "lost" = "held";
  /** Why it is lost, or about to end. */
  #reason: unknown;
  #isGivenUp = false;
  #turn: Promise<unknown> = Promise.resolve();
  #change: Promise<unknown> = Promise.resolve();
  readonly #works = new Set<Promise<unknown>>();
  #signal: AbortController | undefined;
  #familyLine: LocalQueue | undefined;

  constructor({
    id,
    life,
    asked,
    claims,
    fence,
    sinceMs,
    tag,
    parent,
    isCovered = false,
    turn = 0,
    requestedMs = 0,
  }: GrantFacts) {
    this.id = id;
    this.life = life;
    this.asked = asked;
    this.claims = claims;
    this.#fence = fence;
    this.sinceMs = sinceMs;
    this.lastActiveMs = sinceMs;
    this.tag = tag;
    this.parent = parent;
    this.isCovered = isCovered;
    this.redos = (isCovered ? parent?.redos : undefined) ?? new Map();
    this.turn = turn;
    this.requestedMs = requestedMs;
    parent?.inner.add(this);
  }

  /** That of what it is within, when it is covered by that: they are one request. */
  get fence(): number {
    return this.isCovered && this.parent !== undefined ? this.parent.fence : this.#fence;
  }

  set fence(fence: number) {
    this.#fence = fence;
  }

  /** No hold that it is within may write after it with a lower fence where they share a path. */
  raiseOuterFences(): void {
    const outer: Grant[] = [];
    for (let next = this.parent; next !== undefined; next = next.parent) outer.push(next);
    for (const grant of raisedBy(outer, this)) grant.fence = Math.max(grant.fence, this.fence);
  }

  get isHeld(): boolean {
    if (this.#state === "held" && this.life.isOver) this.lose(this.life.signal.reason);
    return this.#state === "held";
  }

  /** Whether it is not held and will not be again. */
  get isOver(): boolean {
    return !this.isHeld && this.#state !== "ending";
  }

  /** LOCK_LOST. To be asked before and after everything whose result is acted on. */
  mustHold(): void {
    if (!this.isHeld) throw this.#state === "lost" ? this.#reason : this.lost("it was released");
  }

  /** Made when it is asked for: for most grants it never is, and it costs more than all the rest of a grant. */
  get signal(): AbortSignal {
    this.#signal ??= new AbortController();
    // Asked now: after a sleep, a caller that looks comes before every timer.
    if (this.life.isOver) this.lose(this.life.signal.reason);
    if (this.#reason !== undefined) this.#signal.abort(this.#reason);
    return this.#signal.signal;
  }

  /** Aborts its signal, and those of what is within it: it is about to end, and not by its owner's will. */
  tell(reason: unknown): void {
    this.#reason ??= reason;
    this.#signal?.abort(this.#reason);
    for (const grant of this.inner) grant.tell(reason);
  }

  /** Where all holds within the outermost one exclude each other: those that it covers stand in no other list. */
  get familyLine(): LocalQueue {
    return this.parent?.familyLine ?? (this.#familyLine ??= new LocalQueue());
  }

  /** Its place in that line; undefined for the outermost one, which excludes none of them. */
  get familyPlace(): LocalTurn<unknown> | undefined {
    return this.parent === undefined ? undefined : this.place;
  }

  /** It is over, and not by its owner's will. */
  lose(reason: unknown): void {
    if (this.#state !== "held" && this.#state !== "ending") return;
    this.#reason ??= reason;
    this.#end("lost");
    // Within another hold no request keeps the others of its family out of what is still to be done: that is done first.
    if (this.familyPlace === undefined || this.redos.size === 0) this.place?.leave();
    this.#signal?.abort(this.#reason);
    for (const grant of this.inner) grant.lose(reason);
  }

  /** What is appended under it, which may count as long as it is under way: until then its request must stay its own. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    const done = work();
    this.#works.add(done);
    try {
      return await done;
    } finally {
      this.#works.delete(done);
    }
  }

  /** A change of its width, which is appended under it: one at a time, because each rests on the one before. LOCK_LOST. */
  async duringChange<T>(work: () => Promise<T>): Promise<T> {
    this.mustHold();
    return await this.during(async () => {
      const done = this.#change.then(work);
      this.#change = done.catch(() => undefined);
      return await done;
    });
  }

  /** Resolves when nothing is under way. To be asked once nothing new is begun. */
  async quiet(): Promise<void> {
    while (this.#works.size > 0) await Promise.allSettled(this.#works);
  }

  /** Whoever ends it comes in turn, and finds what was made of it before. */
  async inTurn<T>(end: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(end);
    // Whoever asked for it hears of its failure; the next one tries himself.
    this.#turn = done.catch(() => undefined);
    return await done;
  }

  /** Its owner lets go: from now on nothing is begun under it, though its request is still its own. */
  beginToEnd(): void {
    if (this.#state === "held") this.#state = "ending";
  }

  /** It could not be ended, and its owner goes on. */
  goOn(): void {
    if (this.#state === "ending") this.#state = "held";
  }

  /** Whether its request is no longer its own: it may be another's by now. */
  get isGivenUp(): boolean {
    return this.#isGivenUp;
  }

  /** Its request is given up. False when it was lost before. */
  release(): boolean {
    this.#isGivenUp = true;
    this.parent?.inner.delete(this);
    if (this.#state === "lost") return false;
    this.#end("released");
    return true;
  }

  /** Something was done under it. */
  touch(clock: Clock): void {
    this.lastActiveMs = clock.wallMs();
    this.#activeMs = clock.monotonicMs();
  }

  idleMs(clock: Clock): number {
    return clock.monotonicMs() - this.#activeMs;
  }

  covers(claims: readonly Claim[]): boolean {
    return claims.every((inner) => this.claims.some((outer) => covers(outer, inner)));
  }

  lost(why: string): Error {
    const path = this.asked.map((claim) => claim.path || ".").join(", ");
    const message = `The lock on ${path} with fence ${this.fence} is no longer held: ${why}. Whatever is committed under it is refused.`;
    return holdfastError("LOCK_LOST", message, { path, fence: this.fence });
  }

  #end(state: "released" | "lost"): void {
    this.#state = state;
    for (const action of this.onOver.splice(0)) action();
  }
}
