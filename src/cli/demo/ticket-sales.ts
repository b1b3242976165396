// Ticket sales: the next number comes from a plain file that only the gate protects, and the sale goes into a chain that never forgets.
import { Chain, ensureDirectory, openGate, replace, type Gate, type RecordKind } from "../../durable/index.ts";
import { isHoldfastError } from "../../index.ts";
import type { Clerk, Findings, Place, Receipt, Station, StationKind, WorkOptions } from "./station.ts";

interface Sale extends Clerk {
  readonly sequence: number;
  readonly ticket: number;
}

const saleKind: RecordKind<Sale> = {
  kind: "demo sale",
  decode: (body) => {
    const { workstation, session, sequence, ticket } = body as Partial<Record<keyof Sale, unknown>>;
    if (typeof workstation !== "string" || typeof session !== "string") throw new TypeError("not a sale");
    if (typeof sequence !== "number" || typeof ticket !== "number") throw new TypeError("not a sale");
    return { workstation, session, sequence, ticket };
  },
};

const station = "tickets";
const counterBytesMax = 100;

export const ticketSales: StationKind = {
  name: station,
  about:
    "Each takes the next ticket number from a plain file behind a lock, records the sale, and only then acknowledges it.",
  pieces: "sales",
  open: async (place, clerk) => await TicketStation.open(place, clerk),
  audit: auditSales,
};

class TicketStation implements Station {
  readonly #place: Place;
  readonly #clerk: Clerk;
  readonly #sales: Chain<Sale>;
  readonly #gate: Gate | undefined;

  private constructor(place: Place, clerk: Clerk, gate: Gate | undefined) {
    this.#place = place;
    this.#clerk = clerk;
    this.#sales = salesOf(place);
    this.#gate = gate;
  }

  static async open(place: Place, clerk: Clerk): Promise<TicketStation> {
    for (const directory of [`${place.directory}/sales`, `${place.directory}/tickets`])
      await ensureDirectory(place.disk, directory);
    return new TicketStation(place, clerk, await findGate(place));
  }

  async work(sequence: number, options: WorkOptions): Promise<Receipt> {
    const sell = (ticket: number): Sale => ({ ...this.#clerk, sequence, ticket });
    const sale = await (this.#gate === undefined
      ? this.#sellByChain(sell, options)
      : this.#sellByGate(this.#gate, sell, options));
    return { station, ...this.#clerk, sequence, what: `ticket ${sale.ticket}` };
  }

  async close(): Promise<void> {
    await this.#gate?.close();
  }

  /** Nobody else is in here until it is released, or until this process dies: then the kernel opens the gate for the next one. */
  async #sellByGate(gate: Gate, sell: (ticket: number) => Sale, { signal, forgets }: WorkOptions): Promise<Sale> {
    const hold = await gate.acquire({ signal });
    try {
      const sale = sell((await this.#lastTicket()) + 1);
      // Before the sale, so that a kill between the two loses a number and never sells one twice.
      await replace(this.#place.ground.staging, this.#counter, Buffer.from(`${sale.ticket}\n`));
      if (forgets) return sale;
      // Others have sold since: going to the end first saves a try that would be lost.
      await this.#sales.last();
      await this.#sales.append(idOf(sale), () => sale);
      return sale;
    } finally {
      await hold.release();
    }
  }

  /** Without a gate the chain itself gives out the numbers: of all who want to follow the newest sale, one does. */
  async #sellByChain(sell: (ticket: number) => Sale, { forgets }: WorkOptions): Promise<Sale> {
    const next = (newest: { readonly body: Sale } | undefined): Sale => sell((newest?.body.ticket ?? 0) + 1);
    if (forgets) return next(await this.#sales.last());
    const sale = await this.#sales.append(idOf(sell(0)), next);
    if (sale === undefined) throw new Error("a sale was refused, which none ever is");
    return sale.body;
  }

  async #lastTicket(): Promise<number> {
    try {
      const text = Buffer.from(await this.#place.disk.readFile(this.#counter, counterBytesMax)).toString();
      return Number.parseInt(text, 10);
    } catch (error) {
      // Nothing was ever sold here. A local disk does not say so of a file that is there.
      if (isHoldfastError(error, "IO_ERROR") && error.errno === "ENOENT") return 0;
      throw error;
    }
  }

  get #counter(): string {
    return `${this.#place.directory}/tickets/last-ticket`;
  }
}

/** Undefined where a gate would have to hold between machines, which it cannot yet. Whoever came first has decided that, for all. */
async function findGate({ ground, directory }: Place): Promise<Gate | undefined> {
  try {
    return await openGate(ground, `${directory}/tickets`);
  } catch (error) {
    if (isHoldfastError(error, "UNSUPPORTED_DISK") && error.missing.includes("a gate between machines"))
      return undefined;
    throw error;
  }
}

function salesOf({ ground, directory }: Place): Chain<Sale> {
  return new Chain(ground.staging, `${directory}/sales`, saleKind);
}

function idOf({ session, sequence }: Pick<Sale, "session" | "sequence">): string {
  return `${session}:${sequence}`;
}

function describe({ workstation, sequence, session }: Clerk & { readonly sequence: number }): string {
  return `sale ${sequence} of ${workstation} (session ${session})`;
}

async function auditSales(place: Place, receipts: readonly Receipt[]): Promise<Findings> {
  const sales = salesOf(place);
  const newest = await sales.last();
  const [byId, doubled, disorder] = [new Map<string, Sale>(), [] as string[], [] as string[]];
  let before: Sale | undefined;
  for (let number = 1; number <= (newest?.number ?? 0); number++) {
    const { body: sale } = await sales.get(number);
    if (byId.has(idOf(sale))) doubled.push(describe(sale));
    if (before !== undefined && sale.ticket <= before.ticket)
      disorder.push(
        `ticket ${sale.ticket} (${describe(sale)}) was sold after ticket ${before.ticket} (${describe(before)})`,
      );
    byId.set(idOf(sale), sale);
    before = sale;
  }
  const lost = receipts.filter((receipt) => !byId.has(idOf(receipt)));
  return {
    acknowledged: receipts.length,
    found: byId.size,
    lost: lost.map((receipt) => `${receipt.what}, ${describe(receipt)}`),
    doubled,
    disorder,
    shown: "every ticket number was sold once, in order: one at a time was behind the lock",
  };
}
