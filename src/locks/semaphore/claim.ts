// A claim: the record that one acquisition puts under the name of a lock, and what its maker knows of it.
import { randomName } from "../../format/id.ts";
import type { BeatTimes } from "../../ports/heart.ts";
import type { Ports } from "../../ports/ports.ts";
import { formatLockRecord, parseLockRecord, type LockRecord } from "./lock-file.ts";
import { newRecord } from "./owner.ts";
import { isSame, takenBy, type LockForm, type Observation } from "./observe.ts";

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

export function isSightOf({ form, bytes }: SemaphoreClaim, sight: Observation): boolean {
  return isSame(takenBy(form, bytes), sight);
}
