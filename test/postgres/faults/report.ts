// What the processes of a history said.
import { nowUs, type LivingHold, type Wait } from "./waits.ts";

interface Line {
  readonly ready?: string;
  readonly closed?: string;
  readonly failed?: string;
  readonly met?: string;
  readonly try?: string;
  readonly ok?: string;
  readonly group?: string;
  readonly lock?: number;
  readonly inUs?: number;
  readonly outUs?: number;
  readonly wait?: number;
  readonly what?: string;
  readonly us?: number;
}

export interface AppendedEvent {
  readonly id: string;
  readonly first: number;
}
export interface PublishedTicket {
  readonly id: string;
  readonly n: string;
  readonly duplicate: boolean;
}
export interface PutVersion {
  readonly key: string;
  readonly versionId: string;
  readonly body: string;
}
export interface Hold {
  readonly id: string;
  /** The process. */
  readonly name: string;
  readonly fence: number;
  readonly inUs: number;
  /** The last moment at which it was certainly held. */
  readonly outUs: number;
}

export class Report {
  readonly ready = new Set<string>();
  readonly closed = new Set<string>();
  readonly failed: string[] = [];
  /** The ids and bodies of all tries. */
  readonly tried = new Set<string>();
  readonly events: AppendedEvent[] = [];
  readonly tickets: PublishedTicket[] = [];
  readonly versions: PutVersion[] = [];
  /** When each kind of work of each process, and each group, last went on. */
  readonly progress = new Map<string, number>();
  readonly #met = new Map<string, number>();
  readonly #waits = new Map<string, Wait>();
  /** When processes were killed. */
  readonly #deaths = new Map<string, number>();
  readonly #holds = new Map<number, Map<string, Hold>>();

  /** Adds what the process `name` said. */
  add(text: string, name: string): void {
    const line = parsed(text);
    if (line === undefined) return;
    const kind = line.ok ?? (line.inUs === undefined ? undefined : "lock");
    if (kind !== undefined) this.progress.set(`${name} ${kind}`, Date.now());
    if (line.group !== undefined) this.progress.set(line.group, Date.now());
    if (line.ready !== undefined) this.ready.add(line.ready);
    if (line.closed !== undefined) this.closed.add(line.closed);
    if (line.failed !== undefined) this.failed.push(line.failed);
    if (line.met !== undefined) this.#met.set(line.met, (this.#met.get(line.met) ?? 0) + 1);
    if (line.try !== undefined) this.#try(line as { id?: string; n?: string; body?: string });
    if (line.ok === "event") this.events.push(line as unknown as AppendedEvent);
    if (line.ok === "ticket") this.tickets.push(line as unknown as PublishedTicket);
    if (line.ok === "version") this.versions.push(line as unknown as PutVersion);
    if (line.lock !== undefined) this.#hold(line.lock, { ...(line as unknown as Hold), name });
    if (line.wait !== undefined) this.#wait(`${name} ${line.wait}`, line.what, line.us ?? 0);
  }

  addDeath(name: string): void {
    this.#deaths.set(name, nowUs());
  }

  /** All waits. One that a kill ended lasted until then; one that goes on lasts until `endUs`. */
  waits(endUs: number): Wait[] {
    return [...this.#waits].map(([id, { toUs, ...wait }]) => {
      const death = this.#deaths.get(id.split(" ")[0] ?? "") ?? endUs;
      return { ...wait, toUs: Math.min(toUs, death) };
    });
  }

  /** The times for which living processes held a lock. */
  livingHolds(lock: number): LivingHold[] {
    return [...(this.#holds.get(lock)?.values() ?? [])].map(({ name, inUs, outUs }) => {
      return { inUs, outUs: outUs > inUs ? outUs : (this.#deaths.get(name) ?? inUs) };
    });
  }

  /** The holds of each lock, in the order of their beginnings. */
  holds(): Hold[][] {
    return [...this.#holds.values()].map((holds) => [...holds.values()].sort((one, other) => one.inUs - other.inUs));
  }

  describe(): string {
    const holds = this.holds().reduce((sum, each) => sum + each.length, 0);
    const met = [...this.#met].map(([error, count]) => `${error} ${count}`).sort();
    return `acknowledged: ${this.events.length} appends, ${this.tickets.length} publications, ${this.versions.length} puts, ${holds} holds\n${met.join("\n")}`;
  }

  #try({ id, n, body }: { id?: string; n?: string; body?: string }): void {
    for (const name of [id, n, body]) if (name !== undefined) this.tried.add(name);
  }

  #wait(id: string, what: string | undefined, us: number): void {
    const begun = this.#waits.get(id);
    if (what !== undefined) this.#waits.set(id, { what, fromUs: us, toUs: Infinity });
    else if (begun !== undefined) this.#waits.set(id, { ...begun, toUs: us });
  }

  /** The beginning of a hold comes first; its end is missing if its process died, or lost it. */
  #hold(lock: number, hold: Hold): void {
    const holds = this.#holds.get(lock) ?? new Map<string, Hold>();
    this.#holds.set(lock, holds);
    const begun = holds.get(hold.id);
    holds.set(hold.id, begun === undefined ? { ...hold, outUs: hold.inUs } : { ...begun, outUs: hold.outUs });
  }
}

/** The last line of a killed process may be torn. */
function parsed(text: string): Line | undefined {
  try {
    return JSON.parse(text) as Line;
  } catch {
    return undefined;
  }
}
