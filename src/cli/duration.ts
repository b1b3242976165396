// Parses durations on the command line: `30s`, `500ms`, `10m`, `2h`, `7d`.
import { InvalidArgumentError } from "commander";

const msOf = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/**
 * Returns milliseconds. Anything else is wrong usage, even a bare number: users of flock(1) would
 * mean seconds, users of this library milliseconds.
 */
export function parseDuration(text: string): number {
  const [, digits, unit] = /^(\d{1,12})(ms|s|m|h|d)$/.exec(text) ?? [];
  if (digits === undefined) {
    const example = /^\d+$/.test(text) ? `${text}s or ${text}ms` : "30s, 500ms or 10m";
    throw new InvalidArgumentError(`A duration has a unit: write ${example}.`);
  }
  return Number(digits) * msOf[unit as keyof typeof msOf];
}
