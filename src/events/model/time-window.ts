// The time window of a reader: from `since` (inclusive) to `until` (exclusive), by the time
// recorded with each event.

/**
 * A moment: a date, or ISO 8601 text with a time zone ("2026-11-18T08:00:00Z"). Text without a time
 * is midnight UTC.
 */
export type TimeBound = Date | string;
/** @deprecated Use `TimeBound`. */
export type Moment = TimeBound;

/** Selects events by their recorded time. */
export interface TimeOptions {
  /**
   * Reads only events that were recorded at this time or later, by the clock of the machine that
   * appended them. Default: no limit.
   */
  since?: TimeBound | undefined;
  /** Reads only events that were recorded before this time. Default: no limit. */
  until?: TimeBound | undefined;
}

/** A half-open range of times, in milliseconds since 1970. */
export class TimeWindow {
  readonly #sinceMs: number;
  readonly #untilMs: number;

  private constructor(sinceMs: number, untilMs: number) {
    this.#sinceMs = sinceMs;
    this.#untilMs = untilMs;
  }

  /** Returns undefined if there is no limit. Throws a TypeError or RangeError. */
  static of({ since, until }: TimeOptions): TimeWindow | undefined {
    if (since === undefined && until === undefined) return undefined;
    return new TimeWindow(
      since === undefined ? -Infinity : msOf("since", since),
      until === undefined ? Infinity : msOf("until", until),
    );
  }

  /**
   * The first moment in the window and the first one after it, in milliseconds since 1970. Either may be infinite.
   */
  get bounds(): readonly [sinceMs: number, untilMs: number] {
    return [this.#sinceMs, this.#untilMs];
  }

  /** Returns false for a text that is not a time. */
  has(time: string): boolean {
    const ms = Date.parse(time);
    return ms >= this.#sinceMs && ms < this.#untilMs;
  }

  /**
   * Returns false only if no time from `from` to `to` (inclusive) is in the window. Undefined means that the times
   * are unknown.
   */
  mayMeet(range: { readonly from: number; readonly to: number } | undefined): boolean {
    return range === undefined || (range.to >= this.#sinceMs && range.from < this.#untilMs);
  }
}

/** A time of day needs a zone: without one it would mean a different moment on each machine. */
const isoPattern = /^(?:[+-]\d{6}|\d{4})-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2}))?$/i;

function msOf(name: "since" | "until", moment: TimeBound): number {
  if (moment instanceof Date || Object.prototype.toString.call(moment) === "[object Date]") {
    const ms = (moment as Date).getTime();
    if (Number.isNaN(ms)) throw new RangeError(`${name} is an invalid date.`);
    return ms;
  }
  if (typeof moment !== "string")
    throw new TypeError(`${name} must be a Date or text in ISO 8601, not ${typeof moment}.`);
  const ms = isoPattern.test(moment) && isDay(moment) ? Date.parse(moment.replace(",", ".")) : Number.NaN;
  if (!Number.isNaN(ms)) return ms;
  throw new RangeError(
    `${name} must be a time with its zone, as 2026-11-18T08:00:00Z, or a date, as 2026-11-18, not ${JSON.stringify(moment)}.`,
  );
}

/** False for 30 February, which `Date.parse` reads as 2 March. */
function isDay(moment: string): boolean {
  const [date = ""] = moment.split(/t/i);
  const ms = Date.parse(date);
  return !Number.isNaN(ms) && new Date(ms).toISOString().includes(`${date.slice(-6)}T`);
}
