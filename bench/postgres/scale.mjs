// Whether statements grow with the log, the box or the bucket: the same calls on a small store and on one of a million
// events, tickets and keys, each in a database of its own, in turns. Beside the time it counts what the plans touch:
// the rows that scans and indexes return, and blocks.
import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { openPostgres } from "../../dist/postgres/index.js";
import { median } from "../measure.mjs";
import { printTable, verdict } from "../report.mjs";
import { sized } from "../settings.mjs";
import { startServer } from "./server.mjs";

const sizes = { small: sized(1_000, 100), large: Number(process.env.HOLDFAST_BENCH_ROWS ?? sized(1_000_000, 1_000)) };
const calls = sized(60, 5);
const pageSize = 100;
/** A call may touch this much more in the large store: an index has another level, a block is split now and then. */
const slack = { times: 1.5, rows: 8, blocks: 12 };

/** Each call of a capability, on the store of one size; `n` counts the calls. */
const rows = {
  "append, condition on a new tag": async ({ events }) => {
    const tags = [`order:${randomUUID()}`];
    await events.append({ type: "Sold", data: {}, tags }, { condition: { failIfEventsMatch: { tags } } });
  },
  "append, condition on a frequent tag after the head": async ({ events }) => {
    const after = await events.head();
    const tags = ["shop:1"];
    await events.append({ type: "Sold", data: {}, tags }, { condition: { failIfEventsMatch: { tags }, after } });
  },
  "append, repeated id": ({ events }) => events.append({ type: "Sold", data: {}, id: "known", tags: ["shop:1"] }),
  "read by a rare tag": ({ events }, n) => count(events.read({ tags: [`order:${1 + n}`] })),
  "read ten of a frequent tag and type": ({ events }) =>
    count(events.read({ types: ["Sold"], tags: ["shop:1"] }, { limit: 10 })),
  "last event of a frequent tag": ({ events }) => events.last({ tags: ["shop:1"] }),
  publish: ({ box }) => box.publish({ n: "1" }),
  "publish with a key": ({ box }) => box.publish({ n: "1" }, { key: randomUUID() }),
  "take, ack": async ({ box }) => {
    const delivery = await box.take();
    await delivery.bytes("n");
    await delivery.ack();
  },
  "find by key": ({ box }, n) => box.findByKey(`key-${1 + n}`),
  "a page of the archive": ({ box }) => count(box.list("archive", { limit: pageSize })),
  "put a new key": ({ bucket }) => bucket.put(`m/${randomUUID()}`, "body"),
  "put an existing key": ({ bucket }, n) => bucket.put(keyOf(1 + n), "body"),
  get: async ({ bucket }, n) => (await bucket.get(keyOf(1 + n))).bytes(),
  "a page of keys from the middle": ({ bucket }, n) => bucket.list({ after: keyOf(500 + n), limit: pageSize }),
  "a page of folders": ({ bucket }) => bucket.list({ delimiter: "/", limit: pageSize }),
  delete: ({ bucket }, n) => bucket.delete(keyOf(200 + n)),
};

export async function scaleGroup({ directory }) {
  // The statistics of a connection that ends are counted at once, so each row has its own store.
  const server = await startServer(directory, ["autovacuum=off", "max_wal_size=8GB"]);
  return { run: () => run(server), close: () => server.stop() };
}

async function run(server) {
  const places = [];
  for (const [name, size] of Object.entries(sizes)) {
    const admin = new Client(server.urlOf("postgres"));
    await admin.connect();
    await admin.query(`create database ${name}`);
    await admin.end();
    const client = new Client(server.urlOf(name));
    await client.connect();
    await fill(client, server.urlOf(name), size);
    places.push({ url: server.urlOf(name), client });
  }
  const printed = [];
  for (const [name, call] of Object.entries(rows)) printed.push(describe(name, await compare(places, call)));
  for (const { client } of places) await client.end();
  const title = `postgres: ${sizes.large.toLocaleString("en")} events, tickets and keys beside ${sizes.small.toLocaleString("en")}`;
  printTable(title, printed, ["time", "time, ×", "rows a call", "blocks a call"]);
}

async function compare(places, call) {
  const stores = [];
  for (const place of places) stores.push(await open(place.url));
  // What opens the store is not counted.
  for (const store of stores) await call(store, calls);
  for (const store of stores) await store.close();
  const opened = [];
  for (const { url, client } of places)
    opened.push({ ...(await open(url)), client, times: [], before: await touched(client) });
  for (let n = 0; n < calls; n++)
    for (const store of opened) {
      const start = performance.now();
      await call(store, n);
      store.times.push(performance.now() - start);
    }
  const results = [];
  for (const { client, times, before, close } of opened) {
    await close();
    const after = await touched(client);
    const each = (what) => (after[what] - before[what]) / calls;
    results.push({ ms: median(times), rows: each("rows"), scanned: each("scanned"), blocks: each("blocks") });
  }
  return results;
}

