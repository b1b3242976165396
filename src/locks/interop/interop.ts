// Interop: shows the holds of this process to foreign programs as lock files of the `.ovlock` kind, and respects
// theirs. The lock table remains authoritative.
import { messageOf } from "../../errors.ts";
import type { Waiting } from "../../common.ts";
import type { AcquireWait } from "../path/path-locks.ts";
import { checkTimeout, Deadline, leftMsOf } from "../../durable/wait/deadline.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { randomName } from "../../format/id.ts";
import { ChangeWaiter } from "../../durable/wait/change-waiter.ts";
import type { Claim } from "../table/conflict.ts";
import { ForeignLocks, type FoundLock } from "./foreign-locks.ts";
import type { Grant } from "../path/grant.ts";
import type { InteropContext } from "./lock-file.ts";
import { InteropLockFiles } from "./lock-files.ts";
import { InteropTree } from "./tree.ts";

const refreshPart = 1 / 3;
/** Enough digits of the ground's id to distinguish lock tables. */
const groundDigits = 12;
const expired: unique symbol = Symbol("expired");

export interface InteropOptions {
  readonly root: string;
  readonly closed: AbortSignal;
  /** Called if a foreign program has replaced our lock file by its own. */
  readonly onTaken: (grant: Grant, file: string) => void;
}

export class Interop {
  readonly #tree: InteropTree;
  readonly #context: InteropContext;
  readonly #files: InteropLockFiles;
  readonly #options: InteropOptions;
  #isRefreshing = false;

  private constructor(tree: InteropTree, context: InteropContext, options: InteropOptions) {
    this.#tree = tree;
    this.#context = context;
    this.#files = new InteropLockFiles(tree, context);
    this.#options = options;
  }

  static async open(ground: Ground, options: InteropOptions): Promise<Interop> {
    const { leaseMs } = (await ground.session()).holder;
    const tree = await InteropTree.open(ground.ports, { root: options.root, skipped: ground.layout.directory });
    const ourPrefix = `holdfast.${ground.id.slice(-groundDigits)}.`;
    const foreign = new ForeignLocks(ground, tree, { leaseMs, ourPrefix });
    const handle = ourPrefix + randomName(ground.ports.random.bytes(16));
    return new Interop(tree, { ground, foreign, leaseMs, handle }, options);
  }

  /**
   * Writes lock files for `claims` of a grant that is in the table, once no live foreign lock excludes them.
   * LOCK_TIMEOUT names such a lock. Throws disk errors: a caller that asked for interop must not believe that its
   * lock is visible when it is not.
   */
  async show(grant: Grant, claims: readonly Claim[], { startMs, timeoutMs = 0, signal }: AcquireWait): Promise<void> {
    const { clock } = this.#context.ground.ports;
    checkTimeout(timeoutMs);
    signal?.throwIfAborted();
    grant.mustHold();
    if (!this.#files.grants.includes(grant)) grant.whenOver(() => void this.hide(grant));
    const before = this.#files.begin(grant);
    this.#refreshWhileShown();
    const leftMs = leftMsOf(clock, { startMs, timeoutMs });
    const { closed } = this.#options;
    const deadline = new Deadline(clock, { timeoutMs: leftMs, signal, closed, timedOut: () => expired });
    const refused = (blocker: FoundLock): Error => this.#context.foreign.refused(claims, timeoutMs, blocker);
    try {
      for (;;) {
        const blocker = await this.#tryToShow(grant, claims, before);
        grant.mustHold();
        if (blocker === undefined) return;
        if (leftMs === 0) throw refused(blocker);
        await this.#untilOver(grant, blocker, deadline).catch((error: unknown) => {
          throw error === expired ? refused(blocker) : error;
        });
      }
    } finally {
      deadline.cancel();
    }
  }

  /**
   * Shows `claims` before `work` adds them to the grant: a lock file can be removed again, a widened grant cannot be
   * narrowed.
   */
  async showAround(
    grant: Grant,
    claims: readonly Claim[],
    waiting: Waiting,
    work: (left: Waiting) => Promise<void>,
  ): Promise<void> {
    const { clock } = this.#context.ground.ports;
    const startMs = clock.monotonicMs();
    try {
      await this.show(grant, claims, { ...waiting, startMs });
      // Both waits together last no longer than the caller's `timeoutMs`.
      await work({ ...waiting, timeoutMs: leftMsOf(clock, { ...waiting, startMs }) });
    } finally {
      await this.adapt(grant);
    }
  }

  /** Shows the grant's current claims. If that fails, the previous ones remain visible until the next refresh. */
  async adapt(grant: Grant): Promise<void> {
    await this.#files.set(grant, grant.asked).catch(() => undefined);
  }

  /** Call it while the grant is still in the table: then no other process of ours has a lock file there. */
  async hide(grant: Grant): Promise<void> {
    await this.#files.remove(grant);
  }

  /**
   * For a grant that moves to another process. Its lock files stay for a lease, or until that process replaces them.
   */
  async leave(grant: Grant): Promise<void> {
    await this.#files.leave(grant);
  }

  /** Resolves when pending changes of lock files are done. */
  async settle(): Promise<void> {
    await this.#files.settle();
  }

  /**
   * Checks, writes and checks again, in the same order as foreign programs do. Of two that do so at the same time, at
   * least one sees the other and removes its file.
   */
  async #tryToShow(grant: Grant, claims: readonly Claim[], before: readonly Claim[]): Promise<FoundLock | undefined> {
    const { foreign } = this.#context;
    const targets = await this.#tree.targetsOf(claims);
    const blocker = await foreign.findBlocker(targets);
    if (blocker !== undefined) return blocker;
    const met = (await this.#files.set(grant, claims)) ?? (await foreign.findBlocker(targets));
    if (met !== undefined) await this.#files.set(grant, before);
    return met;
  }

  /** Waits for this one file only. The next attempt looks for others. */
  async #untilOver(grant: Grant, { path, handle, mode }: FoundLock, deadline: Deadline): Promise<void> {
    const { ground, foreign } = this.#context;
    const waiter = new ChangeWaiter(ground);
    const isOver = async (): Promise<boolean> => {
      const found = await foreign.findLive(path);
      return found?.handle !== handle || found.mode !== mode;
    };
    while ((await waiter.wait(path, isOver, deadline)) !== "over") grant.mustHold();
  }

  #refreshWhileShown(): void {
    if (this.#isRefreshing) return;
    this.#isRefreshing = true;
    const { ground, leaseMs } = this.#context;
    const refresh = async (): Promise<void> => {
      while (this.#files.grants.length > 0) {
        await ground.ports.clock.sleep(leaseMs * refreshPart, { background: true, signal: this.#options.closed });
        for (const grant of this.#files.grants) await this.#refresh(grant);
      }
      this.#isRefreshing = false;
    };
    // A refresh fails only once the locks are closed.
    refresh().catch(() => undefined);
  }

  async #refresh(grant: Grant): Promise<void> {
    // Check before writing: after a pause the hold may be over, and another may have the path.
    if (!grant.isHeld) return;
    try {
      const taken = await this.#files.set(grant);
      // An unreadable file may be one that a foreign program is writing. The next refresh decides.
      if (taken !== undefined && taken.handle !== "") this.#options.onTaken(grant, taken.path);
    } catch (error) {
      // The hold is valid and no caller waits for this, but foreign programs will soon consider the lock stale. Hence
      // a warning.
      const why = messageOf(error);
      this.#context.ground.ports.host.warn(`A lock file for foreign programs could not be refreshed: ${why}`);
    }
  }
}
