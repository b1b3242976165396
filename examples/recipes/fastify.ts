// A store in a Fastify application: opened once for each process, closed with the application.
import fastify, { type FastifyInstance } from "fastify";
import { openStore, type Store } from "holdfast";

declare module "fastify" {
  interface FastifyInstance {
    store: Store;
  }
}
async function holdfast(app: FastifyInstance, { location }: { location: string }): Promise<void> {
  const store = await openStore(location, { name: "web" });
  app.decorate("store", store);
  app.addHook("onClose", () => store.close()); // after the last request
}
/** For the whole application, not only for what is registered below: what fastify-plugin does. */
Object.assign(holdfast, { [Symbol.for("skip-override")]: true });

const app = fastify();
await app.register(holdfast, { location: process.argv[2] ?? "shared/shop" });
app.post("/sales", async (request, reply) => {
  const sales = await app.store.events("sales"); // the same object each time
  const { first } = await sales.append({ type: "Sold", data: request.body });
  return reply.code(201).send({ sale: first });
});

const answer = await app.inject({ method: "POST", url: "/sales", payload: { sku: "lamp" } }); // in place of a client
console.log(answer.statusCode, answer.json());
await app.close();
