// An event-sourced aggregate, for readers who think in objects: it is built from its events, checks its rules, and records new events. No versions, no repository.
// Run it: node node_modules/holdfast/dist/examples/events/event-sourced-aggregate.js (here: node dist/examples/events/event-sourced-aggregate.js)
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { decide, memoryEvents, modelsOf, type EventStore, type NewEvent } from "holdfast/events";

type OrderOpened = NewEvent<"OrderOpened", { order: string; customer: string }>;
type LineAdded = NewEvent<"LineAdded", { order: string; sku: string; quantity: number }>;
type OrderPlaced = NewEvent<"OrderPlaced", { order: string; quantity: number }>;
export type OrderEvent = OrderOpened | LineAdded | OrderPlaced;

const quantityMax = 10;

export class Order {
  readonly recorded: OrderEvent[] = [];
  readonly #id: string;
  #state: "missing" | "open" | "placed" = "missing";
  #quantity = 0;

  constructor(id: string, history: readonly OrderEvent[]) {
    this.#id = id;
    for (const event of history) this.#apply(event);
  }

  open(customer: string): void {
    if (this.#state !== "missing") throw new Error(`The order ${this.#id} exists already.`);
    this.#record({ type: "OrderOpened", data: { order: this.#id, customer } });
  }

  addLine(sku: string, quantity: number): void {
    if (this.#state !== "open") throw new Error(`The order ${this.#id} is ${this.#state}.`);
    if (this.#quantity + quantity > quantityMax) throw new Error(`An order has at most ${quantityMax} pieces.`);
    this.#record({ type: "LineAdded", data: { order: this.#id, sku, quantity } });
  }

  place(): void {
    if (this.#state !== "open") throw new Error(`The order ${this.#id} is ${this.#state}.`);
    if (this.#quantity === 0) throw new Error(`The order ${this.#id} is empty.`);
    this.#record({ type: "OrderPlaced", data: { order: this.#id, quantity: this.#quantity } });
  }

  #record(event: OrderEvent): void {
    this.#apply(event);
    this.recorded.push({ ...event, tags: [`order:${this.#id}`] });
  }

  #apply({ type, data }: OrderEvent): void {
    if (type === "OrderOpened") this.#state = "open";
    if (type === "LineAdded") this.#quantity += data.quantity;
    if (type === "OrderPlaced") this.#state = "placed";
  }
}

const historyOf = (id: string) =>
  modelsOf<OrderEvent>()({
    query: { types: ["OrderOpened", "LineAdded", "OrderPlaced"], tags: [`order:${id}`] },
    initial: [] as OrderEvent[],
    apply: (history, event) => [...history, event],
  });

/** Loads, changes and saves. If another process has changed it meanwhile, all of it happens again, on the new state. */
export async function changeOrder(
  store: EventStore<OrderEvent>,
  id: string,
  change: (order: Order) => void,
): Promise<void> {
  await decide(store, { history: historyOf(id) }, ({ history }) => {
    const order = new Order(id, history);
    change(order);
    return order.recorded;
  });
}

export async function main(): Promise<void> {
  const store = memoryEvents<OrderEvent>();
  await changeOrder(store, "7", (order) => order.open("ada"));
  await Promise.all(["lamp", "desk"].map((sku) => changeOrder(store, "7", (order) => order.addLine(sku, 2))));
  await changeOrder(store, "7", (order) => order.place());
  for await (const { position, type, data } of store.read({ tags: ["order:7"] })) console.log(position, type, data);
}

if (realpathSync(process.argv[1] ?? ".") === fileURLToPath(import.meta.url)) await main();
