// The console of a store in a program that uses Fastify: node fastify.mjs DIR
import fastify from "fastify";
import { openStore } from "holdfast";
import { createConsole } from "holdfast/console";

const store = await openStore(process.argv[2] ?? "shared/shop");
const { handler, token } = createConsole(store, { path: "/console", allowActions: true });

const app = fastify();
app.get("/", async () => "The shop.");
await app.register(async (scope) => {
  // The console reads the bodies of its requests itself.
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser("*", (_request, _body, done) => done(null));
  for (const path of ["/console", "/console/*"])
    scope.all(path, (request, reply) => {
      reply.hijack();
      handler(request.raw, reply.raw);
    });
});

await app.listen({ port: Number(process.env["PORT"] ?? 8080), host: "127.0.0.1" });
console.log(`http://127.0.0.1:${app.server.address().port}/console/?token=${token}`);
