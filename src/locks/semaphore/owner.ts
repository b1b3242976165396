// Whose a lock is: the process that it was taken for, and what can be said from here about the owner of another one.
import { randomName } from "../../format/id.ts";
import type { BeatTimes } from "../../ports/heart.ts";
import { isKnownBoot, type Host } from "../../ports/host.ts";
import type { Ports } from "../../ports/ports.ts";
import { formatLockRecord, parseLockRecord, type LockRecord } from "./lock-file.ts";
import { isSame, takenBy, type LockForm, type Observation } from "./observe.ts";

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
 * Whether the owner of a record that Holdfast wrote lives. Undefined when nothing can be said from here: another program
 * wrote it, or the process belongs to another machine or container, where its pid means another process or none.
 */
export function findFate({ disk, host }: Ports, record: LockRecord): "alive" | "dead" | undefined {
  const { token, boot = "", space = "", start = "", pid, volume } = record;
  if (token === undefined || space !== host.processSpace || ![boot, host.bootId].every(isKnownBoot)) return undefined;
  const state = host.processState(pid, start);
  if (boot === host.bootId) return state;
  // Other boot ids alone prove nothing. But its writer had the lock on a disk of its own, and so has this process: its
  // kernel is this one, whose process table has just told, or one that is gone. An NFS client of this machine had it on a
  // share. If a process is found, it may be another with the same number and start.
  return state === "dead" && volume === "local" && disk.volume.kind === "local" ? "dead" : undefined;
}

/** The protocol counts whole seconds, and a start is known to about one. */
const startDoubtMs = 2000;

/** A record of another program says no more than a pid: whether a process of this machine has it that can have written it. */
export function isForeignAlive({ disk, host }: Ports, { token, pid, timestamp }: LockRecord): boolean {
  if (token !== undefined || disk.volume.kind !== "local") return false;
  const startMs = host.findStartMs(pid);
  return startMs !== undefined && startMs <= timestamp * 1000 + startDoubtMs;
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

export interface ClaimOptions {
  readonly form: LockForm;
  /** The process that a lock is taken for, if it is not this one. */
  readonly ownerPid: number | undefined;
}

/** One acquisition: a record of ours that stands under the name, until it is given up or lost. */
export interface SemaphoreClaim {
  readonly record: LockRecord;
  readonly bytes: Uint8Array;
  readonly form: LockForm;
  readonly since: BeatTimes;
  /** The owner is another process, which may die while we act for it. */
  readonly isForAnother: boolean;
  /** It was not seen to stand since it was made: a taker may have it in its hands, and put it back later. */
  readonly isUnsettled?: boolean;
}

export function newClaim(
  ports: Ports,
  { form, ownerPid = ports.host.pid }: ClaimOptions,
  tag: string | undefined,
): SemaphoreClaim {
  const { clock, host, random } = ports;
  if (ownerPid !== host.pid && host.processState(ownerPid, "") === "dead")
    throw new RangeError(`owner.pid ${ownerPid} is no running process: its lock would be stale at once.`);
  // Now, and not when the wait began: a lock must not be born old.
  const since = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  const token = randomName(random.bytes(16));
  const meant = newRecord(ports, { token, pid: ownerPid, wallMs: since.wallMs, tag });
  const bytes = Buffer.from(formatLockRecord(meant));
  // As everybody will read it: a tag may have lost something.
  const record = parseLockRecord(bytes.toString()) ?? meant;
  return { record, bytes, form, since, isForAnother: ownerPid !== host.pid };
}

export function isObservationOf({ form, bytes }: SemaphoreClaim, observation: Observation): boolean {
  return isSame(takenBy(form, bytes), observation);
}
