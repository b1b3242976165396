// Leftovers of dead holders in the directories of a lock table: hold files, staged redos, and marks of redos that are
// done.
import { removeTree, unlinkIfThere } from "../../durable/publish/directory.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { isStillThere } from "../../durable/publish/publish.ts";
import { isHoldfastError } from "../../errors.ts";
import { isId } from "../../format/id.ts";
import type { LockTable } from "./lock-table.ts";
import type { TableRequest, TableState } from "./request.ts";

/**
 * The part of a lease between two observations of a holder. A gap of more than a quarter of the lease would not count
 * in full.
 */
const watchPart = 1 / 8;
const watchLeaseMsMax = 8000;

/** A file or directory that no process needs, unless a newer table says otherwise. */
export interface Leftover {
  /** The id of the request or redo to which it belongs. */
  readonly id: string;
  /** Its maker, if that matters: as long as the maker has a request in the table, it may only be asleep. */
  readonly holder?: string;
  readonly path: string;
  readonly isTree: boolean;
}

/**
 * Returns the files that no process needs any more: files of holders that are gone, and files of offers whose request
 * is over.
 *
 * If a holder is gone, everything that it wanted to append is in the table by now, or will never count. A holder has a
 * record before it creates anything, and keeps it until it ends or is declared dead; no process looks for that record
 * earlier.
 *
 * An offer belongs to a request in the table, and a request that is over never returns, even if its maker lives.
 */
export async function findLeftovers(
  { ports: { disk }, layout, staging }: Ground,
  standing: readonly TableRequest[],
): Promise<Leftover[]> {
  const listed = new Set(standing.map(({ id }) => id));
  const leftovers: Leftover[] = [];
  const isThere = new Map<string, boolean>();
  for (const room of ["holds", "redo", "done"])
    for (const name of await disk.list(`${layout.directory}/${room}`)) {
      const [holder = "", random = ""] = name.split(".");
      // Ignore foreign files.
      if (!isId(holder)) continue;
      const id = `${holder}.${random}`;
      const isOffer = name.endsWith(".transfer");
      if (!isOffer && !isThere.has(holder)) isThere.set(holder, await isStillThere(staging, layout.record(holder)));
      if (isOffer ? !listed.has(id) : !isThere.get(holder)) {
        const path = `${layout.directory}/${room}/${name}`;
        leftovers.push({ id, path, isTree: room !== "holds", ...(isOffer ? {} : { holder }) });
      }
    }
  return leftovers;
}

/**
 * True if a living process has a hold file. Watches each process that has one until its heartbeat changes or it
 * counts as dead; without a proof of death that takes a lease.
 */
export async function hasLiveHolds(ground: Ground): Promise<boolean> {
  const { ports, layout } = ground;
  const names = await ports.disk.list(`${layout.directory}/holds`);
  const seenAtMs = new Map<string, number>();
  for (let owners = [...new Set(names.map((name) => name.split(".")[0] ?? ""))].filter(isId); ;) {
    const known = await Promise.all(owners.map((owner) => ground.findHolder(owner)));
    const undecided = known.filter((holder) => holder !== undefined).filter(({ state }) => state !== "dead");
    if (undecided.length === 0) return false;
    for (const { id, lastSeenAt } of undecided) {
      const atMs = lastSeenAt.getTime();
      if ((seenAtMs.get(id) ?? atMs) !== atMs) return true;
      seenAtMs.set(id, atMs);
    }
    owners = undecided.map(({ id }) => id);
    const watched = owners.map((holder) => ({ holder }));
    await ports.clock.sleep(watchPart * ground.shortestLeaseMs(watched, watchLeaseMsMax));
  }
}

/**
 * `state` must come from an append after the leftovers were found. A redo that cannot be completed now keeps its
 * files: the next process that needs its paths completes it.
 */
export async function removeLeftovers(
  table: LockTable,
  state: TableState,
  leftovers: readonly Leftover[],
): Promise<void> {
  const needed = new Set([...state.requests, ...state.redos].map(({ id }) => id));
  const listed = new Set(state.requests.map(({ id }) => id));
  for (const redo of state.redos)
    try {
      if (listed.has(redo.request)) continue;
      await table.complete(redo);
      needed.delete(redo.id);
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
      needed.add(redo.request);
    }
  // A holder that was declared dead since, but not dropped, may only be asleep. As long as it has a request in the
  // table, it may commit what it has staged.
  const owners = new Set(state.requests.map(({ holder }) => holder));
  const { disk } = table.ground.ports;
  for (const { id, holder, path, isTree } of leftovers)
    if (!needed.has(id) && !(holder !== undefined && owners.has(holder)))
      await (isTree ? removeTree(disk, path) : unlinkIfThere(disk, path));
}
