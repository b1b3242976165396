// One heartbeat on disk: a line of fixed length that each beat writes over the last. A heart's own
// thread writes the same bytes by its own code.

// A clock beyond the year 9999 would make the line longer; the time is for people, so the end of
// that year stands for all that follow.
const wallMsMax = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const line = /^beat (\d{16}) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\n$/;

/** `beat 0000000000000042 2026-08-01T12:00:00.000Z` and a newline: 47 bytes. */
export function encodeBeat(count: number, wallMs: number): Uint8Array {
  if (!Number.isSafeInteger(count) || count < 0) throw new RangeError(`not a count of beats: ${count}`);
  const time = new Date(Math.min(Math.max(wallMs, 0), wallMsMax)).toISOString();
  return new TextEncoder().encode(`beat ${String(count).padStart(16, "0")} ${time}\n`);
}

/**
 * Undefined for anything but one whole beat: a reader can meet a file that was created and not yet
 * written.
 */
export function decodeBeat(bytes: Uint8Array): { readonly count: number; readonly wallMs: number } | undefined {
  const [, digits, time] = line.exec(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)) ?? [];
  if (digits === undefined || time === undefined) return undefined;
  const [count, wallMs] = [Number(digits), Date.parse(time)];
  return Number.isSafeInteger(count) && Number.isFinite(wallMs) ? { count, wallMs } : undefined;
}
