// The earliest and latest time of the events in a segment. Positions imply nothing about times,
// because each writer has its own clock.

/** In milliseconds since 1970, both inclusive. */
export interface TimeRange {
  readonly from: number;
  readonly to: number;
}

/** Grows with each event. Becomes unknown once an event has an unreadable time. */
export class GrowingTimeRange {
  #from = Infinity;
  #to = -Infinity;
  #isKnown = true;

  add(ms: number): void {
    if (Number.isNaN(ms)) this.#isKnown = false;
    if (ms < this.#from) this.#from = ms;
    if (ms > this.#to) this.#to = ms;
  }

  /** Undefined if it is unknown or there are no events. */
  get range(): TimeRange | undefined {
    return this.#isKnown && this.#from <= this.#to ? { from: this.#from, to: this.#to } : undefined;
  }
}
