// Guards work that changes a ground under its users: only while no other process has joined it.
import type { HolderInfo } from "../../common.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { holdfastError } from "../../errors.ts";

/** Returns the holders that are not dead, except `own`. */
export function livingOthers(holders: readonly HolderInfo[], own?: string): HolderInfo[] {
  return holders.filter(({ id, state }) => id !== own && state !== "dead");
}

/** Throws RESOURCE_BUSY with the living processes. `what` describes `path` for people: "an event log". */
export async function mustBeIdle(ground: Ground, path: string, what: string, then: string): Promise<void> {
  await ground.sweep();
  const own = (await ground.session()).holder.id;
  const others = livingOthers(await ground.holders(), own);
  if (others.length === 0) return;
  const names = others.map(({ pid, host }) => `process ${pid} on ${host}`).join(", ");
  const message = `${path} is ${what}, and in use by ${names}. Stop them, then ${then}.`;
  const blockedBy = others.map((holder) => ({
    ...{ path, mode: "tree" as const, shared: false },
    ...{ holder, since: holder.startedAt },
  }));
  throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy, worthWaiting: true });
}
