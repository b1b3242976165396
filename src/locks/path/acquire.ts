// The way in: how a caller of this process comes to a grant, first through the line of the process and then through the lock table.
import type { Waiting } from "../../common.ts";
import { Deadline, leftMsOf } from "../../durable/wait/deadline.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { holdfastError } from "../../errors.ts";
import { describeBlockers, lockTimeout } from "./describe.ts";
import type { Claim } from "../table/claim.ts";
import { conflictingOf, conflictsWith } from "../table/conflict.ts";
import { Grant, type PassedRequest } from "./grant.ts";
import { LocalQueue, type LocalTurn } from "./local-queue.ts";
import type { Keys } from "../naming/lock-key.ts";
import type { LockTable } from "../table/lock-table.ts";
import { enqueue, waitFor, type QueuedRequest } from "../table/enqueue.ts";
import { fenceOf, type LockRequestRecord } from "../table/request.ts";

/** A path that leads elsewhere each time it is looked at is no path. */
const resolvingsMax = 10;

/** So often, and for so long, a request is passed on within its process while others of this process wait for the same; then other processes have their turn. */
const passesMax = 64;
const passingMsMax = 20;

/** What a wait rejects with when the time is up; then the answer says who was in the way. */
const expired: unique symbol = Symbol("expired");

/** How long a caller waits, over all the places where it has to. */
export interface AcquireWait extends Waiting {
  /** By the monotonic clock. */
  readonly startMs: number;
}

export interface Acquisition {
  /** In the caller's spelling. */
  readonly asked: readonly Claim[];
  readonly patience: AcquireWait;
  readonly tag?: string | undefined;
  readonly parent?: Grant | undefined;
}

/** A wish whose paths have become keys. */
interface Ask extends Acquisition {
  readonly claims: readonly Claim[];
  readonly life: HolderSession;
}

export class Acquirer {
  readonly #table: LockTable;
  readonly #keys: Keys;
  readonly #closed: AbortSignal;
  readonly #line = new LocalQueue<PassedRequest>();

  constructor(table: LockTable, keys: Keys, closed: AbortSignal) {
    this.#table = table;
    this.#keys = keys;
    this.#closed = closed;
  }

  /** LOCK_TIMEOUT, DEADLOCK. */
  async enter(wish: Acquisition): Promise<Grant> {
    const { asked, parent } = wish;
    for (let attempt = 0; attempt < resolvingsMax; attempt++) {
      this.#closed.throwIfAborted();
      const life = await this.#table.ground.session();
      parent?.mustHold();
      const claims = await this.#claims(asked);
      const ask: Ask = { ...wish, claims, life };
      const grant = await (parent === undefined ? this.#enterAlone(ask) : this.#enterFamily(parent, ask));
      try {
        // Resolved again now that nobody else may change what is there: a symbolic link that was swapped meanwhile would give two keys to one file.
        const again = await this.#claims(asked);
        if (again.every(({ path }, index) => path === claims[index]?.path)) return grant;
      } catch (error) {
        await this.#leave(grant);
        throw error;
      }
      await this.#leave(grant);
    }
    const { path = "" } = asked[0] ?? {};
    const message = `${path} leads somewhere else each time it is looked at.`;
    throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
  }

  async #leave(grant: Grant): Promise<void> {
    grant.release();
    try {
      if (!grant.isCovered) await this.#table.release(grant.id);
    } finally {
      grant.place?.leave();
    }
  }

  async #claims(asked: readonly Claim[]): Promise<Claim[]> {
    const claims: Claim[] = [];
    for (const { path, mode, shared } of asked) claims.push({ path: await this.#keys.keyOf(path), mode, shared });
    return claims;
  }

  async #enterAlone(ask: Ask): Promise<Grant> {
    const place = await this.#enterLine(this.#line, ask);
    try {
      const grant = place.passed === undefined ? await this.#enterTable(ask) : await this.#takeOn(ask, place.passed);
      grant.place = place;
      return grant;
    } catch (error) {
      place.leave();
      throw error;
    }
  }

