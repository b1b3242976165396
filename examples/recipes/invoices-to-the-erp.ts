// A shop passes invoices to an ERP that is sometimes down, and that must book none of them twice.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { openHandoff } from "holdfast/handoff";

// The ERP: it is starting at first, refuses an invoice without a total, and knows each key once.
const booked = new Map<string, string>();
let requests = 0;
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const key = request.headers["idempotency-key"] as string;
  const xml = (await request.toArray()).join("");
  if (++requests === 1) return void response.writeHead(503).end();
  if (!xml.includes("<total>")) return void response.writeHead(422).end("there is no total");
  if (!booked.has(key)) booked.set(key, `booking ${booked.size + 1}`);
  response.end(booked.get(key));
}
const erp = createServer((request, response) => void answer(request, response));
await new Promise<void>((resolve) => erp.listen(0, "127.0.0.1", resolve));
const { port } = erp.address() as { port: number };

const box = await openHandoff(process.argv[2] ?? "shared/invoices");
// In the shop. A second publish under the same key adds nothing.
for (const total of ["119.00", "119.00"])
  await box.publish({ "invoice.xml": `<total>${total}</total>` }, { key: "invoice/R-7" });
await box.publish({ "invoice.xml": "<invoice/>" }, { key: "invoice/R-8" });

// On any machine that reaches the ERP, and on any number of them.
const importer = box.consume(
  async (invoice) => {
    const reply = await fetch(`http://127.0.0.1:${port}/invoices`, {
      method: "POST",
      headers: { "idempotency-key": invoice.key },
      body: await invoice.text("invoice.xml"),
      signal: invoice.signal, // aborts if this process has lost the invoice to another one
    });
    if (reply.status === 422) return await invoice.fail(await reply.text()); // a dead letter: no second attempt helps
    if (!reply.ok) throw new Error(`the ERP answers ${reply.status}`); // tried again, after growing delays
    return await reply.text(); // kept with the key
  },
  { attempts: 20, backoffMs: { min: 50, max: 60_000 }, idleMs: 300 }, // without `idleMs` it runs until it is stopped
);
await importer.done;

for (const key of ["invoice/R-7", "invoice/R-8"]) {
  const ticket = await box.findByKey(key);
  console.log(key, ticket?.state, ticket?.result ?? ticket?.history.at(-1)?.reason);
}
await box.close();
erp.close();
