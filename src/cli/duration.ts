// How a duration is written on the command line: `30s`, `500ms`, `2m`, or a bare number of milliseconds.
import { InvalidArgumentError } from "commander";

const msOf: Readonly<Record<string, number>> = { "": 1, ms: 1, s: 1_000, m: 60_000 };

/** In milliseconds. Anything else is wrong usage. */
export function parseDuration(text: string): number {
  const [, digits, unit] = /^(\d{1,12})(ms|s|m)?$/.exec(text) ?? [];
  if (digits === undefined) throw new InvalidArgumentError("Write a duration as 30s, 500ms, 2m, or in milliseconds.");
  return Number(digits) * (msOf[unit ?? ""] ?? 1);
}
