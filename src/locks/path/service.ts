// Path locks on a lock table: grants and everything that happens to them in this process.
import type { Cancel, Waiting } from "../../common.ts";
import { checkTimeout } from "../../durable/wait/deadline.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { CheckedPathLocks, claimsAsked } from "./arguments.ts";
import { downgrade } from "./downgrade.ts";
import { Releaser } from "./release.ts";
import { Acquirer, type AcquireWait } from "./acquire.ts";
import { Grant } from "./grant.ts";
import { HoldMonitor } from "./monitor.ts";
import { describeHeld, holdersOf, isShownUnder } from "../table/listing.ts";
import { LockKeys, type Keys } from "../naming/lock-key.ts";
import { decideNames } from "../naming/lock-names.ts";
import { LockTable } from "../table/lock-table.ts";
import { Interop } from "../interop/interop.ts";
import { KeptHold, type HoldKeeper, type PathHold } from "./path-hold.ts";
import type { AcquireManyOptions, AcquireOptions, HeldLock, LockRequest, PathLocks } from "./path-locks.ts";
import { RedoDraft, settleRedos } from "../redo/draft.ts";
import { fenceOf, type LockRequestRecord } from "../table/request.ts";
import { takeOver } from "./transfer.ts";
import { changed, isListed, loseIt, settleWidth, upgrade, type LockChange } from "./upgrade.ts";
import { workUnder } from "./work-under.ts";

export interface TablePathLocksOptions {
  /** Of the tree. Without one the locks are on names, which `keys` must give, and no draft can be made under them. */
  readonly root?: string | undefined;
  readonly timeoutMs?: number | undefined;
  readonly slotsPerEpoch?: number | undefined;
  /** Closing the locks closes the ground. */
  readonly ownsGround?: boolean | undefined;
  /** Only to `list`: nothing is joined, made or swept. */
  readonly toLook?: boolean | undefined;
  /** Lock files for foreign programs are written, and theirs respected. */
  readonly interop?: boolean | undefined;
  /** What they run on: the real ones, or known-wrong variants. */
  readonly TableClass?: typeof LockTable | undefined;
  readonly EntranceClass?: typeof Acquirer | undefined;
  readonly EndingClass?: typeof Releaser | undefined;
  readonly keys?: Keys | undefined;
}

export class TablePathLocks implements PathLocks, HoldKeeper {
  readonly root: string;
  readonly table: LockTable;
  readonly #keys: Keys;
  readonly #options: TablePathLocksOptions;
  readonly #closed = new AbortController();
  readonly #entrance: Acquirer;
  readonly #watch: HoldMonitor;
  readonly #ending: Releaser;
  readonly #acquiring = new Set<Promise<unknown>>();
  #mirror: Interop | undefined;

