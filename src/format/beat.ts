// One heartbeat on disk: a line of fixed length that each beat overwrites. The heart's thread
// produces the same bytes with its own code.

// A time beyond the year 9999 would make the line longer. The time is for people, so the end of
// that year stands for all later ones.
const wallMsMax = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const line = /^beat (\d{16}) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)(?: (\d{10}))?\n$/;

export interface Beat {
  readonly count: number;
  readonly wallMs: number;
  /** The lease of its holder, for a judge that cannot read the holder's record. Absent in beats of earlier builds. */
  readonly leaseMs?: number;
}

/** `beat 0000000000000042 2026-08-01T12:00:00.000Z 0000030000` and a newline: 58 bytes, 47 without the lease. */
export function encodeBeat(count: number, wallMs: number, leaseMs?: number): Uint8Array {
  if (!Number.isSafeInteger(count) || count < 0) throw new RangeError(`not a count of beats: ${count}`);
  const time = new Date(Math.min(Math.max(wallMs, 0), wallMsMax)).toISOString();
  const lease = leaseMs === undefined ? "" : ` ${String(leaseMs).padStart(10, "0")}`;
  return new TextEncoder().encode(`beat ${String(count).padStart(16, "0")} ${time}${lease}\n`);
}

/**
 * Returns undefined for anything but one whole beat: a reader may see a file that was created but not written yet.
 */
export function decodeBeat(bytes: Uint8Array): Beat | undefined {
  const [, digits, time, lease] = line.exec(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)) ?? [];
  if (digits === undefined || time === undefined) return undefined;
  const [count, wallMs] = [Number(digits), Date.parse(time)];
  return Number.isSafeInteger(count) && Number.isFinite(wallMs)
    ? { count, wallMs, ...(lease === undefined ? {} : { leaseMs: Number(lease) }) }
    : undefined;
}
