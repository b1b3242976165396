// Copies the progress of consumers into another log, of whatever engine, that has the same events.
import { holdfastError } from "../../errors.ts";
import { fileNameOf } from "../../format/name.ts";
import { workOn, type LogWork } from "../follow/log-work.ts";
import { accessOf } from "../log/log-access.ts";
import type { EventStore } from "../model/event-store.ts";

/**
 * Consumers of `to` that are behind those of `from` advance to their positions; none goes back.
 * Returns how many `from` has. Throws RESOURCE_BUSY if one of them runs in `to`.
 */
export async function copyConsumers(from: EventStore, to: EventStore): Promise<number> {
  const access = accessOf(to);
  await access.opened();
  const work = workOn(access);
  const consumers = await from.consumers();
  for (const { name, position, problem = "" } of consumers) {
    if (position === undefined) throw holdfastError("CORRUPT", problem, { path: accessOf(from).directory });
    await advance(work, name, position);
  }
  return consumers.length;
}

/** The mark of the position is that of the other log: each engine computes its own. */
async function advance(work: LogWork, name: string, position: number): Promise<void> {
  const lease = `consumers/${fileNameOf(name)}`;
  const path = `${work.access.directory}/${lease}`;
  const checkpoints = await work.openCheckpoints(path);
  await checkpoints.begin(position);
  if ((await checkpoints.read()).state.position < position) {
    const hold = await work.leases.tryAcquire(lease);
    const leased = hold && (await checkpoints.take(hold.fence));
    const isSaved = await leased?.save(position);
    await leased?.end();
    await hold?.release();
    if (isSaved !== true) throw running(name, path);
  }
  await checkpoints.settled();
}

function running(name: string, path: string): Error {
  const message = `The consumer ${name} runs in ${path}. Stop it, then repeat the copy.`;
  return holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
}
