// The monitor of the holds of this process: it checks them against the lock table, loses those that
// others dropped, corrects the table where it says what is not so, and releases idle and forgotten
// holds.
import { onAbort } from "../../durable/wait/on-abort.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { coversAll, pathsOf, type Claim } from "../table/claim.ts";
import type { LockTable } from "../table/lock-table.ts";
import { replaceRequest, withoutAnnouncement, type TableRequest } from "../table/request.ts";
import type { Grant } from "./grant.ts";
import type { PathHold } from "./path-hold.ts";

/**
 * How often the holds are checked against the table: cheap on a local disk, and a part of the lease
 * elsewhere.
 */
const localCheckMs = 1000;
const networkCheckPart = 1 / 8;

export interface HoldMonitorOptions {
  readonly table: LockTable;
  readonly closed: AbortSignal;
  readonly release: (grant: Grant) => Promise<void>;
}

export class HoldMonitor {
  readonly #options: HoldMonitorOptions;
  readonly #grants = new Set<Grant>();
  /** Their release has failed. */
  readonly #toRelease = new Set<Grant>();
  readonly #forgotten: FinalizationRegistry<Grant>;
  readonly #sessions = new WeakSet<HolderSession>();
  #isChecking = false;

  constructor(options: HoldMonitorOptions) {
    this.#options = options;
    this.#forgotten = new FinalizationRegistry((grant) => this.#releaseForgotten(grant));
  }

  get grants(): ReadonlySet<Grant> {
    return this.#grants;
  }

