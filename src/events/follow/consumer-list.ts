// Lists the consumers of a log for an operator: how far each has come, and which process runs it.
import { isHoldfastError } from "../../errors.ts";
import { findNameOf } from "../../format/name.ts";
import type { LogAccess } from "../log/log-access.ts";
import type { ConsumerInfo } from "../model/event-store.ts";
import { workOn } from "./log-work.ts";

/** A consumer that cannot be read is listed with its problem, and does not affect the others. */
export async function listConsumers(access: LogAccess, head: () => Promise<number>): Promise<ConsumerInfo[]> {
  await access.opened();
  const { leases } = workOn(access);
  const held = new Map(
    (await leases.list("consumers")).map((lock) => [lock.path.slice(lock.path.lastIndexOf("/") + 1), lock]),
  );
  const found: ConsumerInfo[] = [];
  for (const file of await access.derived.listConsumers()) {
    const name = findNameOf(file);
    if (name === undefined) continue;
    const directory = `${access.directory}/consumers/${file}`;
    const lock = held.get(file);
    found.push({
      name,
      ...(await progressOf(access, directory, head)),
      ...(lock === undefined ? {} : { holder: lock.holder, since: lock.since }),
      waiting: (lock?.waiting ?? []).map(({ holder }) => holder),
    });
  }
  return found.sort((one, other) => (one.name < other.name ? -1 : 1));
}

async function progressOf(
  access: LogAccess,
  directory: string,
  head: () => Promise<number>,
): Promise<Pick<ConsumerInfo, "position" | "lag" | "problem">> {
  try {
    const { state } = await (await workOn(access).openCheckpoints(directory)).read();
    // Read after the checkpoint, which is never beyond a later head unless the log was restored.
    return { position: state.position, lag: Math.max(0, (await head()) - state.position) };
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    return { problem: error.message };
  }
}
