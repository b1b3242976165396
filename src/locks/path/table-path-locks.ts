// Path locks on a lock table: opening, listing, breaking and closing. Each verb of a hold has its own file.
import type { Cancel, NameRule } from "../../common.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { checkTimeout } from "../../durable/wait/deadline.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { traceMethods } from "../../telemetry/trace.ts";
import { Interop } from "../interop/interop.ts";
import { LockKeys, type Keys } from "../naming/lock-key.ts";
import { checkNameRule, decideNames } from "../naming/lock-names.ts";
import { RedoDraft, type DraftOptions } from "../redo/draft.ts";
import { conflictsWith, holdingOf } from "../table/conflict.ts";
import { describeHeld } from "../table/describe.ts";
import { LockTable } from "../table/lock-table.ts";
import type { TableRequest } from "../table/request.ts";
import type { RequestTable } from "../table/request-table.ts";
import { tracedLockMethods } from "../traced-methods.ts";
import { acquire, type AcquireVerbOptions } from "./acquire.ts";
import { CallArguments } from "./arguments.ts";
import type { Grant } from "./grant.ts";
import { HoldHandle } from "./hold-handle.ts";
import { LocalQueue } from "./local-queue.ts";
import { HoldMonitor } from "./monitor.ts";
import { workUnder, type PathHold } from "./path-hold.ts";
import type { AcquireManyOptions, AcquireOptions, HeldLock, LockRequest, PathLocks } from "./path-locks.ts";
import { receive } from "./receive.ts";
import { release } from "./release.ts";

/** Options for path locks on a table that is already open. */
export interface OnTableOptions {
  readonly keys: Keys;
  readonly timeoutMs?: number | undefined;
  /** True for locks of the paths that users name. Default false. */
  readonly isOfUser?: boolean | undefined;
  /** If true, closing the locks closes the ground. */
  readonly ownsGround?: boolean | undefined;
}

export interface TablePathLocksOptions extends Partial<OnTableOptions> {
  /** The root of the tree. Without it the locks are on names, `keys` must provide them, and drafts are impossible. */
  readonly root?: string | undefined;
  readonly slotsPerEpoch?: number | undefined;
  /** For `list` only: begins no session, and creates or sweeps nothing. */
  readonly listOnly?: boolean | undefined;
  /** Which names are accepted. Default: what was decided for this ground; in a new one, portable names on a share. */
  readonly names?: NameRule | undefined;
  /** Writes lock files for foreign programs, and respects theirs. */
  readonly interop?: boolean | undefined;
  /** A faulty variant of the table, for tests. */
  readonly TableClass?: typeof LockTable | undefined;
}

/** A request whose path has no symbolic links, with its key. */
export interface LocatedRequest extends LockRequest {
  readonly key: string;
}

/** Path locks on any table. */
export type AnyPathLocks = TablePathLocks<RequestTable>;

/** Path locks on a table of requests, by default on that of a directory. */
export class TablePathLocks<Table extends RequestTable = LockTable> implements PathLocks {
  static {
    traceMethods(this, tracedLockMethods);
  }

  readonly root: string;
  readonly table: Table;
  readonly keys: Keys;
  /** The queue of all callers of this process that do not acquire within a hold. */
  readonly queue: LocalQueue<Grant> = new LocalQueue();
  readonly monitor: HoldMonitor;
  /** False for locks on names that Holdfast takes for its own work, such as leases. */
  readonly isOfUser: boolean;
  /** The default timeout of every wait. */
  readonly timeoutMs: number | undefined;
  readonly #closed = new AbortController();
  readonly #ownsGround: boolean;
  #interop: Interop | undefined;
  /** Calls that have not resolved yet and may still return a hold. */
  readonly #acquiring = new Set<Promise<unknown>>();

  private constructor(
    root: string,
    table: Table,
    { keys, timeoutMs, ownsGround = false, isOfUser = false }: OnTableOptions,
  ) {
    this.root = root;
    this.table = table;
    this.keys = keys;
    this.timeoutMs = timeoutMs;
    this.monitor = new HoldMonitor(table, this.closed);
    this.isOfUser = isOfUser;
    this.#ownsGround = ownsGround;
  }

  /** Returns the locks of a directory that returned `hold`. Throws a TypeError for any other hold. */
  static of(hold: PathHold): TablePathLocks {
    const locks = HoldHandle.findGrant(hold)?.locks;
    if (locks?.table instanceof LockTable) return locks as TablePathLocks;
    throw new TypeError("This is not a hold of path locks in a directory.");
  }

