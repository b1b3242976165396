// What must be there after the power was cut: all that anybody was told or shown, at its place; and
// nobody is stopped by what the cut has left.
import { openEvents, verifyEvents } from "../../dist/events/index.js";
import { openPathLocks } from "../../dist/locks/index.js";

const patienceMs = 60_000;

export async function audit(logs, { directory, told, isSameBoot }) {
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
  const { till, reader, consumer, locker } = told;
  const figures = `${till.length} + ${told["share-till"].length} acknowledged, ${reader.length} + ${told["share-reader"].length} shown, ${consumer.length} consumed, ${locker.length} locks; ${counts.local} + ${counts.share} events left`;
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
