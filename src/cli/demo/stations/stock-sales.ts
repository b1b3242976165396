// Stock sales: every till sells from the same few articles. Only the events tell how many are left.
// A sale is appended on condition that no other till has sold meanwhile.
import {
  decide,
  modelsOf,
  openEvents,
  type DecisionModel,
  type EventStore,
  type NewEvent,
  type SequencedEvent,
} from "../../../events/index.ts";
import { isHoldfastError } from "../../../index.ts";
import {
  readNoted,
  type Clerk,
  type Findings,
  type SharedFolder,
  type Receipt,
  type Station,
  type StationKind,
  type WorkOptions,
} from "./station.ts";

type Stocked = NewEvent<"Stocked", { sku: string; count: number }>;
type Sold = NewEvent<"Sold", { sku: string; till: string }>;

const station = "stock";
const skus = ["lamp", "chair", "clock"];
const delivery = 10;

export const stockSales: StationKind = {
  name: station,
  about:
    "Each sells from one stock by an event store, and never what is not there: decided, then appended on condition.",
  pieces: "events",
  every: 1,
  open: async (folder, clerk) => new StockStation(await openStock(folder), clerk),
  audit: auditStock,
};

const model = modelsOf<Stocked | Sold>();

function stockOf(sku: string): DecisionModel<number, Stocked | Sold> {
  return model({
    query: { types: ["Stocked", "Sold"], tags: [`sku:${sku}`] },
    initial: 0,
    apply: (stock, event) => (event.type === "Stocked" ? stock + event.data.count : stock - 1),
  });
}

class StockStation implements Station {
  readonly #events: EventStore<Stocked | Sold>;
  readonly #clerk: Clerk;

  constructor(events: EventStore<Stocked | Sold>, clerk: Clerk) {
    this.#events = events;
    this.#clerk = clerk;
  }

  async work(sequence: number, { signal, forgets }: WorkOptions): Promise<Receipt | undefined> {
    const { workstation: till } = this.#clerk;
    const sku = skus[sequence % skus.length] as string;
    const id = idOf({ ...this.#clerk, sequence });
    const tags = [`sku:${sku}`, `till:${till}`];
    if (forgets) return { station, ...this.#clerk, sequence, what: `a ${sku}` };
    try {
      const { result } = await decide(
        this.#events,
        { stock: stockOf(sku) },
        ({ stock }) =>
          stock > 0
            ? {
                events: [{ type: "Sold", data: { sku, till }, tags, id }],
                result: `a ${sku}, the last but ${stock - 1}`,
              }
            : {
                events: [{ type: "Stocked", data: { sku, count: delivery }, tags, id }],
                result: `${delivery} × ${sku}`,
              },
        { signal },
      );
      return { station, ...this.#clerk, sequence, what: result };
    } catch (error) {
      // Others were always faster this time. Nothing was written.
      if (isHoldfastError(error, "APPEND_CONDITION_FAILED", "LOCK_TIMEOUT")) return undefined;
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#events.close();
  }
}

async function openStock({ directory }: SharedFolder): Promise<EventStore<Stocked | Sold>> {
  return await openEvents<Stocked | Sold>(`${directory}/stock`, { lockTimeoutMs: 60_000 });
}

function idOf({ session, sequence }: Pick<Receipt, "session" | "sequence">): string {
  return `${session}:${sequence}`;
}

async function auditStock(folder: SharedFolder, receipts: readonly Receipt[]): Promise<Findings> {
  const [ids, doubled, disorder] = [new Set<string>(), [] as string[], [] as string[]];
  const stock = new Map<string, number>();
  for (const [index, event] of (await readStock(folder, disorder)).entries()) {
    if (event.position !== index + 1) disorder.push(`position ${event.position} comes after ${index}`);
    if (ids.has(event.id)) doubled.push(`event ${event.id} at position ${event.position}`);
    ids.add(event.id);
    const { sku } = event.data;
    const left = (stock.get(sku) ?? 0) + (event.type === "Stocked" ? event.data.count : -1);
    stock.set(sku, left);
    if (left < 0) disorder.push(`${sku}: ${left} are left after position ${event.position}`);
  }
  const lost = receipts.filter((receipt) => !ids.has(idOf(receipt)));
  return {
    acknowledged: receipts.length,
    found: ids.size,
    lost: lost.map((receipt) => `${receipt.what}, piece ${receipt.sequence} of ${receipt.workstation}`),
    doubled,
    disorder,
    shown: "positions have no gap, and no article was ever sold that was not in stock",
  };
}

type StockEvent = SequencedEvent<Stocked | Sold>;

/** Reads the log in order, to its end or as far as it is readable. */
async function readStock(folder: SharedFolder, disorder: string[]): Promise<StockEvent[]> {
  const events: StockEvent[] = [];
  await readNoted(disorder, async () => {
    const store = await openStock(folder);
    try {
      for await (const event of store.read()) events.push(event);
    } finally {
      await store.close();
    }
  });
  return events;
}
