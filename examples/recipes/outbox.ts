// A web service takes orders, and each order sends one mail: never a mail without an order, nor an order without its mail.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { openStore } from "holdfast";
import type { NewEvent } from "holdfast/events";

type OrderPlaced = NewEvent<"OrderPlaced", { sku: string; mail: string }>;

const store = await openStore(process.argv[2] ?? "shared/shop", { name: "orders" });
const orders = await store.events<OrderPlaced>("orders");
const mails = await store.handoff("mails");

// The request appends one event, which is the order and the task to send a mail in one.
async function takeOrder(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const data = JSON.parse((await request.toArray()).join("")) as OrderPlaced["data"];
  const id = request.headers["idempotency-key"] as string; // of the browser: it sends an order again if no answer comes
  const { first, repeated } = await orders.append({ type: "OrderPlaced", data, id });
  response.writeHead(repeated ? 200 : 201).end(`order ${first}`);
}

// One process at a time passes the orders on. After a crash it may pass one on again: the key makes it one ticket.
const outbox = orders.consume("outbox", { types: ["OrderPlaced"] }, async (batch) => {
  for (const { id, position, data } of batch)
    await mails.publish({ "mail.txt": `Thank you for order ${position}: a ${data.sku}` }, { key: id, meta: data.mail });
});
outbox.done.catch((error: unknown) => console.error(error)); // stopped: nothing is skipped

// Any number of processes send mails.
let attempts = 0;
const sender = mails.consume(
  async (mail) => {
    if (++attempts === 1) throw new Error("the mail server is restarting");
    return `to ${String(mail.meta)}: ${await mail.text("mail.txt")}`; // send it here, with mail.key as its Message-ID
  },
  { backoffMs: { min: 20, max: 60_000 } },
);

const service = createServer((request, response) => {
  takeOrder(request, response).catch(() => response.writeHead(503).end());
});
await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));

// Two visitors; the first one clicks twice.
const { port } = service.address() as { port: number };
for (const [id, mail] of [
  ["a1", "ada@example.org"],
  ["a1", "ada@example.org"],
  ["b1", "bob@example.org"],
]) {
  // prettier-ignore
  const headers = { "idempotency-key": id! };
  const answer = await fetch(`http://127.0.0.1:${port}`, { method: "POST", headers, body: JSON.stringify({ sku: "lamp", mail }) }); // prettier-ignore
  console.log(answer.status < 300 ? `accepted: ${await answer.text()}` : answer.status);
}
await outbox.waitUntilProcessed(await orders.head());
for (const id of ["a1", "b1"]) {
  const ticket = await mails.findByKey(id);
  if (ticket !== undefined) console.log((await mails.waitFor(ticket.id)).result);
}
await sender.stop();
service.close();
await store.close();
