// Path locks on a lock table: opening, listing, breaking and closing. What happens to a single hold
// is in the files of its verbs.
import type { Cancel } from "../../common.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { checkTimeout } from "../../durable/wait/deadline.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { Interop } from "../interop/interop.ts";
import { LockKeys, type Keys } from "../naming/lock-key.ts";
import { decideNames } from "../naming/lock-names.ts";
import { RedoDraft } from "../redo/draft.ts";
import { conflictsWith, holdingOf } from "../table/conflict.ts";
import { describeHeld } from "../table/describe.ts";
import { LockTable } from "../table/lock-table.ts";
import type { TableRequest } from "../table/request.ts";
import { acquire } from "./acquire.ts";
import { CallArguments } from "./arguments.ts";
import { downgrade } from "./downgrade.ts";
import type { Grant } from "./grant.ts";
import { LocalQueue } from "./local-queue.ts";
import { PathHoldHandle, type HoldVerbs, type LocksContext } from "./hold-verbs.ts";
import { check, HoldMonitor } from "./monitor.ts";
import { workUnder, type PathHold } from "./path-hold.ts";
import type { AcquireManyOptions, AcquireOptions, HeldLock, LockRequest, PathLocks } from "./path-locks.ts";
import { release } from "./release.ts";
import { receive, transfer } from "./transfer.ts";
import { upgrade } from "./upgrade.ts";

export interface TablePathLocksOptions {
  /**
   * Of the tree. Without one the locks are on names, which `keys` must give, and no draft can be
   * made under them.
   */
  readonly root?: string | undefined;
  readonly keys?: Keys | undefined;
  readonly timeoutMs?: number | undefined;
  readonly slotsPerEpoch?: number | undefined;
  /** Closing the locks closes the ground. */
  readonly ownsGround?: boolean | undefined;
  /** Only to `list`: no session is begun, and nothing is made or swept. */
  readonly toLook?: boolean | undefined;
  /** Lock files for foreign programs are written, and theirs respected. */
  readonly interop?: boolean | undefined;
  /** Known-wrong variants of the table and of the verbs, for tests. */
  readonly TableClass?: typeof LockTable | undefined;
  readonly verbs?: Partial<HoldVerbs> | undefined;
}

const openedWith = new WeakMap<LocksContext, TablePathLocks>();

export class TablePathLocks implements PathLocks {
  readonly root: string;
  readonly table: LockTable;
  readonly #locks: LocksContext;
  readonly #closed: AbortController;
  readonly #ownsGround: boolean;
  /** Calls that may still come to a hold. */
  readonly #acquiring = new Set<Promise<unknown>>();

  private constructor(root: string, locks: LocksContext, closed: AbortController, ownsGround: boolean) {
    this.root = root;
    this.table = locks.table;
    this.#locks = locks;
    this.#closed = closed;
    this.#ownsGround = ownsGround;
    openedWith.set(locks, this);
  }

  /** The locks that gave out `hold`. TypeError for what is no hold of path locks. */
  static of(hold: PathHold): TablePathLocks {
    const context = PathHoldHandle.contextOf(hold);
    const locks = context && openedWith.get(context);
    if (locks === undefined) throw new TypeError("This is not a hold of path locks.");
    return locks;
  }

  static async open(ground: Ground, options: TablePathLocksOptions): Promise<TablePathLocks> {
    const { root, slotsPerEpoch, toLook, timeoutMs, TableClass = LockTable } = options;
    checkTimeout(timeoutMs ?? 0);
    if (!toLook) await ground.session();
    const keys = await openKeys(ground, options);
    const table = await TableClass.open(ground, { root, slotsPerEpoch, toLook });
    if (!toLook) {
      // Before the caller looks at the tree: what dead holders committed is completed.
      await table.sweep();
      await table.collect();
    }
    const closed = new AbortController();
    const verbs = { acquire, receive, check, upgrade, downgrade, transfer, release, ...options.verbs };
    const monitor = new HoldMonitor({
      table,
      closed: closed.signal,
      release: (grant) => verbs.release(locks, grant),
    });
    const interop =
      options.interop && root !== undefined ? await openInterop(ground, root, closed, monitor) : undefined;
    const queue = new LocalQueue<Grant>();
    const locks: LocksContext = { table, keys, queue, monitor, interop, closed: closed.signal, timeoutMs, verbs };
    return new TablePathLocks(root ?? ground.layout.directory, locks, closed, options.ownsGround ?? false);
  }