  /** Opens the locks of the directory of `ground`. */
  static async open(ground: Ground, options: TablePathLocksOptions): Promise<TablePathLocks> {
    const { root, slotsPerEpoch, listOnly, timeoutMs, TableClass = LockTable } = options;
    checkTimeout(timeoutMs ?? 0);
    checkNameRule("path locks", options.names);
    if (!listOnly) await ground.session();
    const keys = await openKeys(ground, options);
    const table = await TableClass.open(ground, { root, slotsPerEpoch, listOnly });
    if (!listOnly) {
      // Complete what dead holders committed, before the caller reads the tree.
      await table.sweep();
      await table.collect();
    }
    const locks = new TablePathLocks(root ?? ground.layout.directory, table, {
      ...options,
      keys,
      isOfUser: root !== undefined,
    });
    if (options.interop && root !== undefined) {
      const { closed, monitor } = locks;
      const onTaken = (grant: Grant, file: string): void =>
        void monitor.evict(grant, `a foreign program has put its own lock file at ${file}`).catch(() => undefined);
      locks.#interop = await Interop.open(ground, { root, closed, onTaken });
    }
    return locks;
  }

  /** Opens locks on `table`, which must be open and swept. Messages call it `root`. */
  static async on<T extends RequestTable>(root: string, table: T, options: OnTableOptions): Promise<TablePathLocks<T>> {
    checkTimeout(options.timeoutMs ?? 0);
    return new TablePathLocks(root, table, options);
  }

  /** Lock files for foreign programs, if the option `interop` is set. */
  get interop(): Interop | undefined {
    return this.#interop;
  }

  /** Aborts when the locks are closed. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  get clock(): Clock {
    return this.table.ground.ports.clock;
  }

  /** Returns the grant of a hold that these locks returned. Throws a TypeError for any other hold. */
  grantOf(hold: PathHold): Grant {
    const grant = HoldHandle.findGrant(hold);
    if (grant?.locks !== this) throw new TypeError("This hold was not given out by these locks.");
    return grant;
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

  /**
   * For a caller that has located the paths itself: no symbolic link is on the way to them, and `key` is their key.
   * It must locate them again under the hold, because another process may have created a link before that.
   */
  async acquireLocated(requests: readonly LocatedRequest[], options: AcquireManyOptions): Promise<PathHold> {
    return await this.#acquire(requests, { ...options, keys: requests.map(({ key }) => key) });
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
    return await this.#untilClosed(receive(this, token, options));
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
    // Repeat while one of them exists: if it was transferred meanwhile, the verdict was about an older state of it.
    // Requests that acquire the lock after them stay.
    const isEvicted = ({ id }: TableRequest): boolean => evicted.has(id);
    for (let left = requests.filter(isEvicted); left.length > 0; left = (await this.#standing()).filter(isEvicted))
      await this.table.drop(left);
    for (const grant of this.monitor.grants) if (evicted.has(grant.id)) grant.lose("it was broken");
    return shown.filter(({ holdId }) => evicted.has(holdId));
  }

  /** Prepares a change of the tree under `hold`: invisible until it is committed in one step. */
  async draft(this: TablePathLocks, hold: PathHold, options?: DraftOptions): Promise<RedoDraft> {
    return await RedoDraft.begin(this.table, this.keys, this.grantOf(hold), options);
  }

  async close(): Promise<void> {
    const { monitor } = this;
    if (!this.#closed.signal.aborted)
      this.#closed.abort(holdfastError("CLOSED", `The locks of ${this.root} were closed.`, {}));
    // Warn all holds before any is released: the next holder must not enter while work continues.
    for (const grant of monitor.grants) grant.warn("its locks were closed");
    // Waiting callers end now. A request that is being written needs the ground until its outcome is known.
    await Promise.allSettled(this.#acquiring);
    const ends = await Promise.allSettled([...monitor.unreleased].map((grant) => release(grant)));
    await this.interop?.settle();
    if (this.#ownsGround) await this.table.ground.close();
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #acquire(requests: readonly LockRequest[], options: AcquireVerbOptions): Promise<PathHold> {
    return await this.#untilClosed(acquire(this, requests, options));
  }

  /** Registers a call, so that `close` waits for it. */
  async #untilClosed(acquiring: Promise<PathHold>): Promise<PathHold> {
    this.#acquiring.add(acquiring);
    try {
      return await acquiring;
    } finally {
      this.#acquiring.delete(acquiring);
    }
  }

  async #keyOf(path: string): Promise<string> {
    return await this.keys.keyOf(this.keys.clean(path));
  }

  async #standing(): Promise<TableRequest[]> {
    const { state } = await this.table.read();
    return await this.table.standing(state.requests);
  }
}

/** Throws WRONG_STORE before anything in another tree is touched. */
async function openKeys(ground: Ground, { root, keys, names }: TablePathLocksOptions): Promise<Keys> {
  if (root !== undefined) {
    const decided = await decideNames(ground.staging, ground.layout.directory, root, names);
    return keys ?? (await LockKeys.open(ground.ports.disk, root, decided));
  }
  if (keys === undefined) throw new TypeError("Locks are on the paths of a tree, or on the names that `keys` gives.");
  return keys;
}
