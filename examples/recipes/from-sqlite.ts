// Moves the orders of a SQLite file on a share into an event log. It can be run again: what is there stays as it is.
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import sqlite3InitModule from "@sqlite.org/sqlite-wasm"; // comes with Holdfast; any other driver will do
import { openEvents, openProjection, type NewEvent } from "holdfast/events";

type Ordered = NewEvent<"Ordered", { customer: string; cents: number }>;

const folder = process.argv[2] ?? "shared/orders";
const file = process.argv[3] ?? `${folder}.db`; // a copy, made while no program had the file open
const { capi, wasm, oo1 } = await sqlite3InitModule();
if (!existsSync(file)) await writeSample();

// Reads the old rows.
const old = new oo1.DB();
const bytes = new Uint8Array(await readFile(file));
const flags = capi.SQLITE_DESERIALIZE_FREEONCLOSE;
const memory = wasm.allocFromTypedArray(bytes);
old.checkRc(capi.sqlite3_deserialize(old, "main", memory, bytes.length, bytes.length, flags));
const rows = old.selectObjects("SELECT id, customer, cents FROM orders ORDER BY id");
old.close();

// Each row is an event with an id of its own, so an interrupted run is simply repeated.
const orders = await openEvents<Ordered>(folder);
const results = await Promise.all(
  rows.map((row) => {
    const { id, customer, cents } = row as { id: number; customer: string; cents: number };
    return orders.append({
      type: "Ordered",
      id: `orders/${id}`,
      data: { customer, cents },
      tags: [`customer:${customer}`],
    });
  }),
);
console.log(`${results.filter(({ repeated }) => !repeated).length} of ${rows.length} rows are new`);

// What was `SELECT customer, sum(cents) FROM orders GROUP BY customer`.
const totals = await openProjection(orders, {
  name: "totals",
  query: { types: ["Ordered"] },
  key: ({ data }) => data.customer,
  apply: (sum: { cents: number } | undefined, { data }) => ({ cents: (sum?.cents ?? 0) + data.cents }),
});
const running = totals.run();
running.done.catch((error: unknown) => console.error(error));
await totals.waitUntilProcessed(await orders.head());
for (const customer of ["ada", "bob"]) console.log(customer, (await totals.get(customer))?.cents);
await running.stop();
await orders.close();

/** Only here, so that this program has something to move. */
async function writeSample(): Promise<void> {
  const sample = new oo1.DB();
  sample.exec("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, cents INTEGER)");
  sample.exec("INSERT INTO orders (customer, cents) VALUES ('ada', 1990), ('bob', 990), ('ada', 2490)");
  await writeFile(file, capi.sqlite3_js_db_export(sample));
  sample.close();
}
