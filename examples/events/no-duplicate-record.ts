// No duplicate record: a form that is sent twice is one order. The client makes the key when the form is opened; the server needs no table of keys.
// Run it: node node_modules/holdfast/dist/examples/events/no-duplicate-record.js (here: node dist/examples/events/no-duplicate-record.js)
import { randomUUID } from "node:crypto";
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { decide, memoryEvents, modelsOf, type EventStore, type NewEvent } from "holdfast/events";

type OrderPlaced = NewEvent<"OrderPlaced", { order: string; form: string; sku: string; quantity: number }>;
export type OrderEvent = OrderPlaced;

export interface OrderForm {
  /** Made by the client, one for each form; the same again when the form is sent again. */
  key: string;
  sku: string;
  quantity: number;
}

const model = modelsOf<OrderEvent>();

const orderFrom = (key: string) =>
  model({
    query: { types: ["OrderPlaced"], tags: [`form:${key}`] },
    initial: undefined as { order: string; sku: string; quantity: number } | undefined,
    apply: (_, { data }) => data,
  });

/** Gives the id of the order: of the first one, when this form was sent before. */
export async function placeOrder(store: EventStore<OrderEvent>, form: OrderForm): Promise<string> {
  const { key, sku, quantity } = form;
  const { result } = await decide(store, { placed: orderFrom(key) }, ({ placed }) => {
    if (placed === undefined) {
      const order = randomUUID();
      const tags = [`order:${order}`, `form:${key}`];
      return { events: [{ type: "OrderPlaced", data: { order, form: key, sku, quantity }, tags }], result: order };
    }
    // The same key with another content is no repetition but a mistake, and must not be swallowed.
    if (placed.sku !== sku || placed.quantity !== quantity)
      throw new Error("This form was sent before, with another content.");
    return { events: [], result: placed.order };
  });
  return result;
}

export async function main(): Promise<void> {
  const store = memoryEvents<OrderEvent>();
  const form = { key: randomUUID(), sku: "lamp", quantity: 1 };
  const [first, second] = await Promise.all([placeOrder(store, form), placeOrder(store, form)]);
  console.log(first === second ? "one order" : "two orders", "in the log:", await store.head());
}

if (realpathSync(process.argv[1] ?? ".") === fileURLToPath(import.meta.url)) await main();
