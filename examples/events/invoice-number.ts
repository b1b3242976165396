// Invoice numbers: one after the other without a gap, though many tills write invoices at the same time.
// Run it: node node_modules/holdfast/dist/examples/events/invoice-number.js (here: node dist/examples/events/invoice-number.js)
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { decide, memoryEvents, modelsOf, type EventStore, type NewEvent } from "holdfast/events";

type InvoiceCreated = NewEvent<"InvoiceCreated", { number: number; customer: string; cents: number }>;
type InvoiceCancelled = NewEvent<"InvoiceCancelled", { number: number }>;
export type InvoiceEvent = InvoiceCreated | InvoiceCancelled;

const model = modelsOf<InvoiceEvent>();

/** The last number that was given out. After ten years these are many events: the snapshot keeps the number at hand. */
const lastNumber = model({
  query: { types: ["InvoiceCreated"] },
  initial: 0,
  apply: (_, { data }) => data.number,
  snapshot: { name: "last-invoice-number" },
});

const invoice = (number: number) =>
  model({
    query: { types: ["InvoiceCreated", "InvoiceCancelled"], tags: [`invoice:${number}`] },
    initial: undefined as "open" | "cancelled" | undefined,
    apply: (_, { type }) => (type === "InvoiceCreated" ? "open" : "cancelled"),
  });

/** Gives the number of the new invoice. */
export async function createInvoice(
  store: EventStore<InvoiceEvent>,
  { customer, cents }: { customer: string; cents: number },
): Promise<number> {
  const { result } = await decide(store, { lastNumber }, (states) => {
    const number = states.lastNumber + 1;
    const tags = [`invoice:${number}`, `customer:${customer}`];
    return { events: [{ type: "InvoiceCreated", data: { number, customer, cents }, tags }], result: number };
  });
  return result;
}

/** A number is never given out again: a cancelled invoice keeps it. */
export async function cancelInvoice(store: EventStore<InvoiceEvent>, number: number): Promise<void> {
  await decide(store, { state: invoice(number) }, ({ state }) => {
    if (state === undefined) throw new Error(`There is no invoice ${number}.`);
    // To cancel it twice is not an error, and not an event.
    if (state === "cancelled") return [];
    return { type: "InvoiceCancelled", data: { number }, tags: [`invoice:${number}`] };
  });
}

export async function main(): Promise<void> {
  const store = memoryEvents<InvoiceEvent>();
  const tills = ["ada", "bob", "eve"].map((customer) => createInvoice(store, { customer, cents: 990 }));
  const numbers = await Promise.all(tills);
  console.log("invoices", numbers.sort((one, other) => one - other).join(", "));
}

if (realpathSync(process.argv[1] ?? ".") === fileURLToPath(import.meta.url)) await main();
