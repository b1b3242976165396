// The owner of a lock: the process for which it was acquired, whether that process lives (as far as this machine can
// tell), and the claim that names it.
import { randomName } from "../../format/id.ts";
import type { BeatTimes } from "../../ports/heart.ts";
import { isKnownBoot, type Host } from "../../ports/host.ts";
import type { Ports } from "../../ports/ports.ts";
import { formatLockRecord, parseLockRecord, type LockRecord } from "./lock-file.ts";
import { isSame, observationOf, type LockFileForm, type Observation } from "./observe.ts";

/** A process as a lock record names it. */
export interface Owner {
  readonly pid: number;
  readonly host: string;
  readonly boot: string;
  readonly space: string;
  /** Empty if it is unknown. */
  readonly start: string;
}

export function ownerOf(host: Host, pid: number = host.pid): Owner {
  const start = pid === host.pid ? host.startMark : host.startMarkOf(pid);
  return { pid, host: host.name, boot: host.bootId, space: host.processSpace, start };
}

function newRecord(
  { disk, host }: Ports,
  {
    token,
    pid,
    wallMs,
    tag,
  }: { readonly token: string; readonly pid: number; readonly wallMs: number; readonly tag: string | undefined },
): LockRecord {
  const record = { ...ownerOf(host, pid), token, timestamp: Math.max(0, Math.floor(wallMs / 1000)) };
  return {
    ...record,
    ...(tag === undefined ? {} : { tag }),
    ...(disk.volume.kind === "local" ? { volume: "local" } : {}),
  };
}

/**
 * Returns whether the owner of a record that Holdfast wrote is alive. Returns undefined if this machine cannot tell:
 * another program wrote it, or the process belongs to another machine or container, where its pid may mean a
 * different process.
 */
export function findFate({ disk, host }: Ports, record: LockRecord): "alive" | "dead" | undefined {
  const { token, boot = "", space = "", start = "", pid, volume } = record;
  if (token === undefined || space !== host.processSpace || ![boot, host.bootId].every(isKnownBoot)) return undefined;
  const state = host.processState(pid, start);
  if (boot === host.bootId) return state;
  // Different boot ids alone prove nothing. But the writer saw the lock on a local disk, as this process does. So the
  // writer's kernel is either this one, whose process table says that it is dead, or no longer runs. (An NFS client
  // on this machine would have seen a share.) If a process is found alive, it may be another one with the same pid
  // and start.
  return state === "dead" && volume === "local" && disk.volume.kind === "local" ? "dead" : undefined;
}

/** The protocol records whole seconds, and the start of a process is known to about one second. */
const startDoubtMs = 2000;

/**
 * True if a process of this machine has the pid of another program's record and is old enough to have written it.
 * Such a record contains nothing but a pid.
 */
export function isForeignAlive({ disk, host }: Ports, { token, pid, timestamp }: LockRecord): boolean {
  if (token !== undefined || disk.volume.kind !== "local") return false;
  const startMs = host.findStartMs(pid);
  return startMs !== undefined && startMs <= timestamp * 1000 + startDoubtMs;
}

/** True for the same process, not merely the same pid: pid 1 exists in every container, and pids are reused. */
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

export interface ClaimOptions {
  readonly form: LockFileForm;
  /** The pid of the process for which the lock is acquired, if not this one. */
  readonly ownerPid: number | undefined;
}

/** One acquisition: our record under the name of the lock, until it is released or lost. */
export interface SemaphoreClaim {
  readonly record: LockRecord;
  readonly bytes: Uint8Array;
  readonly form: LockFileForm;
  readonly since: BeatTimes;
  /** True if the owner is another process, which may die while this one acts for it. */
  readonly isForAnother: boolean;
  /** True if it was never confirmed: a taker may have moved it, and may put it back later. */
  readonly isUnsettled?: boolean;
}

export function newClaim(
  ports: Ports,
  { form, ownerPid = ports.host.pid }: ClaimOptions,
  tag: string | undefined,
): SemaphoreClaim {
  const { clock, host, random } = ports;
  if (ownerPid !== host.pid && host.processState(ownerPid, "") === "dead")
    throw new RangeError(`owner.pid ${ownerPid} is not a running process: its lock would be stale at once.`);
  // Use the time of this attempt, not of the start of the wait: a new lock must not look old.
  const since = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  const token = randomName(random.bytes(16));
  const meant = newRecord(ports, { token, pid: ownerPid, wallMs: since.wallMs, tag });
  const bytes = Buffer.from(formatLockRecord(meant));
  // Use the record as readers will see it: the tag may have been cut.
  const record = parseLockRecord(bytes.toString()) ?? meant;
  return { record, bytes, form, since, isForAnother: ownerPid !== host.pid };
}

export function isObservationOf({ form, bytes }: SemaphoreClaim, observation: Observation): boolean {
  return isSame(observationOf(form, bytes), observation);
}
