// The same calls as with proper-lockfile, on path locks: lock(), then the function that it returns.
import { readFile, writeFile } from "node:fs/promises";
import { isHoldfastError } from "holdfast";
import { openPathLocks } from "holdfast/locks";

const folder = process.argv[2] ?? "shared";
// Once for each process. `leaseMs` is what `stale` was, and `timeoutMs` what `retries` was.
const locks = await openPathLocks(folder, { leaseMs: 30_000, timeoutMs: 10_000 });

async function lock(path: string, onCompromised: (error: unknown) => void): Promise<() => Promise<void>> {
  const hold = await locks.acquire(path);
  hold.signal.addEventListener("abort", () => onCompromised(hold.signal.reason));
  return () => hold.release();
}

async function check(path: string): Promise<boolean> {
  return (await locks.list({ under: path })).length > 0;
}

const counter = `${folder}/counter.txt`;
await writeFile(counter, "0\n", { flag: "wx" }).catch(() => undefined);
async function count(): Promise<void> {
  const release = await lock("counter.txt", (error) => console.error("lost the lock:", error));
  try {
    await writeFile(counter, `${Number(await readFile(counter, "utf8")) + 1}\n`);
  } finally {
    await release();
  }
}
await Promise.all(Array.from({ length: 20 }, count));
console.log("counted to", (await readFile(counter, "utf8")).trim(), "and locked:", await check("counter.txt"));

const release = await lock("counter.txt", () => undefined);
await locks.acquire("counter.txt", { timeoutMs: 0 }).catch((error: unknown) => {
  if (!isHoldfastError(error, "LOCK_TIMEOUT")) throw error;
  console.log("ELOCKED is", error.code, "and names the process:", error.blockedBy[0]?.holder.pid === process.pid);
});
await release();
await locks.close();
