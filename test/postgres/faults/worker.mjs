// A process of a history: works with all four capabilities of one store, until its standard input ends.
// It writes a line of JSON before each try and after each answer; the audit compares them with the database.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

const { library, url, name, leaseMs, clock, expected: more } = JSON.parse(process.argv[2]);
// What the audit compares comes from a monotonic clock, which is right.
const nowMs = Date.now.bind(Date);
const hourMs = 3_600_000;
if (clock === "jumps") Date.now = () => nowMs() + hourMs * (Math.floor(nowMs() / 1_000) % 3);
else if (clock !== 0) Date.now = () => nowMs() + clock;
const { openStore } = await import(library);
let isOver = false;
process.stdin.resume().on("end", () => (isOver = true));
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
/** Monotonic, and the same clock in all processes of a machine. */
const nowUs = () => Number(process.hrtime.bigint() / 1000n);
const pick = (count) => Math.floor(Math.random() * count);

/** Errors with which a program that works on must reckon while servers and processes die. */
const expected = new Set([
  "IO_ERROR", // the server is away
  "RESOURCE_BUSY", // every connection is in use
  "OUTCOME_UNKNOWN", // the answer was lost
  "LOCK_LOST", // the lease is over
  "APPEND_CONDITION_FAILED", // others were first
  "PRECONDITION_FAILED",
  ...more,
]);

let waits = 0;
/** The audit knows for how long the server was away meanwhile. */
async function waitingFor(what, call) {
  const wait = ++waits;
  say({ wait, what, us: nowUs() });
  try {
    return await call();
  } finally {
    say({ wait, us: nowUs() });
  }
}

async function forever(work) {
  while (!isOver) {
    try {
      await work();
    } catch (error) {
      if (!expected.has(error.code)) say({ failed: `${work.name}: ${error.code} ${error.message}` });
      else say({ met: `${work.name}: ${error.code}` });
    }
    // A few processes and a server share two cores.
    await sleep(pick(100));
  }
}

async function opened(open) {
  for (;;)
    try {
      return await open();
    } catch (error) {
      // A server that starts up refuses connections.
      if (!expected.has(error.code)) throw error;
      await sleep(50);
    }
}

const store = await opened(() => openStore(url, { leaseMs, name }));
const [events, box, objects, locks] = [
  await opened(() => store.events("main", { lockTimeoutMs: 60_000 })),
  await opened(() => store.handoff("box")),
  await opened(() => store.objects()),
  await opened(() => store.locks()),
];
const bucket = await opened(() => objects.bucket("bucket"));
say({ ready: name });

/** Seats are taken once, by a condition. */
async function append() {
  const id = randomUUID();
  const tags = [`seat:${pick(1_000_000) < 300_000 ? pick(2_000) : randomUUID()}`];
  say({ try: "event", id });
  const condition = { failIfEventsMatch: { tags } };
  const { first } = await waitingFor("event", () =>
    events.append({ type: "Taken", data: {}, tags, id }, { condition }),
  );
  say({ ok: "event", id, first });
}

/** Some tickets repeat the key of another one. */
async function publish() {
  const n = randomUUID();
  const key = pick(10) < 3 ? { key: `key-${pick(500)}` } : {};
  say({ try: "ticket", n, ...key });
  const files = { n, ...(pick(20) === 0 && { large: "x".repeat(100_000) }) };
  const group = pick(3) === 0 && { group: `group-${pick(4)}` };
  const { id, duplicate } = await waitingFor("ticket", () => box.publish(files, { ...key, ...group }));
  say({ ok: "ticket", n, id, duplicate });
}

async function put() {
  const [body, once] = [randomUUID(), randomUUID()];
  const [key, onceKey] = [`many/${pick(20)}`, `once/${pick(100_000)}`];
  say({ try: "version", body });
  const { versionId } = await waitingFor("version", () => bucket.put(key, body));
  say({ ok: "version", body, key, versionId });
  say({ try: "version", body: once });
  const first = await waitingFor("version", () => bucket.put(onceKey, once, { ifNoneMatch: "*" }));
  say({ ok: "version", body: once, key: onceKey, versionId: first.versionId });
}

/** A hold of a tree overlaps one of a path in it. */
async function hold() {
  const number = pick(3);
  const request = pick(3) === 0 ? { path: `lock-${number}`, mode: "tree" } : { path: `lock-${number}/file` };
  const { path, mode } = request;
  const held = await waitingFor(`lock ${number}`, () =>
    locks.acquire(path, { ...(mode && { mode }), timeoutMs: 60_000 }),
  );
  const entry = { lock: number, id: held.id, fence: held.fence };
  // It was held at these moments if the answer says that it still is.
  const inUs = nowUs();
  await held.assertHeld();
  say({ ...entry, inUs });
  await sleep(pick(8));
  const outUs = nowUs();
  await held.assertHeld();
  say({ ...entry, outUs });
  await held.release();
}

const consumer = { stop: async () => undefined };
async function consume() {
  const running = box.consume(
    async (delivery) => {
      await delivery.output("copy", `of ${await delivery.text("n")}`);
      if (delivery.group !== undefined) say({ group: delivery.group });
      return await delivery.text("n");
    },
    { concurrency: 4, attempts: 10_000, backoffMs: { min: 1, max: 20 } },
  );
  consumer.stop = () => running.stop();
  await running.done;
}

await Promise.all(
  [append, append, append, publish, publish, put, put, hold, hold, consume].map(forever).concat(stop()),
);
async function stop() {
  while (!isOver) await sleep(50);
  await consumer.stop();
}
await store.close();
say({ closed: name });
process.exit(0);
