// The round in which each side holds an OS lock while the other tries to take it.
import { isHoldfastError } from "../../errors.ts";
import type { OsLockFile } from "../../ports/os-lock.ts";
import { good, limited, type CheckAnswer } from "../check.ts";
import type { Role } from "./pairing.ts";
import type { BothSides, PeerSession } from "./session.ts";

/** The results of one side. */
export interface LockResult {
  /** The reason why there are no OS locks; absent if there are. */
  readonly unsupported?: string;
  /** True if it got the lock while it was free. */
  readonly took: boolean;
  /** True if it got the lock while the other held it, or believed so. */
  readonly tookFromHolder: boolean;
}

export async function tryLocks(session: PeerSession): Promise<BothSides<LockResult>> {
  const lock = await openLock(session);
  const result = { took: false, tookFromHolder: false };
  try {
    // A side without locks goes through the same steps, because the other waits for it at each.
    for (const holder of ["first", "second"] as const satisfies readonly Role[]) {
      const isHolder = session.role === holder;
      if (isHolder && typeof lock === "object") result.took = await lock.tryLock();
      await session.exchange(`lock-${holder}-holds`, {});
      if (!isHolder && typeof lock === "object") result.tookFromHolder = await lock.tryLock();
      await session.exchange(`lock-${holder}-tried`, {});
      if (typeof lock === "object") await lock.unlock();
      await session.exchange(`lock-${holder}-done`, {});
    }
  } finally {
    if (typeof lock === "object") await lock.close();
  }
  const mine: LockResult = typeof lock === "string" ? { ...result, unsupported: lock } : result;
  return await session.exchange("lock", mine);
}

/** Returns the lock file, or the reason why there is none. */
async function openLock(session: PeerSession): Promise<OsLockFile | string> {
  try {
    return await session.ports.osLock.open(session.path("lock", "os-lock"));
  } catch (error) {
    if (isHoldfastError(error, "UNSUPPORTED_DISK")) return error.message;
    throw error;
  }
}

const tableGate =
  "The folder must be guarded by Holdfast's own lock table (gate `table`), which excludes between all machines.";

export function judgeLocks({ first, second }: BothSides<LockResult>): CheckAnswer {
  const unsupported = first.unsupported ?? second.unsupported;
  if (unsupported !== undefined)
    return limited(
      `One of the two has no OS locks: ${unsupported}.`,
      tableGate,
      "Install fs-native-extensions on both machines, or leave it so.",
    );
  if ((first.took && second.tookFromHolder) || (second.took && first.tookFromHolder))
    return limited(
      "Both held the same OS lock at once.",
      `Programs that exclude each other by OS locks do so only within one machine. ${tableGate}`,
      "Mount without nolock, local_lock and nobrl on both machines, if other programs rely on OS locks.",
    );
  if (!first.took || !second.took) return limited("A free OS lock could not be taken.", tableGate);
  return good(
    "While one holds an OS lock the other is kept out, both ways round.",
    "OS locks exclude between these two while both are connected; on a share they are still a courtesy, because a broken connection loses them.",
  );
}
