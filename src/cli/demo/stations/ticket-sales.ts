// Ticket sales: the next number comes from a plain file that only the store lock protects, and the
// sale goes into a permanent chain.
import { Chain, ensureDirectory, replace, type RecordKind } from "../../../durable/index.ts";
import { isHoldfastError } from "../../../index.ts";
import { openStoreLock, type StoreLock } from "../../../locks/index.ts";
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
  every: 1,
  open: async (folder, clerk) => await TicketStation.open(folder, clerk),
  audit: auditSales,
};

class TicketStation implements Station {
  readonly #folder: SharedFolder;
  readonly #clerk: Clerk;
  readonly #sales: Chain<Sale>;
  readonly #lock: StoreLock;

  private constructor(folder: SharedFolder, clerk: Clerk, lock: StoreLock) {
    this.#folder = folder;
    this.#clerk = clerk;
    this.#sales = salesOf(folder);
    this.#lock = lock;
  }

  static async open(folder: SharedFolder, clerk: Clerk): Promise<TicketStation> {
    await ensureDirectory(folder.disk, `${folder.directory}/sales`);
    return new TicketStation(folder, clerk, await openStoreLock(`${folder.directory}/tickets`));
  }

  async work(sequence: number, { signal, forgets }: WorkOptions): Promise<Receipt | undefined> {
    const sale = await this.#lock.withLock(() => this.#sell(sequence, forgets), { signal, timeoutMs: Infinity });
    if (sale === undefined) return undefined;
    return { station, ...this.#clerk, sequence, what: `ticket ${sale.ticket}` };
  }

  async close(): Promise<void> {
    await this.#lock.close();
  }

  /**
   * Sells a ticket under the store lock: no other process sells until the lock is released or this
   * process is dead. Returns undefined if this process slept so long that it lost the lock.
   */
  async #sell(sequence: number, forgets: boolean): Promise<Sale | undefined> {
    const sale: Sale = { ...this.#clerk, sequence, ticket: (await this.#lastTicket()) + 1 };
    // The number is written before the sale: a kill between the two loses a number, and never sells
    // one twice.
    await replace(this.#folder.ground.staging, this.#counter, Buffer.from(`${sale.ticket}\n`));
    if (forgets) return sale;
    // Reads the end of the chain first: if others have sold since, an attempt would only fail.
    await this.#sales.last();
    const entry = await this.#sales.append(idOf(sale), (newest) =>
      (newest?.body.ticket ?? 0) < sale.ticket ? sale : undefined,
    );
    return entry?.body;
  }

  async #lastTicket(): Promise<number> {
    try {
      const text = Buffer.from(await this.#folder.disk.readFile(this.#counter, counterBytesMax)).toString();
      return Number.parseInt(text, 10);
    } catch (error) {
      // Nothing was sold so far. On a network mount this may be stale; then the chain refuses the
      // ticket.
      if (isHoldfastError(error, "IO_ERROR") && error.errno === "ENOENT") return 0;
      throw error;
    }
  }

  get #counter(): string {
    return `${this.#folder.directory}/tickets/last-ticket`;
  }
}

function salesOf({ ground, directory }: SharedFolder): Chain<Sale> {
  return new Chain(ground.staging, `${directory}/sales`, saleKind);
}

function idOf({ session, sequence }: Pick<Sale, "session" | "sequence">): string {
  return `${session}:${sequence}`;
}

function describe({ workstation, sequence, session }: Clerk & { readonly sequence: number }): string {
  return `sale ${sequence} of ${workstation} (session ${session})`;
}

async function auditSales(folder: SharedFolder, receipts: readonly Receipt[]): Promise<Findings> {
  const [byId, doubled, disorder] = [new Map<string, Sale>(), [] as string[], [] as string[]];
  let before: Sale | undefined;
  for (const sale of await readSales(folder, disorder)) {
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

/** Returns everything readable, in order. Adds missing and damaged tickets to `disorder`. */
async function readSales(folder: SharedFolder, disorder: string[]): Promise<Sale[]> {
  const chain = salesOf(folder);
  const directory = `${folder.directory}/sales`;
  const names = (await readNoted(disorder, () => folder.disk.list(directory))) ?? [];
  const sales: Sale[] = [];
  let next = 1;
  // Finds the last number by the names in the directory: a chain cannot find a damaged end.
  for (const name of names.filter((each) => /^\d{10}$/.test(each)).sort()) {
    const number = Number(name);
    if (number > next) disorder.push(`a gap where something was: ${directory}/${namesOf(next, number - 1)}`);
    next = number + 1;
    const entry = await readNoted(disorder, () => chain.get(number));
    if (entry !== undefined) sales.push(entry.body);
  }
  return sales;
}

/** Returns "0000000005", or "0000000005 to 0000000007". */
function namesOf(first: number, last: number): string {
  return [...new Set([first, last])].map((number) => String(number).padStart(10, "0")).join(" to ");
}
