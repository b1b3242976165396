// A job that cron starts on several machines. One of them runs it; the others end at once.
import { openStore } from "holdfast";

await using store = await openStore(process.argv[2] ?? "shared/shop", { name: "nightly report" });
const [locks, files] = [await store.locks(), await store.files({ index: false })];

await using hold = await locks.tryAcquire("reports", { mode: "tree" });
if (hold === undefined) {
  const [running] = await locks.list({ under: "reports" });
  console.log(`skipped: process ${running?.holder.pid} on ${running?.holder.host} is at work`);
} else {
  const path = `reports/${new Date().toISOString().slice(0, 10)}.md`;
  if ((await files.stat(path)) !== undefined) console.log("skipped: done already today");
  else {
    const report = "25 lamps sold\n"; // an hour of work; pass `hold.signal` to the calls that it makes
    await files.write(path, report, { within: hold }); // refused if the lock was lost meanwhile
    console.log("report written");
  }
}