function describe(name, [small, large]) {
  const isBound = (what) => large[what] <= slack.times * small[what] + slack[what];
  const isMet = isBound("rows") && isBound("blocks") && large.scanned <= small.scanned + slack.rows;
  return {
    name,
    figures: [
      `${small.ms.toFixed(2)} → ${large.ms.toFixed(2)} ms`,
      `${(large.ms / small.ms).toFixed(2)} ×`,
      `${small.rows.toFixed(0)} → ${large.rows.toFixed(0)}`,
      `${small.blocks.toFixed(0)} → ${large.blocks.toFixed(0)}`,
    ],
    notes: [verdict("no growth", isMet)],
  };
}

/** `scanned`: rows that were read without an index. */
async function touched(client) {
  await client.query("select pg_stat_force_next_flush()");
  // Backends that have just ended count a moment later.
  await new Promise((resolve) => setTimeout(resolve, sized(1_200, 10)));
  const { rows: found } = await client.query(`select
    sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::float8 as rows, sum(seq_tup_read)::float8 as scanned,
    (select sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0))::float8
       from pg_statio_user_tables) as blocks from pg_stat_user_tables`);
  return found[0];
}

async function open(url) {
  const store = await openPostgres(url);
  const [events, box, objects] = [await store.events(), await store.handoff(), await store.objects()];
  return { events, box, bucket: await objects.bucket("bucket"), close: () => store.close() };
}

function keyOf(n) {
  return `k/${String(n).padStart(8, "0")}`;
}

async function count(items) {
  let counted = 0;
  for await (const item of items) counted += item === undefined ? 0 : 1;
  return counted;
}

/** One of each by calls, then copies by SQL. A twentieth of the tickets waits, the others are archived. */
async function fill(client, url, size) {
  const store = await openPostgres(url);
  const [events, box, objects] = [await store.events(), await store.handoff(), await store.objects()];
  await events.append({ type: "Sold", data: {}, id: "known", tags: ["shop:1"] });
  await box.publish({ n: "1" }, { key: "key-0" });
  const bucket = await objects.createBucket("bucket", { versioning: "enabled" });
  await bucket.put(keyOf(0), "body");
  await store.close();
  await client.query(`
    create temporary table g as select g as n from generate_series(1, ${size}) g;
    insert into hf_line (p, n, first, events, at) select l.p, 1 + g.n, 1 + g.n, 1, l.at from hf_line l, g;
    insert into hf_event (p, pos, id, type, tags, body, at, given)
      select e.p, 1 + g.n, 'event-' || g.n, case when g.n % 3 = 0 then 'Paid' else 'Sold' end,
        array['order:' || g.n, 'shop:' || g.n % 100], e.body, e.at, true from hf_event e, g where e.pos = 1;
    insert into hf_tag (p, tag, pos, type)
      select e.p, t.tag, e.pos, e.type from hf_event e, unnest(e.tags) t(tag) where e.pos > 1;
    update hf_log set head = head + ${size}, lines = lines + ${size}, bytes = bytes * ${size};

    insert into hf_ticket (p, id, state, priority, entered, created, key, keyed, claims, bytes, manifest, inline, settled, holder, serial)
      select t.p, '0' || substr(md5(g.n::text) || t.id, 2, 35), (case when g.n % 20 = 0 then 'i' else 'a' end)::"char", t.priority, t.entered, t.created,
        'key-' || g.n, true, (g.n % 20 <> 0)::int, t.bytes, t.manifest, t.inline,
        case when g.n % 20 <> 0 then t.entered + g.n * interval '1 ms' end,
        case when g.n % 20 <> 0 then 'somebody' end, case when g.n % 20 <> 0 then g.n end from hf_ticket t, g;
    insert into hf_key (p, key, id) select t.p, t.key, t.id from hf_ticket t where t.key <> 'key-0';
    insert into hf_done (p, key, replays, id, claims, holder, serial)
      select t.p, t.key, 0, t.id, 1, 'somebody', t.serial from hf_ticket t where t.state = 'a';

    insert into hf_object (b, key, slot, null_slot, live)
      select o.b, convert_to('k/' || lpad(g.n::text, 8, '0'), 'UTF8'), o.slot, o.null_slot, o.live from hf_object o, g;
    insert into hf_version (b, key, slot, marker, bytes, entry, body, parts, blobs, upload)
      select v.b, convert_to('k/' || lpad(g.n::text, 8, '0'), 'UTF8'), v.slot, v.marker, v.bytes, v.entry, v.body, v.parts, v.blobs, v.upload
      from hf_version v, g;
    drop table g`);
  await client.query("vacuum analyze");
}
