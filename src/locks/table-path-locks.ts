// Path locks on a lock table: grants and everything that happens to them in this process.
import type { Cancel, Waiting } from "../common.ts";
import { checkTimeout, Deadline } from "../durable/deadline.ts";
import type { Ground } from "../durable/ground.ts";
import type { Life } from "../durable/life.ts";
import { holdfastError, isHoldfastError } from "../errors.ts";
import { describeBlockers, lockTimeout } from "./blocking.ts";
import type { Claim } from "./claim.ts";
import { conflictingOf, conflictsWith } from "./conflict.ts";
import { Grant } from "./grant.ts";
import { describeHeld, holdersOf, isShownUnder } from "./listing.ts";
import { Line } from "./line.ts";
import { LockKeys } from "./lock-key.ts";
import { LockTable } from "./lock-table.ts";
import { Mirror, type Patience } from "./mirror.ts";
import { KeptHold, type HoldKeeper, type PathHold } from "./path-hold.ts";
import type { AcquireManyOptions, AcquireOptions, HeldLock, LockRequest, PathLocks } from "./path-locks.ts";
import { enqueue, waitFor, type Queued } from "./queue.ts";
import { RedoDraft, settleRedos } from "./redo.ts";
import type { Request } from "./request.ts";
import { handOver, takeOver } from "./transfer.ts";
import { changed, findOwn, loseIt, narrow, widen, type WidthChange } from "./width.ts";

const tagLengthMax = 1000;
/** How often this process looks whether its holds still stand: cheap on a local disk, and part of the lease elsewhere. */
const localCheckMs = 1000;
const networkCheckPart = 1 / 8;
/** A path that leads elsewhere each time it is looked at is no path. */
const resolvingsMax = 10;

export interface TablePathLocksOptions {
  readonly root: string;
  readonly timeoutMs?: number | undefined;
  readonly slotsPerEpoch?: number | undefined;
  /** Closing the locks closes the ground. */
  readonly ownsGround?: boolean | undefined;
  /** Lock files for foreign programs are written, and theirs respected. */
  readonly interop?: boolean | undefined;
  /** What they run on: the real ones, or known-wrong variants. */
  readonly TableClass?: typeof LockTable | undefined;
  readonly keys?: Keys | undefined;
}

export type Keys = Pick<LockKeys, "clean" | "keyOf">;

/** Throws what the wait rejects with when the time is up; then the answer says who was in the way. */
const expired: unique symbol = Symbol("expired");

export class TablePathLocks implements PathLocks, HoldKeeper {
  readonly root: string;
  readonly table: LockTable;
  readonly #keys: Keys;
  readonly #options: TablePathLocksOptions;
  readonly #line = new Line();
  readonly #grants = new Set<Grant>();
  readonly #closed = new AbortController();
  readonly #forgotten = new FinalizationRegistry<Grant>((grant) => this.#releaseForgotten(grant));
  #mirror: Mirror | undefined;
  #isWatching = false;

  protected constructor(table: LockTable, keys: Keys, options: TablePathLocksOptions) {
    this.root = options.root;
    this.table = table;
    this.#keys = keys;
    this.#options = options;
  }

  static async open(ground: Ground, options: TablePathLocksOptions): Promise<TablePathLocks> {
    checkTimeout(options.timeoutMs ?? 0);
    const { root, slotsPerEpoch, TableClass = LockTable } = options;
    const keys = options.keys ?? (await LockKeys.open(ground.staging, root, ground.layout.directory));
    const table = await TableClass.open(ground, { root, slotsPerEpoch });
    // What the dead have committed is done before anybody looks at the tree.
    await table.sweep();
    await table.collect();
    const locks = new this(table, keys, options);
    if (options.interop) {
      const onTaken = (grant: Grant, file: string): void =>
        void locks.#giveUp(grant, `a foreign program has put its own lock file at ${file}`).catch(() => undefined);
      locks.#mirror = await Mirror.open(ground, { root, closed: locks.#closed.signal, onTaken });
    }
    return locks;
  }