  async tryAcquire(path: string, options: Omit<AcquireOptions, "timeoutMs"> = {}): Promise<PathHold | undefined> {
    const call = new CallArguments("tryAcquire");
    const requests = [call.path("path", path, options)];
    return await this.#acquire(requests, { ...call.options(options), timeoutMs: 0 }).catch((error: unknown) => {
      if (isHoldfastError(error, "LOCK_TIMEOUT")) return undefined;
      throw error;
    });
  }

  async acquire(path: string, options: AcquireOptions = {}): Promise<PathHold> {
    const call = new CallArguments("acquire");
    return await this.#acquire([call.path("path", path, options)], call.options(options));
  }

  async acquireAll(requests: readonly (string | LockRequest)[], options: AcquireManyOptions = {}): Promise<PathHold> {
    const call = new CallArguments("acquireAll");
    return await this.#acquire(call.list("requests", requests), call.options(options));
  }

  async acquireMove(from: string, to: string, options: AcquireManyOptions = {}): Promise<PathHold> {
    const call = new CallArguments("acquireMove");
    const ends = [call.path("from", from, { mode: "tree" }), call.path("to", to, { mode: "tree" })];
    return await this.#acquire(ends, call.options(options));
  }

  async withLock<T>(
    what: string | LockRequest | readonly (string | LockRequest)[],
    work: (hold: PathHold) => Promise<T>,
    options: AcquireOptions = {},
  ): Promise<T> {
    const call = new CallArguments("withLock");
    const requests = Array.isArray(what) ? call.list("what", what, options) : [call.one("what", what, options)];
    call.work("work", work);
    return await workUnder(await this.#acquire(requests, call.options(options)), work);
  }

  async receive(token: string, options: Cancel = {}): Promise<PathHold> {
    new CallArguments("receive").text("token", token);
    return await this.#untilClosed(this.#locks.verbs.receive(this.#locks, token, options));
  }

  async list({ under = "" }: { under?: string | undefined } = {}): Promise<HeldLock[]> {
    const key = await this.#keyOf(new CallArguments("list").text("under", under));
    const { state } = await this.table.read();
    return await describeHeld(this.table.ground, await this.table.seen(state.requests), { under: key });
  }

  async break(path: string): Promise<HeldLock[]> {
    const wanted = [
      { path: await this.#keyOf(new CallArguments("break").text("path", path)), mode: "exact", shared: false } as const,
    ];
    const requests = await this.#standing();
    const holding = holdingOf(requests).filter(({ claims }) => conflictsWith(claims, wanted));
    const evicted = new Set(holding.map(({ id }) => id));
    const shown = await describeHeld(this.table.ground, requests);
    // Again while one of them stands: if it was transferred meanwhile, the judgement was about an
    // older state of it. Requests that come to hold after them stay.
    const isEvicted = ({ id }: TableRequest): boolean => evicted.has(id);
    for (let left = requests.filter(isEvicted); left.length > 0; left = (await this.#standing()).filter(isEvicted))
      await this.table.drop(left);
    for (const grant of this.#locks.monitor.grants) if (evicted.has(grant.id)) grant.lose("it was broken");
    return shown.filter(({ holdId }) => evicted.has(holdId));
  }

  /** A change of the tree under `hold`: prepared unseen, committed in one step. */
  async draft(hold: PathHold): Promise<RedoDraft> {
    return await RedoDraft.begin(this.table, this.#locks.keys, PathHoldHandle.grantOf(hold, this.#locks));
  }

  async close(): Promise<void> {
    const { monitor, interop, verbs } = this.#locks;
    if (!this.#closed.signal.aborted)
      this.#closed.abort(holdfastError("CLOSED", `The locks of ${this.root} were closed.`, {}));
    // Before any of them is released: the next holder must not come in beside work that goes on.
    for (const grant of monitor.grants) grant.warn("its locks were closed");
    // Waiting callers leave now. A request on its way to the disk needs the ground until its
    // outcome is known.
    await Promise.allSettled(this.#acquiring);
    const ends = await Promise.allSettled([...monitor.unreleased].map((grant) => verbs.release(this.#locks, grant)));
    await interop?.settle();
    if (this.#ownsGround) await this.table.ground.close();
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #acquire(requests: readonly LockRequest[], options: AcquireManyOptions): Promise<PathHold> {
    return await this.#untilClosed(this.#locks.verbs.acquire(this.#locks, requests, options));
  }

  /** `close` waits for it. */
  async #untilClosed(acquiring: Promise<PathHold>): Promise<PathHold> {
    this.#acquiring.add(acquiring);
    try {
      return await acquiring;
    } finally {
      this.#acquiring.delete(acquiring);
    }
  }

  async #keyOf(path: string): Promise<string> {
    const { keys } = this.#locks;
    return await keys.keyOf(keys.clean(path));
  }

  async #standing(): Promise<TableRequest[]> {
    const { state } = await this.table.read();
    return await this.table.standing(state.requests);
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

async function openInterop(
  ground: Ground,
  root: string,
  { signal: closed }: AbortController,
  monitor: HoldMonitor,
): Promise<Interop> {
  const onTaken = (grant: Grant, file: string): void =>
    void monitor.evict(grant, `a foreign program has put its own lock file at ${file}`).catch(() => undefined);
  return await Interop.open(ground, { root, closed, onTaken });
}
