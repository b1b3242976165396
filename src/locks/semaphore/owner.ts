// Whose a lock is: the process that it was taken for, and what can be said from here about the owner of another one.
import { isKnownBoot, type Host } from "../../ports/host.ts";
import type { LockRecord } from "./lock-file.ts";

/** A process, as a lock record names it. */
export interface Owner {
  readonly pid: number;
  readonly host: string;
  readonly boot: string;
  readonly space: string;
  /** Empty where nothing is known of it. */
  readonly start: string;
}

export function ownerOf(host: Host, pid: number = host.pid): Owner {
  const start = pid === host.pid ? host.startMark : host.startMarkOf(pid);
  return { pid, host: host.name, boot: host.bootId, space: host.processSpace, start };
}

export function newRecord(owner: Owner, token: string, wallMs: number, tag: string | undefined): LockRecord {
  const record = { ...owner, token, timestamp: Math.max(0, Math.floor(wallMs / 1000)) };
  return tag === undefined ? record : { ...record, tag };
}

/**
 * Whether the owner of a record that Holdfast wrote lives. Undefined when nothing can be said from here: another program wrote it, or the process belongs to
 * another machine, an earlier boot or another container, where its pid means somebody else or nobody.
 */
export function findFate(host: Host, record: LockRecord): "alive" | "dead" | undefined {
  const { token, boot, space = "", start = "", pid } = record;
  if (token === undefined || boot !== host.bootId || !isKnownBoot(boot) || space !== host.processSpace)
    return undefined;
  return host.processState(pid, start);
}

/** The same process; not just the same pid, which is 1 in every container and is given out again after a while. */
export function isOwnedBy(record: LockRecord, owner: Owner): boolean {
  const { token, pid, boot, space = "", start = "" } = record;
  return (
    token !== undefined &&
    isKnownBoot(owner.boot) &&
    boot === owner.boot &&
    space === owner.space &&
    pid === owner.pid &&
    start === owner.start
  );
}