  /** All that were not given up. */
  get unreleased(): ReadonlySet<Grant> {
    return new Set([...this.#grants, ...this.#toRelease]);
  }

  begin(grant: Grant, hold: PathHold, idleMs: number | undefined): void {
    this.#grants.add(grant);
    this.#forgotten.register(hold, grant, grant);
    grant.whenOver(() => this.#forgotten.unregister(grant));
    if (grant.parent !== undefined) grant.whenOver(() => this.#releaseInner(grant));
    this.#watchSession(grant.session);
    if (!this.#isChecking) this.#inBackground(this.#checkWhileHeld());
    if (idleMs !== undefined && idleMs < Infinity) this.#inBackground(this.#releaseWhenIdle(grant, idleMs));
  }

  /** The grant is being given up. */
  forget(grant: Grant): void {
    this.#grants.delete(grant);
  }

  /** Tries to release it again, until that succeeds. */
  releaseLater(grant: Grant): void {
    if (this.#toRelease.has(grant)) return;
    this.#toRelease.add(grant);
    this.#inBackground(this.#releaseUntilDone(grant));
  }

  /** Ends a hold without the will of its owner. */
  async evict(grant: Grant, why: string): Promise<void> {
    grant.lose(why);
    await this.#options.release(grant);
  }

  /**
   * All holds end with their session, and their signals abort at once. One listener serves all of
   * them.
   */
  #watchSession(session: HolderSession): void {
    if (this.#sessions.has(session)) return;
    this.#sessions.add(session);
    const loseAll = (): void => {
      for (const grant of this.#grants) if (grant.session === session) grant.loseWithSession();
    };
    if (session.signal.aborted || this.#options.closed.aborted) return;
    // Taken back when the locks are closed: the session may go on for long.
    const stop = onAbort(session.signal, loseAll);
    onAbort(this.#options.closed, stop);
  }

  /** For owners that work and ask for nothing: their signal tells them. */
  async #checkWhileHeld(): Promise<void> {
    this.#isChecking = true;
    try {
      while (this.#grants.size > 0) {
        await this.#sleep(this.#checkMs);
        for (const grant of [...this.#grants]) if (grant.isOver) this.#grants.delete(grant);
        // A look that fails says nothing: each session still has its own deadline.
        await checkAll(this.#options.table, [...this.#grants]).catch(() => undefined);
      }
    } finally {
      this.#isChecking = false;
    }
  }

  async #releaseUntilDone(grant: Grant): Promise<void> {
    while (!grant.isGivenUp) {
      await this.#sleep(this.#checkMs);
      await this.#options.release(grant).catch(() => undefined);
    }
    this.#toRelease.delete(grant);
  }

  async #releaseWhenIdle(grant: Grant, idleMs: number): Promise<void> {
    const { clock } = this.#ports;
    const over = new AbortController();
    grant.whenOver(() => over.abort());
    grant.touch(clock);
    for (let leftMs = idleMs; leftMs > 0; leftMs = idleMs - grant.idleMs(clock))
      await clock.sleep(leftMs, { background: true, signal: over.signal });
    if (grant.isHeld) await this.evict(grant, `nothing was done under it for ${idleMs} ms (option idleMs)`);
  }

  /**
   * A hold ends no later than the one that it is within. If their session is over, both end by
   * their lease.
   */
  #releaseInner(grant: Grant): void {
    if (!grant.isGivenUp && !grant.isCovered && !grant.session.isOver) this.#inBackground(this.#options.release(grant));
  }

  #releaseForgotten(grant: Grant): void {
    if (!grant.isHeld) return;
    const message = `A lock on ${pathsOf(grant.asked)} was never released, and the program does not refer to it any more: it is released now. Keep the hold, and release it.`;
    this.#ports.host.warn(message);
    // Its signal may still be in use: the task that has it must stop.
    this.#inBackground(this.evict(grant, "it was not kept, and was collected as garbage"));
  }

  get #checkMs(): number {
    if (this.#ports.disk.volume.kind === "local") return localCheckMs;
    return Math.min(...[...this.unreleased].map(({ session }) => session.holder.leaseMs)) * networkCheckPart;
  }

  get #ports() {
    return this.#options.table.ground.ports;
  }

  async #sleep(ms: number): Promise<void> {
    await this.#ports.clock.sleep(ms, { background: true, signal: this.#options.closed });
  }

  /**
   * It fails when the locks are closed, when a watched hold is over, or when a release fails: that
   * one is repeated.
   */
  #inBackground(work: Promise<void>): void {
    work.catch(() => undefined);
  }
}

/** LOCK_LOST. */
export async function check({ table }: { readonly table: LockTable }, grant: Grant): Promise<void> {
  grant.mustHold();
  const { claims } = grant;
  const { state } = await table.read();
  if (!isListed(state.requests, grant, claims)) throw grant.loseAsDropped();
  grant.mustHold();
}

/**
 * Loses those of `grants` that others have dropped, by one look at the table, and corrects what it
 * says of the rest.
 */
async function checkAll(table: LockTable, grants: readonly Grant[]): Promise<void> {
  if (grants.length === 0) return;
  const claims = grants.map((grant) => grant.claims);
  const { state } = await table.read();
  const listed = new Map(state.requests.map((request) => [request.id, [request]]));
  for (const [index, grant] of grants.entries())
    if (grant.isHeld && !isListed(listed.get(grant.id) ?? [], grant, claims[index] ?? [])) grant.loseAsDropped();
  for (const grant of grants) await correctTable(table, grant);
}

/**
 * Whether a list has the request of a grant that had `claims` before the list was read, and covers
 * them. Claims that were changed since are not compared: the list may be older.
 */
function isListed(requests: readonly TableRequest[], grant: Grant, claims: readonly Claim[]): boolean {
  const mine = grant.findRequest(requests);
  return mine !== undefined && (grant.claims !== claims || coversAll(mine.claims, claims));
}

/**
 * Makes the table say what the hold is: not wider, and without an announcement that is over, which
 * would mislead others.
 */
export async function correctTable(table: LockTable, grant: Grant): Promise<void> {
  if (grant.extent.needsCorrection && grant.isHeld) await grant.duringChange(() => tryToCorrectTable(table, grant));
}

/** The same for a caller that is changing the extent of the hold. */
export async function tryToCorrectTable(table: LockTable, grant: Grant): Promise<void> {
  const { extent } = grant;
  if (!extent.needsCorrection) return;
  let isPending = false;
  await table.append((state, { change }) => {
    const mine = grant.findRequest(state.requests);
    // What was committed under the wider claims is completed before others are let in.
    isPending = extent.isInDoubt && state.redos.some(({ request }) => request === mine?.id);
    if (mine === undefined || isPending) return undefined;
    return replaceRequest(state, mine, withoutAnnouncement({ ...mine, claims: grant.claims, change }));
  });
  if (!isPending) extent.noteInTable();
}