  protected constructor(table: LockTable, keys: Keys, options: TablePathLocksOptions) {
    this.root = options.root ?? table.ground.layout.directory;
    this.table = table;
    this.#keys = keys;
    this.#options = options;
    const closed = this.#closed.signal;
    this.#entrance = new (options.EntranceClass ?? Acquirer)(table, keys, closed);
    this.#watch = new HoldMonitor({
      ports: table.ground.ports,
      closed,
      check: (grants) => this.#checkAll(grants),
      giveUp: (grant, why) => this.#giveUp(grant, why),
      release: (grant) => this.release(grant),
    });
    const [entrance, watch] = [this.#entrance, this.#watch];
    this.#ending = new (options.EndingClass ?? Releaser)({ table, entrance, watch, mirror: () => this.#mirror });
  }

  static async open(ground: Ground, options: TablePathLocksOptions): Promise<TablePathLocks> {
    checkTimeout(options.timeoutMs ?? 0);
    const { root, slotsPerEpoch, toLook, TableClass = LockTable } = options;
    // One that only looks has none, and needs none.
    if (!toLook) await ground.session();
    const keys = await openKeys(ground, options);
    const table = await TableClass.open(ground, { root, slotsPerEpoch, toLook });
    if (!toLook) {
      // What the dead have committed is done before anybody looks at the tree.
      await table.sweep();
      await table.collect();
    }
    const locks = new this(table, keys, options);
    if (options.interop && root !== undefined) {
      const onTaken = (grant: Grant, file: string): void =>
        void locks.#giveUp(grant, `a foreign program has put its own lock file at ${file}`).catch(() => undefined);
      locks.#mirror = await Interop.open(ground, { root, closed: locks.#closed.signal, onTaken });
    }
    return locks;
  }

  async tryAcquire(path: string, options: Omit<AcquireOptions, "timeoutMs"> = {}): Promise<PathHold | undefined> {
    const asked = new CheckedPathLocks("tryAcquire");
    const wanted = [asked.path("path", path, options)];
    return await this.#acquire(wanted, { ...asked.options(options), timeoutMs: 0 }).catch((error: unknown) => {
      if (isHoldfastError(error, "LOCK_TIMEOUT")) return undefined;
      throw error;
    });
  }

  async acquire(path: string, options: AcquireOptions = {}): Promise<PathHold> {
    const asked = new CheckedPathLocks("acquire");
    return await this.#acquire([asked.path("path", path, options)], asked.options(options));
  }

  async acquireAll(requests: readonly (string | LockRequest)[], options: AcquireManyOptions = {}): Promise<PathHold> {
    const asked = new CheckedPathLocks("acquireAll");
    return await this.#acquire(asked.list("requests", requests), asked.options(options));
  }

  async acquireMove(from: string, to: string, options: AcquireManyOptions = {}): Promise<PathHold> {
    const asked = new CheckedPathLocks("acquireMove");
    const ends = [asked.path("from", from, { mode: "tree" }), asked.path("to", to, { mode: "tree" })];
    return await this.#acquire(ends, asked.options(options));
  }

  async withLock<T>(
    what: string | LockRequest | readonly (string | LockRequest)[],
    work: (hold: PathHold) => Promise<T>,
    options: AcquireOptions = {},
  ): Promise<T> {
    const asked = new CheckedPathLocks("withLock");
    const wanted = Array.isArray(what) ? asked.list("what", what, options) : [asked.one("what", what, options)];
    asked.work("work", work);
    return await workUnder(await this.#acquire(wanted, asked.options(options)), work);
  }

  async receive(token: string, { signal }: Cancel = {}): Promise<PathHold> {
    new CheckedPathLocks("receive").text("token", token);
    signal?.throwIfAborted();
    return await this.#whileOpen(async () => {
      const life = await this.#life();
      const request = await this.takeOver(token, life);
      const { id, claims, sinceMs, tag, turn } = request;
      const grant = new Grant({ id, life, asked: claims, claims, fence: fenceOf(request, turn), sinceMs, tag, turn });
      return await this.#giveOut(grant, { startMs: 0, signal });
    });
  }

  async list({ under = "" }: { under?: string | undefined } = {}): Promise<HeldLock[]> {
    const key = await this.#keys.keyOf(this.#keys.clean(new CheckedPathLocks("list").text("under", under)));
    const { state } = await this.table.read();
    return await describeHeld(this.table.ground, await this.table.seen(state.requests), isShownUnder(key));
  }

  async break(path: string): Promise<HeldLock[]> {
    const key = await this.#keys.keyOf(this.#keys.clean(new CheckedPathLocks("break").text("path", path)));
    const requests = await this.#standing();
    const evicted = new Set(holdersOf(requests, key).map(({ id }) => id));
    const shown = await describeHeld(this.table.ground, requests, () => true);
    // Again while one of them stands: it may have changed hands just now, and then the verdict was about what it was before. Whoever comes in after them stays.
    const ofThem = ({ id }: LockRequestRecord): boolean => evicted.has(id);
    for (let left = requests.filter(ofThem); left.length > 0; left = (await this.#standing()).filter(ofThem))
      await this.table.drop(left);
    for (const grant of this.#watch.grants) if (evicted.has(grant.id)) grant.lose(grant.lost("it was broken"));
    return shown.filter(({ holdId }) => evicted.has(holdId));
  }

  /** A change of the tree under `hold`: prepared unseen, committed in one step. */
  async draft(hold: PathHold): Promise<RedoDraft> {
    return await RedoDraft.begin(this.table, this.#keys, KeptHold.grantOf(hold, this));
  }

  async close(): Promise<void> {
    if (!this.#closed.signal.aborted)
      this.#closed.abort(holdfastError("CLOSED", `The locks of ${this.root} were closed.`, {}));
    // Before any of them is released: the next holder must not come in beside work that goes on.
    for (const grant of this.#watch.grants) this.tell(grant, "its locks were closed");
    // Whoever waits leaves now. A request that is on its way to the disk needs the ground until it has arrived, or nobody would know whether it did.
    await Promise.allSettled(this.#acquiring);
    const ends = await Promise.allSettled([...this.#watch.unreleased].map((grant) => this.release(grant)));
    await this.#mirror?.settle();
    if (this.#options.ownsGround) await this.table.ground.close();
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async release(grant: Grant): Promise<void> {
    await this.#ending.release(grant);
  }

  async check(grant: Grant, { isRefresh }: { readonly isRefresh: boolean }): Promise<void> {
    grant.mustHold();
    const { claims } = grant;
    const { state } = await this.table.read();
    if (!isListed(state.requests, grant, claims)) throw loseIt(grant);
    grant.mustHold();
    if (isRefresh) grant.touch(this.#clock);
  }

  async #checkAll(grants: readonly Grant[]): Promise<void> {
    if (grants.length === 0) return;
    const claims = grants.map((grant) => grant.claims);
    const { state } = await this.table.read();
    const listed = new Map(state.requests.map((request) => [request.id, [request]]));
    for (const [index, grant] of grants.entries())
      if (grant.isHeld && !isListed(listed.get(grant.id) ?? [], grant, claims[index] ?? [])) loseIt(grant);
    for (const grant of grants) await settleWidth(this.table, grant);
  }

  async upgrade(grant: Grant, asked: LockChange, options: Waiting): Promise<void> {
    mustBeWhole(grant);
    const to = new CheckedPathLocks("upgrade").change("to", asked);
    const waiting = { timeoutMs: this.#options.timeoutMs, ...options };
    const work = (left: Waiting): Promise<void> => upgrade(this.table, grant, to, left);
    if (this.#mirror === undefined) return await work(waiting);
    await this.#mirror.showAround(grant, changed(grant.asked, to), waiting, work);
  }

  async downgrade(grant: Grant, asked: LockChange): Promise<void> {
    mustBeWhole(grant);
    const to = new CheckedPathLocks("downgrade").change("to", asked);
    // What was committed under all of it happens before anybody else is let into a part.
    do await settleRedos(this.table, grant);
    while (!(await downgrade(this.table, grant, to)));
    await this.#mirror?.adapt(grant);
  }

  async transfer(grant: Grant, options: { readonly expiresMs?: number | undefined }): Promise<string> {
    if (grant.parent !== undefined)
      throw new TypeError("This hold ends with the one that it is within, so it cannot go to another process.");
    return await this.#ending.transfer(grant, options);
  }

  protected tell(grant: Grant, why: string): void {
    if (grant.isHeld) grant.tell(grant.lost(why));
  }

  protected async takeOver(token: string, life: HolderSession): Promise<LockRequestRecord> {
    return await takeOver(this.table, token, life);
  }

  get #clock() {
    return this.table.ground.ports.clock;
  }

  async #life(): Promise<HolderSession> {
    this.#closed.signal.throwIfAborted();
    return await this.table.ground.session();
  }

  async #standing(): Promise<LockRequestRecord[]> {
    const { state } = await this.table.read();
    return await this.table.standing(state.requests);
  }

  async #acquire(wanted: readonly LockRequest[], options: AcquireManyOptions): Promise<PathHold> {
    return await this.#whileOpen(() => this.#enter(wanted, options));
  }

  async #whileOpen(work: () => Promise<PathHold>): Promise<PathHold> {
    const acquiring = work();
    this.#acquiring.add(acquiring);
    try {
      return await acquiring;
    } finally {
      this.#acquiring.delete(acquiring);
    }
  }

  async #enter(wanted: readonly LockRequest[], options: AcquireManyOptions): Promise<PathHold> {
    const { timeoutMs = this.#options.timeoutMs ?? 0, signal, tag, within, idleMs } = options;
    checkTimeout(timeoutMs);
    signal?.throwIfAborted();
    const asked = claimsAsked(wanted, this.#keys);
    const parent = within === undefined ? undefined : KeptHold.grantOf(within, this);
    const patience = { timeoutMs, signal, startMs: this.#clock.monotonicMs() };
    return await this.#giveOut(await this.#entrance.enter({ asked, patience, tag, parent }), { ...patience, idleMs });
  }

  /** Shown to foreign programs first: whoever gets the hold may rely on it. */
  async #giveOut(grant: Grant, options: AcquireWait & { readonly idleMs?: number | undefined }): Promise<PathHold> {
    try {
      if (this.#mirror !== undefined && !grant.isCovered) {
        await this.#mirror.show(grant, grant.asked, options);
        // It may have taken long, and somebody may have broken it meanwhile.
        await this.check(grant, { isRefresh: false });
      }
      // So may what it is within have ended, and its caller have given up: then nobody would release it.
      grant.mustHold();
      this.#closed.signal.throwIfAborted();
      options.signal?.throwIfAborted();
    } catch (error) {
      // What failed first is what the caller has to know; the release is made again until it is done.
      await this.release(grant).catch(() => undefined);
      throw error;
    }
    return this.#newHold(grant, options);
  }

  #newHold(grant: Grant, { idleMs }: { readonly idleMs?: number | undefined }): PathHold {
    const hold = new KeptHold(this, grant);
    this.#watch.begin(grant, hold, idleMs);
    return hold;
  }

  async #giveUp(grant: Grant, why: string): Promise<void> {
    grant.lose(grant.lost(why));
    await this.release(grant);
  }
}

/** WRONG_STORE, before anything of another tree is touched. */
async function openKeys(ground: Ground, { root, keys }: TablePathLocksOptions): Promise<Keys> {
  if (root !== undefined) {
    const names = await decideNames(ground.staging, ground.layout.directory, root);
    return keys ?? (await LockKeys.open(ground.ports.disk, root, names));
  }
  if (keys === undefined) throw new TypeError("Locks are on the paths of a tree, or on the names that `keys` gives.");
  return keys;
}

/** A hold within another has no request of its own that could change. */
function mustBeWhole(grant: Grant): void {
  if (grant.isCovered) throw new TypeError("This hold is part of the one that it is within: change that one.");
}