  /**
   * What a hold covers needs no request: all others that conflict with it conflict with that hold. Only the other holds of its
   * family do not, so they exclude each other in their own line, those with a request of their own too.
   */
  async #enterFamily(parent: Grant, ask: Ask): Promise<Grant> {
    const place = await this.#enterLine(this.familyLineOf(parent, ask.claims), ask, parent.familyPlace?.id);
    try {
      parent.mustHold();
      const grant = parent.covers(ask.claims) ? this.#partOf(parent, ask) : await this.#enterTable(ask);
      grant.place = place;
      return grant;
    } catch (error) {
      place.leave();
      throw error;
    }
  }

  protected familyLineOf(parent: Grant, _claims: readonly Claim[]): LocalQueue {
    return parent.familyLine;
  }

  #partOf(parent: Grant, { asked, claims, life, tag }: Ask): Grant {
    const { id, fence } = parent;
    const sinceMs = this.#clock.wallMs();
    return new Grant({ id, life, asked, claims, fence, sinceMs, tag, parent, isCovered: true });
  }

  /**
   * Leaves the request of a grant that is over to the next caller of this process who waits for the same, without asking the table: nobody else can have come in as
   * long as its hold file stands. True when somebody has it now.
   */
  async passOn(grant: Grant): Promise<boolean> {
    const { id, life, parent, place, claims, wish, isWidthInDoubt, fence, turn, requestedMs } = grant;
    // Within another hold it has the place of its family, and in the table it says what it is within.
    if (parent !== undefined) return false;
    if (place === undefined || !place.hasNext() || this.#closed.aborted || life.isOver) return false;
    // What was widened or narrowed meanwhile, or waited for that, is no longer what the next one waits for.
    if (claims !== place.claims || wish !== "none" || isWidthInDoubt || turn + 1 >= passesMax) return false;
    if (this.#clock.monotonicMs() - requestedMs > passingMsMax) return false;
    const passed: PassedRequest = { id, life, fence: fence + 1, turn: turn + 1, requestedMs };
    // What cannot be seen is not passed on: then it is released.
    if (!(await this.stands(id).catch(() => false))) return false;
    return (place as LocalTurn<PassedRequest>).passOn(passed);
  }

  protected async stands(id: string): Promise<boolean> {
    return !(await this.#table.isOver(id));
  }

  async #takeOn({ asked, claims, tag }: Ask, passed: PassedRequest): Promise<Grant> {
    try {
      this.#closed.throwIfAborted();
      passed.life.throwIfOver();
      return new Grant({ ...passed, asked, claims, sinceMs: this.#clock.wallMs(), tag });
    } catch (error) {
      await this.#table.release(passed.id).catch(() => undefined);
      throw error;
    }
  }

  async #enterLine<T>(line: LocalQueue<T>, ask: Ask, within?: string): Promise<LocalTurn<T>> {
    const place = line.tryEnter(ask.claims, within);
    if (place !== undefined) return place;
    if (this.#leftMs(ask) <= 0) throw await this.#timedOut(ask, await this.#whoConflicts(ask));
    return await this.#waiting(
      ask,
      (deadline) => line.enter(ask.claims, deadline, within),
      () => this.#whoConflicts(ask),
    );
  }

  async #enterTable(ask: Ask): Promise<Grant> {
    const { asked, claims, life, tag, parent } = ask;
    const queued = await enqueue(
      this.#table,
      { claims, life, tag, within: parent?.id },
      { wait: this.#leftMs(ask) > 0 },
    );
    if (!("request" in queued)) throw await this.#timedOut(ask, queued.blockers);
    const { request, table } = queued;
    try {
      if (queued.blockers.length > 0) await this.#waitInTable(queued, ask);
      // What somebody committed here before he was dropped is done before anything else is.
      await this.#table.completeOrphans(table, (redo) => conflictsWith(claims, redo.claims));
      parent?.mustHold();
      this.#closed.throwIfAborted();
      life.throwIfOver();
    } catch (error) {
      await this.#table.release(request.id).catch(() => undefined);
      throw error;
    }
    const [sinceMs, requestedMs, fence] = [this.#clock.wallMs(), this.#clock.monotonicMs(), fenceOf(request)];
    const grant = new Grant({ id: request.id, life, asked, claims, fence, sinceMs, tag, parent, requestedMs });
    this.raiseOuterFences(grant);
    return grant;
  }

  protected raiseOuterFences(grant: Grant): void {
    grant.raiseOuterFences();
  }

  async #waitInTable(queued: QueuedRequest, ask: Ask): Promise<void> {
    const { life, parent } = ask;
    const mustGoOn = (): void => {
      life.throwIfOver();
      parent?.mustHold();
    };
    await this.#waiting(
      ask,
      (deadline) => waitFor(this.#table, queued, { deadline, mustGoOn, leaseMs: life.holder.leaseMs }),
      () => this.#table.standing(queued.blockers),
    );
  }

  /** Waits for no longer than is left of what was asked for; says who was in the way when that was not enough. */
  async #waiting<T>(
    ask: Ask,
    wait: (deadline: Deadline) => Promise<T>,
    inTheWay: () => Promise<readonly LockRequestRecord[]>,
  ): Promise<T> {
    const { signal } = ask.patience;
    const timedOut = (): unknown => expired;
    const deadline = new Deadline(this.#clock, {
      timeoutMs: this.#leftMs(ask),
      signal,
      closed: this.#closed,
      timedOut,
    });
    try {
      return await wait(deadline);
    } catch (error) {
      signal?.throwIfAborted();
      throw error === expired ? await this.#timedOut(ask, await inTheWay()) : error;
    } finally {
      deadline.cancel();
    }
  }

  #leftMs({ patience }: Ask): number {
    return leftMsOf(this.#clock, patience);
  }

  async #whoConflicts({ claims }: Ask): Promise<LockRequestRecord[]> {
    const { state } = await this.#table.read();
    return conflictingOf(await this.#table.standing(state.requests), { id: "", claims });
  }

  async #timedOut({ asked, claims, patience, parent }: Ask, blockers: readonly LockRequestRecord[]): Promise<Error> {
    const waitedMs = Math.max(0, patience.timeoutMs ?? 0);
    // Within another hold also those that wait for that one may stand in the way.
    const wanted = [...claims, ...(parent?.claims ?? [])];
    return lockTimeout(asked, waitedMs, await describeBlockers(this.#table.ground, blockers, wanted));
  }

  get #clock() {
    return this.#table.ground.ports.clock;
  }
}
