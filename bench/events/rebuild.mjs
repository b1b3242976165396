// Rebuilding a read model: how many events a second go through it, beside a plain read of all
// events that keeps the same states in memory.
import { mkdirSync } from "node:fs";
import { openEvents, openProjection } from "../../dist/events/index.js";
import { printTable, ratio } from "../report.mjs";
import { sized } from "../settings.mjs";
import { fill } from "./contestants.mjs";

const size = sized(200_000, 5_000);

export async function rebuildGroup({ directory }) {
  return { run: () => run(directory) };
}

async function run(directory) {
  const place = `${directory}/log`;
  mkdirSync(place);
  const events = await openEvents(place, { durability: "none" });
  await fill(events, size);
  const head = await events.head();
  const read = await perSecond(head, () => readAll(events));
  const rows = [{ name: "read, 1,000 states in memory", figures: [ratio(1), rateOf(read)] }];
  for (const { name, key } of [
    { name: "1,000 documents", key: ({ data }) => data.sku },
    { name: "a document for every 10 events", key: ({ position }) => String(Math.floor(position / 10)) },
  ]) {
    const definition = { name: name.replaceAll(/\W/g, "-"), query: { types: ["Sold"] }, key, apply: count };
    const projection = await openProjection(events, definition);
    const rate = await perSecond(head, () => projection.rebuild());
    if ((await projection.position()) !== head) throw new Error("It is not at the head.");
    rows.push({ name: `rebuild, ${name}`, figures: [ratio(rate / read), rateOf(rate)] });
    await projection[Symbol.asyncDispose]();
  }
  await events.close();
  printTable(`events: a read model of ${head.toLocaleString("en")} events (ratio to: read)`, rows);
}

const count = (state, { data }) => ({ sold: (state?.sold ?? 0) + 1, turnover: (state?.turnover ?? 0) + data.price });

async function readAll(events) {
  const states = new Map();
  for await (const event of events.read({ types: ["Sold"] }))
    states.set(event.data.sku, count(states.get(event.data.sku), event));
}

async function perSecond(head, action) {
  const start = performance.now();
  await action();
  return (1000 * head) / (performance.now() - start);
}

function rateOf(perSecond) {
  return `${Math.round(perSecond / 1000)} k/s`;
}
