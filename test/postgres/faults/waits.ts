// How long the processes of a history waited. A wait counts only while the server was up, and for a lock only while
// nobody alive held it.

export interface Wait {
  /** The capability, or the lock, that was waited for. */
  readonly what: string;
  readonly fromUs: number;
  readonly toUs: number;
}

interface Span {
  readonly fromUs: number;
  toUs: number;
}

/** The times for which the server was away, or refused all work. */
export class Outages {
  readonly #spans: Span[] = [];

  /** Returns a function that ends it. */
  begin(): () => void {
    const span = { fromUs: nowUs(), toUs: Infinity };
    this.#spans.push(span);
    return () => (span.toUs = nowUs());
  }

  /** Returns the milliseconds between two moments, without the outages and the spans `also`. */
  msBetween(fromUs: number, toUs: number, also: readonly Readonly<Span>[] = []): number {
    const spans = [...this.#spans, ...also].sort((one, other) => one.fromUs - other.fromUs);
    let [us, seenUs] = [0, fromUs];
    for (const span of spans) {
      us += Math.max(0, Math.min(toUs, span.fromUs) - seenUs);
      seenUs = Math.max(seenUs, Math.min(toUs, span.toUs));
    }
    return (us + Math.max(0, toUs - seenUs)) / 1000;
  }
}

/** The hold of a process that was alive: after its death, the lock counts as free. */
export interface LivingHold {
  readonly inUs: number;
  readonly outUs: number;
}

/** Returns the longest time for which nobody got a lock that was free, while this process waited for it. */
export function lockWaitMs({ fromUs, toUs }: Wait, holds: readonly LivingHold[], outages: Outages): number {
  const grants = holds.map(({ inUs }) => inUs).filter((us) => us > fromUs && us < toUs);
  const held = holds.map(({ inUs, outUs }) => ({ fromUs: inUs, toUs: outUs }));
  const moments = [fromUs, ...grants.sort((one, other) => one - other), toUs];
  return Math.max(0, ...moments.slice(1).map((us, index) => outages.msBetween(moments[index] ?? us, us, held)));
}

/** Monotonic, and the same clock in all processes of a machine. */
export function nowUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}
