// The ledger of a torture: it checks acknowledgements against the promises as they arrive, and against the disk at the
// end.
import type { Counter } from "../scenarios/durable/counter.ts";
import type { AuditorReport } from "./report.ts";

export interface Won {
  readonly name: string;
  readonly count: number;
  /** Undefined if appends have no number. */
  readonly number?: number | undefined;
  /** The counter that was increased, if there are several. */
  readonly of?: string | undefined;
  /** A key that only one append of all children may win. */
  readonly key?: string | undefined;
}

export class Ledger {
  readonly #violations: string[] = [];
  readonly #byNumber = new Map<number, Won>();
  readonly #byKey = new Map<string, Won>();
  readonly #byCount = new Map<string, Won>();
  /** The last number of each child. */
  readonly #last = new Map<string, number>();
  /** The last count of each child, of each counter. */
  readonly #highest = new Map<string, Counter>();
  readonly #acknowledged = new Map<string, number>();

  get violations(): readonly string[] {
    return this.#violations;
  }
  get size(): number {
    return [...this.#acknowledged.values()].reduce((sum, count) => sum + count, 0);
  }
  acknowledgedOf(name: string): number {
    return this.#acknowledged.get(name) ?? 0;
  }

  /** Notes one acknowledgement. Those of one child arrive in order. */
  note(won: Won): void {
    const { name, count, number, key, of = "" } = won;
    if (number !== undefined) this.#noteNumber(won, number);
    if (key !== undefined) this.#noteKey(won, key);
    const sameCount = this.#byCount.get(`${name}:${of}:${count}`);
    if (sameCount !== undefined)
      this.violate(
        `append ${count} of ${name} was acknowledged twice, as ${sameCount.number} and ${number}: the first is lost`,
      );
    this.#byCount.set(`${name}:${of}:${count}`, won);
    this.#highest.set(name, { ...this.#highest.get(name), [of]: count });
    this.#acknowledged.set(name, this.acknowledgedOf(name) + 1);
  }

  /** `unknown`: the number of appends of each child that may have happened without an acknowledgement. */
  audit({ state, unswept, wrong = [] }: AuditorReport, names: readonly string[], unknown: Counter): void {
    for (const name of names) {
      const [found, acknowledged] = [state[name] ?? 0, this.acknowledgedOf(name)];
      const highest = Object.values(this.#highest.get(name) ?? {}).reduce((sum, count) => sum + count, 0);
      const possible = acknowledged + (unknown[name] ?? 0);
      if (found < highest)
        this.violate(`append ${highest} of ${name} was acknowledged and is lost: ${found} are there`);
      if (found > possible)
        this.violate(`${name} has ${found} appends, but made ${possible} at most: something was counted twice`);
    }
    for (const what of wrong) this.violate(what);
    for (const id of unswept) this.violate(`the temp directory of the dead holder ${id} was not swept`);
  }

  #noteNumber({ name, count }: Won, number: number): void {
    const [same, before] = [this.#byNumber.get(number), this.#last.get(name)];
    if (same !== undefined)
      this.violate(`number ${number} was won twice: by append ${same.count} of ${same.name} and ${count} of ${name}`);
    if (before !== undefined && number <= before) this.violate(`${name} won number ${number} after number ${before}`);
    this.#byNumber.set(number, { name, count });
    this.#last.set(name, number);
  }

  #noteKey(won: Won, key: string): void {
    const same = this.#byKey.get(key);
    if (same !== undefined) this.violate(`${key} was won twice: by ${same.name} and by ${won.name}`);
    this.#byKey.set(key, won);
  }

  violate(what: string): void {
    this.#violations.push(what);
  }
}
