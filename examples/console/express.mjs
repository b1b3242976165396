// The console of a store in a program that uses Express: node express.mjs DIR
import express from "express";
import { openStore } from "holdfast";
import { createConsole } from "holdfast/console";

const store = await openStore(process.argv[2] ?? "shared/shop");
const { handler, token } = createConsole(store, { path: "/console", allowActions: true });

const app = express();
app.get("/", (_request, response) => response.send("The shop."));
// Before any parser of bodies, and with the same path as above.
app.use("/console", handler);

const server = app.listen(Number(process.env["PORT"] ?? 8080), "127.0.0.1", () =>
  console.log(`http://127.0.0.1:${server.address().port}/console/?token=${token}`),
);
