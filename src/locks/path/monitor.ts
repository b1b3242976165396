// The monitor of the holds of this process. It checks them against the lock table, ends those that others dropped,
// corrects wrong entries in the table, and releases idle and forgotten holds.
import { onAbort } from "../../durable/wait/on-abort.ts";
import type { Session } from "../../durable/liveness/liveness.ts";
import { coversAll, pathsOf, type Claim } from "../table/conflict.ts";
import type { RequestTable } from "../table/request-table.ts";
import { replaceRequest, withoutAnnouncement, type TableRequest } from "../table/request.ts";
import type { Grant } from "./grant.ts";
import type { PathHold } from "./path-hold.ts";
import { release } from "./release.ts";

/**
 * The interval between checks of the holds on a local disk, where a check is cheap. Elsewhere it is a part of the
 * lease.
 */
const localCheckMs = 1000;
const networkCheckPart = 1 / 8;

export class HoldMonitor {
  readonly #table: RequestTable;
  readonly #closed: AbortSignal;
  readonly #grants = new Set<Grant>();
  /** Grants whose release has failed. */
  readonly #toRelease = new Set<Grant>();
  readonly #forgotten: FinalizationRegistry<Grant>;
  readonly #sessions = new WeakSet<Session>();
  #isChecking = false;

  constructor(table: RequestTable, closed: AbortSignal) {
    this.#table = table;
    this.#closed = closed;
    this.#forgotten = new FinalizationRegistry((grant) => this.#releaseForgotten(grant));
  }

  get grants(): ReadonlySet<Grant> {
    return this.#grants;
  }

  /** All grants that are not given up. */
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

  /** Stops monitoring a grant that is being given up. */
  forget(grant: Grant): void {
    this.#grants.delete(grant);
  }

  /** Retries its release until that succeeds. */
  releaseLater(grant: Grant): void {
    if (this.#toRelease.has(grant)) return;
    this.#toRelease.add(grant);
    this.#inBackground(this.#releaseUntilDone(grant));
  }

  /** Ends a hold involuntarily. */
  async evict(grant: Grant, why: string): Promise<void> {
    grant.lose(why);
    await release(grant);
  }

  /** When the session ends, all its holds end and their signals abort. One listener serves all of them. */
  #watchSession(session: Session): void {
    if (this.#sessions.has(session)) return;
    this.#sessions.add(session);
    const loseAll = (): void => {
      for (const grant of this.#grants) if (grant.session === session) grant.loseWithSession();
    };
    if (session.signal.aborted || this.#closed.aborted) return;
    // Remove the listener when the locks are closed: the session may continue long after.
    const stop = onAbort(session.signal, loseAll);
    onAbort(this.#closed, stop);
  }

  /** Checks holds periodically, for owners that work without calling anything: their signal aborts. */
  async #checkWhileHeld(): Promise<void> {
    this.#isChecking = true;
    try {
      while (this.#grants.size > 0) {
        await this.#sleep(this.#checkMs);
        for (const grant of [...this.#grants]) if (grant.isOver) this.#grants.delete(grant);
        // A failed check proves nothing. Each session still has its own deadline.
        await checkAll(this.#table, [...this.#grants]).catch(() => undefined);
      }
    } finally {
      this.#isChecking = false;
    }
  }

  async #releaseUntilDone(grant: Grant): Promise<void> {
    while (!grant.isGivenUp) {
      await this.#sleep(this.#checkMs);
      await release(grant).catch(() => undefined);
    }
    this.#toRelease.delete(grant);
  }

  async #releaseWhenIdle(grant: Grant, idleMs: number): Promise<void> {
    const { clock } = this.#ports;
    const over = new AbortController();
    grant.whenOver(() => over.abort());
    grant.touch();
    for (let leftMs = idleMs; leftMs > 0; leftMs = idleMs - grant.idleMs)
      await clock.sleep(leftMs, { background: true, signal: over.signal });
    if (grant.isHeld) await this.evict(grant, `nothing was done under it for ${idleMs} ms (option idleMs)`);
  }

  /** Releases holds within a hold that has ended. If their session is over, the lease ends all of them. */
  #releaseInner(grant: Grant): void {
    if (!grant.isGivenUp && !grant.isCovered && !grant.session.isOver) this.#inBackground(release(grant));
  }

  #releaseForgotten(grant: Grant): void {
    if (!grant.isHeld) return;
    const message = `A lock on ${pathsOf(grant.asked)} was never released, and the program does not refer to it any more: it is released now. Keep the hold, and release it.`;
    this.#ports.host.warn(message);
    // Its signal may still be in use, so abort it: the task that uses it must stop.
    this.#inBackground(this.evict(grant, "it was not kept, and was collected as garbage"));
  }

  get #checkMs(): number {
    if (this.#table.ground.hasHints) return localCheckMs;
    return Math.min(...[...this.unreleased].map(({ session }) => session.holder.leaseMs)) * networkCheckPart;
  }

  get #ports() {
    return this.#table.ground.ports;
  }

  async #sleep(ms: number): Promise<void> {
    await this.#ports.clock.sleep(ms, { background: true, signal: this.#closed });
  }

  /** Ignores failures: the locks are closed, a watched hold is over, or a release failed and is retried. */
  #inBackground(work: Promise<void>): void {
    work.catch(() => undefined);
  }
}

/** Throws LOCK_LOST. */
export async function check(grant: Grant): Promise<void> {
  grant.mustHold();
  const { claims } = grant;
  const { state } = await grant.locks.table.read();
  if (!isListed(state.requests, grant, claims)) throw grant.loseAsDropped();
  grant.mustHold();
}

/** Reads the table once, ends those of `grants` that others have dropped, and corrects the table for the rest. */
async function checkAll(table: RequestTable, grants: readonly Grant[]): Promise<void> {
  if (grants.length === 0) return;
  const claims = grants.map((grant) => grant.claims);
  const { state } = await table.read();
  const listed = new Map(state.requests.map((request) => [request.id, [request]]));
  for (const [index, grant] of grants.entries())
    if (grant.isHeld && !isListed(listed.get(grant.id) ?? [], grant, claims[index] ?? [])) grant.loseAsDropped();
  for (const grant of grants) await correctTable(grant);
}

/**
 * True if the list contains the request of the grant with claims that cover it. `claims` are those from before the
 * list was read. If they have changed since, they are not compared, because the list may be older.
 */
function isListed(requests: readonly TableRequest[], grant: Grant, claims: readonly Claim[]): boolean {
  const mine = grant.findRequest(requests);
  return mine !== undefined && (grant.claims !== claims || coversAll(mine.claims, claims));
}

/**
 * Corrects the request in the table, so that it is no wider than the hold and has no outdated announcement, which
 * would mislead others.
 */
export async function correctTable(grant: Grant): Promise<void> {
  if (grant.needsCorrection && grant.isHeld) await grant.duringChange(() => tryToCorrectTable(grant));
}

/** Like `correctTable`, for a caller that is changing the extent of the hold. */
export async function tryToCorrectTable(grant: Grant): Promise<void> {
  if (!grant.needsCorrection) return;
  let isPending = false;
  await grant.locks.table.append((state, { change }) => {
    const mine = grant.findRequest(state.requests);
    // Complete what was committed under the wider claims before others enter.
    isPending = grant.isInDoubt && state.redos.some(({ request }) => request === mine?.id);
    if (mine === undefined || isPending) return undefined;
    return replaceRequest(state, mine, withoutAnnouncement({ ...mine, claims: grant.claims, change }));
  });
  if (!isPending) grant.noteInTable();
}
