// Ten tills sell from one stock. Each would be a program on a machine of its own; here they share a process.
import { decide, modelsOf, openEvents, type EventStore, type NewEvent } from "holdfast/events";

type Stocked = NewEvent<"Stocked", { sku: string; pieces: number }>;
type Sold = NewEvent<"Sold", { sku: string; receipt: string }>;
type Ledger = EventStore<Stocked | Sold>;

const model = modelsOf<Stocked | Sold>();
const stockOf = (sku: string) =>
  model({
    query: { types: ["Stocked", "Sold"], tags: [`sku:${sku}`] },
    initial: 0,
    apply: (stock, event) => (event.type === "Sold" ? stock - 1 : stock + event.data.pieces),
  });
const isBooked = (receipt: string) =>
  model({ query: { types: ["Sold"], tags: [`receipt:${receipt}`] }, initial: false, apply: () => true });

/** Sells one piece. A till that crashed and does not know whether it has sold calls it again with the same receipt. */
async function sell(ledger: Ledger, sku: string, receipt: string): Promise<void> {
  await decide(ledger, { stock: stockOf(sku), done: isBooked(receipt) }, ({ stock, done }) => {
    if (done) return [];
    if (stock < 1) throw new Error(`${sku} is sold out`);
    return { type: "Sold", data: { sku, receipt }, tags: [`sku:${sku}`, `receipt:${receipt}`] };
  });
}

const folder = process.argv[2] ?? "shared/ledger";
const tills: Ledger[] = await Promise.all(Array.from({ length: 10 }, () => openEvents<Stocked | Sold>(folder)));
await tills[0]?.append({ type: "Stocked", data: { sku: "lamp", pieces: 25 }, tags: ["sku:lamp"] });

const attempts = tills.flatMap((till, index) =>
  [1, 2, 3, 3].map((number) => sell(till, "lamp", `till ${index}, receipt ${number}`)),
);
await Promise.allSettled(attempts);

let stocked = 0;
const receipts: string[] = [];
for await (const { type, data } of tills[0]!.read()) {
  if (type === "Stocked") stocked += data.pieces;
  else receipts.push(data.receipt);
}
console.log(`${receipts.length} of ${stocked} lamps sold, under ${new Set(receipts).size} receipts`);
await Promise.all(tills.map((till) => till.close()));
