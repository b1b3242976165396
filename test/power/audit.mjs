// What must be there after the power was cut: all that anybody was told or shown, at its place; and
// nobody is stopped by what the cut has left.
import { openEvents, verifyEvents } from "../../dist/events/index.js";
import { openFiles } from "../../dist/files/index.js";
import { openHandoff } from "../../dist/handoff/index.js";
import { openObjects } from "../../dist/objects/index.js";
import { openPathLocks } from "../../dist/locks/index.js";

const patienceMs = 60_000;

export async function audit({ logs, places }, { directory, told, isSameBoot }) {
  const problems = [];
  const attempt = async (what, action) => {
    try {
      return await action();
    } catch (error) {
      problems.push(`${what}: ${error.code ?? ""} ${error.message}`);
      return undefined;
    }
  };
  const promised = {
    local: [...told.till, ...told.reader],
    share: [...told["share-till"], ...told["share-reader"]],
  };
  const counts = {};
  for (const mode of ["local", "share"]) {
    counts[mode] = await attempt(`the log of mode ${mode}`, async () => {
      const ids = await idsIn(logs[mode]);
      for (const { position, id } of promised[mode])
        if (ids[position - 1] !== id)
          problems.push(
            `${id} was promised at ${position} of the log of mode ${mode}, and ${ids[position - 1]} is there`,
          );
      const { ok, problems: found } = await verifyEvents(logs[mode]);
      if (!ok) problems.push(`verify of mode ${mode}: ${found.map(({ what }) => what).join(" ")}`);
      return ids.length;
    });
  }
  if (told.consumer.length > 0) await attempt("the consumer", () => goOn(logs.local, told.consumer, problems));
  await attempt("the locks", async () => {
    const locks = await openPathLocks(directory);
    const hold = await locks.acquire("stock", { timeoutMs: patienceMs });
    const last = told.locker.at(-1)?.fence ?? 0;
    // Within one boot nothing tells that the table has lost its end: decision 54.
    if (hold.fence <= last && !isSameBoot) problems.push(`the fence ${hold.fence} comes after ${last}`);
    await hold.release();
    await locks.close();
  });
  await attempt("the box", () => findTickets(places.box, told.publisher, problems));
  await attempt("the objects", () => findVersions(places.objects, told.putter, problems));
  await attempt("the files", () => findTexts(places.files, told.filer, problems));
  const { till, reader, consumer, locker, publisher, putter, filer } = told;
  const figures = `${publisher.length} tickets, ${putter.length} puts, ${filer.length} writes and moves, ${till.length} + ${told["share-till"].length} acknowledged, ${reader.length} + ${told["share-reader"].length} shown, ${consumer.length} consumed, ${locker.length} locks; ${counts.local} + ${counts.share} events left`;
  return { figures, problems };
}

async function idsIn(log) {
  const events = await openEvents(log);
  try {
    const ids = [];
    for await (const { id } of events.read()) ids.push(id);
    return ids;
  } finally {
    await events.close();
  }
}

/** It goes on behind its checkpoint, skips nothing, and comes to the end. */
async function goOn(log, before, problems) {
  const events = await openEvents(log);
  const { last } = await events.append({ type: "audit", data: null });
  const seen = [];
  const consumer = events.consume("mail", "all", async ([{ position }]) => void seen.push(position));
  await consumer.waitUntilProcessed(last, { signal: AbortSignal.timeout(patienceMs) });
  await events.close();
  const handled = new Set([...before.map(({ position }) => position), ...seen]);
  for (let position = 1; position <= last; position++)
    if (!handled.has(position)) problems.push(`the consumer has skipped ${position}`);
}

/** Each that was published is there, and can be taken. */
async function findTickets(directory, published, problems) {
  const box = await openHandoff(directory);
  const left = new Set(published.map(({ ticket }) => ticket));
  for (;;) {
    const delivery = await box.take();
    if (delivery === undefined) break;
    left.delete(delivery.id);
    await delivery.ack();
  }
  for (const ticket of left) problems.push(`the ticket ${ticket} is lost`);
  await box.close();
}

async function findVersions(directory, put, problems) {
  const objects = await openObjects(directory);
  const bucket = await objects.bucket("photos");
  const found = new Set();
  for await (const { key, versionId } of bucket.versions()) {
    // Every byte of it, against its checksum.
    await (await bucket.get(key, { versionId })).bytes();
    found.add(versionId);
  }
  for (const { version } of put) if (!found.has(version)) problems.push(`the version ${version} is lost`);
  await objects.close();
}

/** What was moved is where it was moved to; what was written last is there or on its way. */
async function findTexts(directory, told, problems) {
  const files = await openFiles(directory, { index: false });
  const [written, moved] = ["written", "moved"].map((what) => told.flatMap((each) => each[what] ?? []));
  for (const number of moved)
    if ((await textAt(files, `done-${number}`)) !== String(number)) problems.push(`the file done-${number} is lost`);
  const last = written.at(-1);
  // The next one may have been written over it, or moved after it.
  const places = [`done-${last}`, "draft"];
  if (
    last !== undefined &&
    !moved.includes(last) &&
    !(await Promise.all(places.map((path) => textAt(files, path)))).some((text) => Number(text) >= last)
  )
    problems.push(`the file with ${last} is lost`);
  await files.close();
}

async function textAt(files, path) {
  return (await files.stat(path)) === undefined ? undefined : await files.readText(path);
}
