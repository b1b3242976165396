// What holders that are dead have left in a lock table's directories: hold files, staged redos, and marks of done ones.
import { removeTree, unlinkIfThere } from "../../durable/publish/directory.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { isStillThere } from "../../durable/publish/publish.ts";
import { isHoldfastError } from "../../errors.ts";
import { isId } from "../../format/id.ts";
import type { LockTable } from "./lock-table.ts";
import type { LockRequestRecord, Table } from "./request.ts";

/** A file or directory that no process needs, unless a newer list says otherwise. */
export interface Leftover {
  /** Of the request or redo that it belongs to. */
  readonly id: string;
  /** Who made it, if that matters: as long as it has a request in the list it may only have slept. */
  readonly holder?: string;
  readonly path: string;
  readonly isTree: boolean;
}

/**
 * Only of holders that are gone: whatever they wanted to append is in the list by now, or will never count. A holder has its
 * record before it makes anything, and until it ends or is declared dead; nobody has looked for that record before.
 * And files of offers whose request is not among those that stand, whoever lives: an offer is made for a request that
 * stands in the list, and one that is over never comes back.
 */
export async function findLeftovers(
  { ports: { disk }, layout, staging }: Ground,
  standing: readonly LockRequestRecord[],
): Promise<Leftover[]> {
  const listed = new Set(standing.map(({ id }) => id));
  const leftovers: Leftover[] = [];
  const isThere = new Map<string, boolean>();
  for (const room of ["holds", "redo", "done"])
    for (const name of await disk.list(`${layout.directory}/${room}`)) {
      const [holder = "", random = ""] = name.split(".");
      // Foreign files are none of our business.
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

/** Whether a process that is not known to be dead has a hold file. */
export async function hasLiveHolds(ground: Ground): Promise<boolean> {
  const { ports, layout } = ground;
  const owners = new Set((await ports.disk.list(`${layout.directory}/holds`)).map((name) => name.split(".")[0] ?? ""));
  for (const owner of owners) if (isId(owner) && (await ground.stateOf(owner)) !== "dead") return true;
  return false;
}

/** `list` is of an append made after they were found. What cannot be completed now keeps its files: whoever needs its paths will come to it again. */
export async function removeLeftovers(table: LockTable, list: Table, leftovers: readonly Leftover[]): Promise<void> {
  const needed = new Set([...list.requests, ...list.redos].map(({ id }) => id));
  const listed = new Set(list.requests.map(({ id }) => id));
  for (const redo of list.redos)
    try {
      if (listed.has(redo.request)) continue;
      await table.complete(redo);
      needed.delete(redo.id);
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
      needed.add(redo.request);
    }
  // Declared dead since we judged it, and not dropped: it may only have slept, and as long as it has a request in the list it may commit what it has staged.
  const owners = new Set(list.requests.map(({ holder }) => holder));
  const { disk } = table.ground.ports;
  for (const { id, holder, path, isTree } of leftovers)
    if (!needed.has(id) && !(holder !== undefined && owners.has(holder)))
      await (isTree ? removeTree(disk, path) : unlinkIfThere(disk, path));
}
