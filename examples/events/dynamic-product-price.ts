// Dynamic prices: an order is taken at the price that the customer has seen, if that was the price a short while ago.
// Run it: node node_modules/holdfast/dist/examples/events/dynamic-product-price.js (here: node dist/examples/events/dynamic-product-price.js)
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { decide, memoryEvents, modelsOf, type EventStore, type NewEvent } from "holdfast/events";

type ProductDefined = NewEvent<"ProductDefined", { product: string; cents: number }>;
type PriceChanged = NewEvent<"PriceChanged", { product: string; cents: number }>;
type ProductsOrdered = NewEvent<"ProductsOrdered", { order: string; items: { product: string; cents: number }[] }>;
export type PriceEvent = ProductDefined | PriceChanged | ProductsOrdered;

export interface SeenPrice {
  product: string;
  cents: number;
}

/** How long a price still counts after it has changed. */
const graceMs = 10 * 60 * 1000;

type Price = { cents: number; since: string };

const model = modelsOf<PriceEvent>();

/** All prices that a product has had, the newest last. */
const pricesOf = (product: string) =>
  model({
    query: { types: ["ProductDefined", "PriceChanged"], tags: [`product:${product}`] },
    initial: [] as Price[],
    apply: (prices, { data, time }) => [...prices, { cents: data.cents, since: time }],
  });

export async function defineProduct(store: EventStore<PriceEvent>, product: string, cents: number): Promise<void> {
  await decide(store, { prices: pricesOf(product) }, ({ prices }) => {
    if (prices.length > 0) throw new Error(`The product ${product} exists already.`);
    return { type: "ProductDefined", data: { product, cents }, tags: [`product:${product}`] };
  });
}

export async function changePrice(store: EventStore<PriceEvent>, product: string, cents: number): Promise<void> {
  await decide(store, { prices: pricesOf(product) }, ({ prices }) => {
    if (prices.length === 0) throw new Error(`There is no product ${product}.`);
    return prices.at(-1)?.cents === cents
      ? []
      : { type: "PriceChanged", data: { product, cents }, tags: [`product:${product}`] };
  });
}

/** One model for each product in the basket: the order rests on all of their prices, and on nothing else. */
export async function order(
  store: EventStore<PriceEvent>,
  id: string,
  items: SeenPrice[],
  now = new Date(),
): Promise<void> {
  const models = Object.fromEntries(items.map(({ product }) => [product, pricesOf(product)]));
  await decide(store, models, (pricesByProduct) => {
    for (const { product, cents } of items) {
      const prices = pricesByProduct[product] ?? [];
      if (prices.length === 0) throw new Error(`There is no product ${product}.`);
      // A price counted until the next one came; the last one counts still.
      const counts = prices.some((price, index) => {
        const until = prices[index + 1]?.since;
        return price.cents === cents && (until === undefined || now.getTime() - Date.parse(until) <= graceMs);
      });
      if (!counts) throw new Error(`The price of ${product} is ${prices.at(-1)?.cents}, not ${cents}.`);
    }
    const tags = [`order:${id}`, ...items.map(({ product }) => `product:${product}`)];
    return { type: "ProductsOrdered", data: { order: id, items }, tags };
  });
}

export async function main(): Promise<void> {
  const store = memoryEvents<PriceEvent>();
  await defineProduct(store, "lamp", 1990);
  await changePrice(store, "lamp", 2490);
  await order(store, "1", [{ product: "lamp", cents: 1990 }]);
  console.log("ordered at the price of a moment ago");
  await order(store, "2", [{ product: "lamp", cents: 990 }]).catch((refusal: unknown) => console.log(String(refusal)));
}

if (realpathSync(process.argv[1] ?? ".") === fileURLToPath(import.meta.url)) await main();
