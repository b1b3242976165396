// Opens a large log and measures what it costs.
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { openEvents } from "../../dist/events/index.js";
import { plainCodec } from "../../dist/events/model/codec.js";
import { OpenedLog } from "../../dist/events/open/opened-log.js";
import { itemsOf } from "../../dist/events/model/query.js";
import { openNodePorts } from "../../dist/ports/node/ports.js";
import { median } from "../measure.mjs";
import { sized } from "../settings.mjs";

const [place, role] = process.argv.slice(2);
if (role === "appender") await append();
else await measureAll();

/** Another process, which says when its append was acknowledged. */
async function append() {
  const events = await openEvents(place);
  process.on("message", async () => {
    await events.append({ type: "Tick", data: null });
    process.send(process.hrtime.bigint().toString());
  });
  process.send("ready");
}

async function measureAll() {
  globalThis.gc();
  const before = process.memoryUsage();
  const start = performance.now();
  const events = await openEvents(place);
  const openMs = performance.now() - start;
  const head = await events.head();
  await events.last({ tags: ["nobody"] });
  globalThis.gc();
  const after = process.memoryUsage();
  const memoryMb = (after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers) / 1e6;
  // What is too fast to be seen from outside.
  const { view } = await OpenedLog.open(await openNodePorts(place), place, plainCodec, {});
  const items = itemsOf({ types: ["Sold"], tags: ["sale:5", "till:03"] });
  const conditionUs = await timeUs(sized(200_000, 2000), () => view.isClear(items, head));
  const uniqueUs = await timeUs(200, () => events.last({ tags: [`sale:${Math.random()}`] }));
  const idUs = await timeUs(200, async () => {
    for await (const _ of view.idCandidates(String(Math.random())));
  });
  const scanPerSecond = await rate(async () => {
    let count = 0;
    for await (const _ of events.read()) count++;
    return count;
  });
  const tagPerSecond = await rate(async () => {
    let count = 0;
    for await (const _ of events.read({ tags: ["till:03"] }, { limit: 50_000 })) count++;
    return count;
  });
  const tailMs = await measureTail(events, head);
  process.send({ openMs, memoryMb, conditionUs, uniqueUs, idUs, scanPerSecond, tagPerSecond, tailMs });
  await events.close();
  process.exit(0);
}

async function timeUs(times, call) {
  const start = performance.now();
  for (let i = 0; i < times; i++) {
    const answer = call();
    if (answer instanceof Promise) await answer;
  }
  return (1000 * (performance.now() - start)) / times;
}

async function rate(call) {
  const start = performance.now();
  return (1000 * (await call())) / (performance.now() - start);
}

/** From the acknowledgement in one process to the event in the hands of a subscriber in another. */
async function measureTail(events, after) {
  const child = fork(fileURLToPath(import.meta.url), [place, "appender"]);
  await new Promise((resolve) => child.once("message", resolve));
  const subscription = events.subscribe({ types: ["Tick"] }, { after })[Symbol.asyncIterator]();
  const times = [];
  for (let i = 0; i < sized(30, 3); i++) {
    const seen = subscription.next().then(() => process.hrtime.bigint());
    const acknowledged = new Promise((resolve) => child.once("message", resolve));
    child.send("append");
    const [seenAt, acknowledgedAt] = await Promise.all([seen, acknowledged]);
    times.push(Math.max(0, Number(seenAt - BigInt(acknowledgedAt)) / 1e6));
  }
  await subscription.return();
  child.kill();
  return median(times);
}
