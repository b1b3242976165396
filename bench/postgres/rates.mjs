// Holdfast on PostgreSQL beside Emmett and pg-boss on the same server: 16 callers of one process each.
import { randomUUID } from "node:crypto";
import { openPostgres } from "../../dist/postgres/index.js";
import { message } from "../handoff/contestants.mjs";
import { median } from "../measure.mjs";
import { printTable, ratio, verdict } from "../report.mjs";
import { sized } from "../settings.mjs";
import { startServer } from "./server.mjs";

const callers = 16;
/** A call of the bench is so many of each caller, so that they need not wait for each other. */
const each = 8;
const tickets = sized(1_600, 32);
const rounds = sized(9, 1);

const crowd = (call) => async () => {
  const work = async () => {
    for (let time = 0; time < each; time++) await call();
  };
  await Promise.all(Array.from({ length: callers }, work));
};

/** Conditional appends, and publications. */
export async function writeGroup({ directory }) {
  const peers = await openPeers(directory);
  const { boss, emmett, store } = peers;
  const events = await store.events("main");
  const box = await store.handoff("published");
  const { STREAM_DOES_NOT_EXIST } = await import("@event-driven-io/emmett");
  const data = { sku: 4711, amount: 3, note: "x".repeat(60) };
  const rows = {
    "Emmett, appendToStream": () =>
      emmett.appendToStream(`order-${randomUUID()}`, [{ type: "Sold", data }], {
        expectedStreamVersion: STREAM_DOES_NOT_EXIST,
      }),
    "holdfast append with a condition": () => {
      const tags = [`order:${randomUUID()}`];
      return events.append({ type: "Sold", data, tags }, { condition: { failIfEventsMatch: { tags } } });
    },
    "pg-boss, send": () => boss.send("published", { message }),
    "holdfast publish": () => box.publish({ "invoice.json": message }),
  };
  const targets = {
    "holdfast append with a condition": [{ ratioMin: 3, of: "Emmett, appendToStream" }],
    "holdfast publish": [{ ratioMin: 4, of: "pg-boss, send" }],
  };
  return {
    title: `postgres: ${callers} callers of one process on a server of PostgreSQL 18, durable`,
    baseline: "Emmett, appendToStream",
    contenders: Object.entries(rows).map(([name, call]) => ({
      name,
      call: crowd(call),
      callsPerRun: callers * each,
      targets: targets[name],
    })),
    close: () => peers.close(),
  };
}

/** Claims and acknowledgements, until nothing is left. */
export async function consumeGroup({ directory }) {
  const peers = await openPeers(directory);
  return { run: () => consume(peers), close: () => peers.close() };
}

async function consume({ boss, store }) {
  const box = await store.handoff("consumed");
  const items = Array.from({ length: tickets }, () => ({ files: { "invoice.json": message } }));
  const fillBoss = () =>
    boss.insert(
      "consumed",
      items.map(() => ({ data: { message } })),
    );
  const drainBoss = async (size) => {
    for (;;) {
      const jobs = await boss.fetch("consumed", { batchSize: size });
      if (jobs.length === 0) return;
      await boss.complete("consumed", jobs.map(({ id }) => id)); // prettier-ignore
    }
  };
  const all = (work) => Promise.all(Array.from({ length: callers }, work));
  const fillBox = async () => {
    for await (const published of box.publishMany(items)) void published;
  };
  const rows = {
    "pg-boss, fetch and complete, one each": { fill: fillBoss, drain: () => all(() => drainBoss(1)) },
    [`pg-boss, fetch and complete, ${callers} at once`]: { fill: fillBoss, drain: () => drainBoss(callers) },
    "holdfast take, ack": {
      fill: fillBox,
      drain: () =>
        all(async () => {
          for (let taken = await box.take(); taken !== undefined; taken = await box.take()) {
            await taken.bytes("invoice.json");
            await taken.ack();
          }
        }),
    },
    "holdfast consume": {
      fill: fillBox,
      drain: () => box.consume((delivery) => delivery.bytes("invoice.json"), { concurrency: callers, idleMs: 0 }).done,
    },
  };
  const rates = Object.fromEntries(Object.keys(rows).map((name) => [name, []]));
  for (let round = -1; round < rounds; round++)
    for (const [name, { fill, drain }] of Object.entries(rows)) {
      await fill();
      const start = performance.now();
      await drain();
      if (round >= 0) rates[name].push((1000 * tickets) / (performance.now() - start));
    }
  const over = (name, other) => median(rates[name].map((rate, round) => rate / rates[other][round]));
  const [one, many] = Object.keys(rows);
  const printed = Object.keys(rows).map((name) => {
    const isOurs = name.startsWith("holdfast");
    const least = Math.min(over(name, one), over(name, many));
    return {
      name,
      figures: [ratio(over(name, one)), ratio(over(name, many)), `${Math.round(median(rates[name]))}/s`],
      notes: isOurs ? [verdict(`≥ 2.5 × the faster of pg-boss, is ${least.toFixed(2)}`, least >= 2.5)] : [],
    };
  });
  printTable(`postgres: claim and acknowledge, ${callers} callers of one process`, printed, ["× one each", `× ${callers} at once`, "rate"]); // prettier-ignore
}

async function openPeers(directory) {
  const server = await startServer(directory);
  const url = server.urlOf("postgres");
  const { PgBoss } = await import("pg-boss");
  const { getPostgreSQLEventStore } = await import("@event-driven-io/emmett-postgresql");
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
  // It reports connections that end with the server.
  boss.on("error", () => undefined);
  await boss.start();
  for (const queue of ["published", "consumed"]) await boss.createQueue(queue);
  const emmett = getPostgreSQLEventStore(url);
  const store = await openPostgres(url);
  return {
    boss,
    emmett,
    store,
    close: async () => {
      await store.close();
      await emmett.close();
      await boss.stop({ graceful: false });
      await server.stop();
    },
  };
}