  async tryAcquire(path: string, options: Omit<AcquireOptions, "timeoutMs"> = {}): Promise<PathHold | undefined> {
    const { mode, shared } = options;
    return await this.#acquire([{ path, mode, shared }], { ...options, timeoutMs: 0 }).catch((error: unknown) => {
      if (isHoldfastError(error, "LOCK_TIMEOUT")) return undefined;
      throw error;
    });
  }

  async acquire(path: string, options: AcquireOptions = {}): Promise<PathHold> {
    const { mode, shared } = options;
    return await this.#acquire([{ path, mode, shared }], options);
  }

  async acquireAll(requests: readonly (string | LockRequest)[], options: AcquireManyOptions = {}): Promise<PathHold> {
    return await this.#acquire(requests.map(toRequest), options);
  }

  async acquireMove(from: string, to: string, options: AcquireManyOptions = {}): Promise<PathHold> {
    const ends = [from, to].map((path): LockRequest => ({ path, mode: "tree" }));
    return await this.#acquire(ends, options);
  }

  async withLock<T>(
    what: string | LockRequest | readonly (string | LockRequest)[],
    work: (hold: PathHold) => Promise<T>,
    options: AcquireOptions = {},
  ): Promise<T> {
    const { mode, shared } = options;
    const wanted = (typeof what === "string" || !Array.isArray(what) ? [what as string | LockRequest] : what).map(
      toRequest,
    );
    const hold = await this.#acquire(
      wanted.map((each) => ({ ...each, mode: each.mode ?? mode, shared: each.shared ?? shared })),
      options,
    );
    let result: T;
    try {
      result = await work(hold);
    } catch (error) {
      // The error of the work is the one that matters; what could not be released is released by the end of this process at the latest.
      await hold.release().catch(() => undefined);
      throw error;
    }
    await hold.release();
    return result;
  }

  async receive(token: string, { signal }: Cancel = {}): Promise<PathHold> {
    signal?.throwIfAborted();
    const life = await this.#life();
    const { id, claims, fence, sinceMs, tag } = await this.takeOver(token, life);
    const grant = new Grant({ id, life, asked: claims, claims, fence, sinceMs, tag });
    return await this.#giveOut(grant, { startMs: 0 });
  }

  async list({ under = "" }: { under?: string | undefined } = {}): Promise<HeldLock[]> {
    const key = await this.#keys.keyOf(this.#keys.clean(under));
    return await describeHeld(this.table.ground, await this.#standing(), isShownUnder(key));
  }

  async break(path: string): Promise<HeldLock[]> {
    const key = await this.#keys.keyOf(this.#keys.clean(path));
    const broken = new Map<string, HeldLock>();
    // Again until nobody holds it: one that was handed over meanwhile is held by another.
    for (;;) {
      const requests = await this.#standing();
      const evicted = holdersOf(requests, key);
      if (evicted.length === 0) return [...broken.values()];
      const shown = await describeHeld(this.table.ground, requests, () => true);
      for (const lock of shown)
        if (evicted.some(({ id }) => id === lock.holdId)) broken.set(`${lock.holdId} ${lock.path}`, lock);
      await this.table.drop(evicted);
      for (const grant of this.#grants)
        if (evicted.some(({ id }) => id === grant.id)) grant.lose(grant.lost("it was broken"));
    }
  }

  /** A change of the tree under `hold`: prepared unseen, committed in one step. */
  async draft(hold: PathHold): Promise<RedoDraft> {
    return await RedoDraft.begin(this.table, this.#keys, KeptHold.grantOf(hold, this));
  }

  async close(): Promise<void> {
    if (!this.#closed.signal.aborted)
      this.#closed.abort(holdfastError("CLOSED", `The locks of ${this.root} were closed.`, {}));
    const ends = await Promise.allSettled([...this.#grants].map((grant) => this.release(grant)));
    await this.#mirror?.settle();
    if (this.#options.ownsGround) await this.table.ground.close();
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async release(grant: Grant): Promise<void> {
    for (const inner of grant.inner) await this.release(inner);
    // What others take for the end of all effects must be that. If it cannot be settled now, the hold stands.
    if (!grant.isCovered) await settleRedos(this.table, grant);
    if (this.#mirror !== undefined && !grant.isCovered) await this.#mirror.hide(grant);
    this.#grants.delete(grant);
    const wasHeld = grant.release();
    if (grant.isCovered) return;
    // Also when it was lost: nothing will be done under it any more, and others need not find that out by themselves.
    const removal = this.table.release(grant.id);
    await (wasHeld ? removal : removal.catch(() => undefined));
  }

  async check(grant: Grant, { isRefresh }: { readonly isRefresh: boolean }): Promise<void> {
    grant.mustHold();
    const { state } = await this.table.read();
    if (findOwn(state.requests, grant) === undefined) throw loseIt(grant);
    grant.mustHold();
    if (isRefresh) grant.lastActiveMs = this.#clock.wallMs();
  }

  async upgrade(grant: Grant, to: WidthChange, options: Waiting): Promise<void> {
    mustBeWhole(grant);
    const waiting = { timeoutMs: this.#options.timeoutMs, ...options };
    const work = (left: Waiting): Promise<void> => widen(this.table, grant, to, left);
    if (this.#mirror === undefined) return await work(waiting);
    await this.#mirror.showAround(grant, changed(grant.asked, to), waiting, work);
  }

  async downgrade(grant: Grant, to: WidthChange): Promise<void> {
    mustBeWhole(grant);
    await narrow(this.table, grant, to);
    await this.#mirror?.adapt(grant);
  }

  async transfer(
    grant: Grant,
    { expiresMs = grant.life.holder.leaseMs }: { expiresMs?: number | undefined },
  ): Promise<string> {
    mustBeWhole(grant);
    for (const inner of grant.inner) await this.release(inner);
    await settleRedos(this.table, grant);
    const token = await handOver(this.table, grant, { expiresMs });
    await this.#mirror?.leave(grant);
    this.#grants.delete(grant);
    grant.release();
    return token;
  }

  protected async takeOver(token: string, life: Life): Promise<Request> {
    return await takeOver(this.table, token, life);
  }

  get #clock() {
    return this.table.ground.ports.clock;
  }

  async #life(): Promise<Life> {
    this.#closed.signal.throwIfAborted();
    return await this.table.ground.life();
  }

  async #standing(): Promise<Request[]> {
    const { state } = await this.table.read();
    return await this.table.standing(state.requests);
  }

  async #acquire(wanted: readonly LockRequest[], options: AcquireManyOptions): Promise<PathHold> {
    const { timeoutMs = this.#options.timeoutMs ?? 0, signal, tag, within, idleMs } = options;
    checkTimeout(timeoutMs);
    checkIdle(idleMs);
    if (tag !== undefined && tag.length > tagLengthMax) throw tooLong(tag);
    signal?.throwIfAborted();
    const asked = wanted.map(({ path, mode = "exact", shared = false }) => ({
      path: this.#keys.clean(path),
      mode,
      shared,
    }));
    if (asked.length === 0) throw new TypeError("There is nothing to lock.");
    const parent = within === undefined ? undefined : KeptHold.grantOf(within, this);
    const waiting = { timeoutMs, signal };
    const startMs = this.#clock.monotonicMs();
    for (let attempt = 0; attempt < resolvingsMax; attempt++) {
      const life = await this.#life();
      parent?.mustHold();
      const claims = await this.#claims(asked);
      const ask: Ask = { asked, claims, life, tag, parent, waiting };
      const grant = parent?.covers(claims) ? await this.#enterWithin(parent, ask) : await this.#enter(ask);
      // Resolved again now that nobody else may change what is there: a symbolic link that was swapped meanwhile would give two keys to one file.
      const again = await this.#claims(asked).catch(async (error: unknown) => {
        await this.release(grant);
        throw error;
      });
      if (again.every(({ path }, index) => path === claims[index]?.path))
        return await this.#giveOut(grant, { startMs, timeoutMs, signal, idleMs });
      await this.release(grant);
    }
    const { path = "" } = asked[0] ?? {};
    const message = `${path} leads somewhere else each time it is looked at.`;
    throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
  }

  async #claims(asked: readonly Claim[]): Promise<Claim[]> {
    const claims: Claim[] = [];
    for (const { path, mode, shared } of asked) claims.push({ path: await this.#keys.keyOf(path), mode, shared });
    return claims;
  }

  /** What a hold covers needs no request: whoever would conflict with it conflicts with that hold. Only its siblings do not, and they wait here. */
  async #enterWithin(parent: Grant, { asked, claims, life, tag, waiting }: Ask): Promise<Grant> {
    const leave = await this.#enterLine(parent.line, asked, claims, waiting);
    parent.mustHold();
    const { id, fence } = parent;
    const sinceMs = this.#clock.wallMs();
    const grant = new Grant({ id, life, asked, claims, fence, sinceMs, tag, parent, isCovered: true });
    grant.onOver.push(leave);
    return grant;
  }

  async #enter(ask: Ask): Promise<Grant> {
    const { asked, claims, parent, waiting } = ask;
    // Whoever says what he is within stands in the table at once, where the others can see for whom he waits.
    const leave = parent === undefined ? await this.#enterLine(this.#line, asked, claims, waiting) : undefined;
    try {
      const grant = await this.#enterTable(ask);
      if (leave !== undefined) grant.onOver.push(leave);
      return grant;
    } catch (error) {
      leave?.();
      throw error;
    }
  }

  async #enterLine(
    line: Line,
    asked: readonly Claim[],
    claims: readonly Claim[],
    waiting: Waiting,
  ): Promise<() => void> {
    const leave = line.tryEnter(claims);
    if (leave !== undefined) return leave;
    const { timeoutMs = 0, signal } = waiting;
    if (timeoutMs <= 0) throw await this.#timedOut(asked, claims, 0);
    const startMs = this.#clock.monotonicMs();
    const deadline = this.#deadline(waiting);
    try {
      const entered = await line.enter(claims, deadline.signal);
      // Both waits together last no longer than was asked for.
      waiting.timeoutMs = Math.max(0, timeoutMs - (this.#clock.monotonicMs() - startMs));
      return entered;
    } catch (error) {
      signal?.throwIfAborted();
      throw error === expired ? await this.#timedOut(asked, claims, timeoutMs) : error;
    } finally {
      deadline.cancel();
    }
  }

  async #enterTable({ asked, claims, life, tag, parent, waiting }: Ask): Promise<Grant> {
    const { timeoutMs = 0 } = waiting;
    const wanted = { claims, life, tag, within: parent?.id };
    const queued = await enqueue(this.table, wanted, { wait: timeoutMs > 0 });
    if (!("request" in queued))
      throw lockTimeout(asked, 0, await describeBlockers(this.table.ground, queued.blockers, claims));
    const { request, table } = queued;
    try {
      if (queued.blockers.length > 0) await this.#waitInTable(queued, asked, life, waiting);
      // What somebody committed here before he was dropped is done before anything else is.
      await this.table.completeOrphans(table, (redo) => conflictsWith(claims, redo.claims));
      parent?.mustHold();
      life.mustGoOn();
    } catch (error) {
      await this.table.release(request.id).catch(() => undefined);
      throw error;
    }
    const { id, fence } = request;
    return new Grant({ id, life, asked, claims, fence, sinceMs: this.#clock.wallMs(), tag, parent });
  }

  async #waitInTable(queued: Queued, asked: readonly Claim[], life: Life, waiting: Waiting): Promise<void> {
    const deadline = this.#deadline(waiting);
    try {
      await waitFor(this.table, queued, { life, signal: deadline.signal });
    } catch (error) {
      waiting.signal?.throwIfAborted();
      if (error !== expired) throw error;
      const standing = await this.table.standing(queued.blockers);
      const blockers = await describeBlockers(this.table.ground, standing, queued.request.claims);
      throw lockTimeout(asked, waiting.timeoutMs ?? 0, blockers);
    } finally {
      deadline.cancel();
    }
  }

  #deadline(waiting: Waiting): Deadline {
    return new Deadline(this.#clock, { ...waiting, closed: this.#closed.signal, timedOut: () => expired });
  }

  async #timedOut(asked: readonly Claim[], claims: readonly Claim[], waitedMs: number): Promise<Error> {
    const blockers = conflictingOf(await this.#standing(), { id: "", claims });
    return lockTimeout(asked, waitedMs, await describeBlockers(this.table.ground, blockers, claims));
  }

  /** Shown to foreign programs first: whoever gets the hold may rely on it. */
  async #giveOut(grant: Grant, options: Patience & { readonly idleMs?: number | undefined }): Promise<PathHold> {
    if (this.#mirror === undefined || grant.isCovered) return this.#newHold(grant, options);
    try {
      await this.#mirror.show(grant, grant.asked, options);
      // It may have taken long, and somebody may have broken it meanwhile.
      await this.check(grant, { isRefresh: false });
    } catch (error) {
      await this.release(grant);
      throw error;
    }
    return this.#newHold(grant, options);
  }

  #newHold(grant: Grant, { idleMs }: { readonly idleMs?: number | undefined }): PathHold {
    this.#grants.add(grant);
    grant.onOver.push(() => this.#forgotten.unregister(grant));
    this.#watchOver();
    if (idleMs !== undefined && idleMs < Infinity) this.#endWhenIdle(grant, idleMs);
    const hold = new KeptHold(this, grant);
    this.#forgotten.register(hold, grant, grant);
    return hold;
  }

  /** Learns of holds that others have dropped, while there are any: their owners may be busy and ask for nothing. */
  #watchOver(): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    const { volume } = this.table.ground.ports.disk;
    const watch = async (): Promise<void> => {
      while (this.#grants.size > 0 && !this.#closed.signal.aborted) {
        const leaseMs = Math.min(...[...this.#grants].map(({ life }) => life.holder.leaseMs));
        const pauseMs = volume.kind === "local" ? localCheckMs : leaseMs * networkCheckPart;
        await this.#clock.sleep(pauseMs, { background: true, signal: this.#closed.signal });
        // A look that fails says nothing: each hold still has its own deadline.
        for (const grant of [...this.#grants])
          if (grant.isHeld) await this.check(grant, { isRefresh: false }).catch(() => undefined);
          else this.#grants.delete(grant);
      }
    };
    watch()
      .catch(() => undefined) // Closed.
      .finally(() => (this.#isWatching = false));
  }

  #endWhenIdle(grant: Grant, idleMs: number): void {
    const watch = async (): Promise<void> => {
      for (let leftMs = idleMs; leftMs > 0; leftMs = idleMs - (this.#clock.wallMs() - grant.lastActiveMs))
        await this.#clock.sleep(Math.min(leftMs, idleMs), { background: true, signal: this.#closed.signal });
      if (!grant.isHeld) return;
      await this.#giveUp(grant, `nothing was done under it for ${idleMs} ms (option idleMs)`);
    };
    // Closed, or it could not be released: then it ends with this process.
    watch().catch(() => undefined);
  }

  async #giveUp(grant: Grant, why: string): Promise<void> {
    grant.lose(grant.lost(why));
    await this.release(grant);
  }

  #releaseForgotten(grant: Grant): void {
    if (!grant.isHeld) return;
    const paths = grant.asked.map(({ path }) => path || ".").join(", ");
    this.table.ground.ports.host.warn(
      `A lock on ${paths} was never released and nobody has it any more: it is released now.`,
    );
    this.release(grant).catch(() => undefined);
  }
}

/** What one call asks for. */
interface Ask {
  readonly asked: readonly Claim[];
  readonly claims: readonly Claim[];
  readonly life: Life;
  readonly tag: string | undefined;
  readonly parent: Grant | undefined;
  readonly waiting: Waiting;
}

function toRequest(request: string | LockRequest): LockRequest {
  return typeof request === "string" ? { path: request } : request;
}

/** A hold within another has no request of its own that could change. */
function mustBeWhole(grant: Grant): void {
  if (grant.isCovered) throw new TypeError("This hold is part of the one that it is within: change that one.");
}

function checkIdle(idleMs: number | undefined): void {
  if (idleMs !== undefined && !(idleMs > 0))
    throw new RangeError(`idleMs must be a number of milliseconds above 0, not ${idleMs}.`);
}

function tooLong(tag: string): Error {
  const message = `A tag has at most ${tagLengthMax} characters, not ${tag.length}.`;
  return holdfastError("TOO_LARGE", message, { limit: tagLengthMax, actual: tag.length });
}
