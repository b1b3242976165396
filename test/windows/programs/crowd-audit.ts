// Compares what a crowd left with what its members were told. Arguments: the file for the findings, and the one with the orders.
import { readFileSync, writeFileSync } from "node:fs";
import { openStore, type Store } from "../../../src/index.ts";
import { bucketName, linesFile, noteFiles, type AuditOrders, type CrowdEntry } from "./orders.ts";

const [, , findingsPath = "", ordersPath = ""] = process.argv;
// A file, because a crowd has more journals than fit into arguments of Windows.
const orders = JSON.parse(readFileSync(ordersPath, "utf8")) as AuditOrders;
type Done = Extract<CrowdEntry, { kind: "done" }>;

const wrong: string[] = [];
const done = orders.journals.flatMap(readJournal).filter((entry) => entry.kind === "done");
const idsOf = (part: Done["part"]): string[] => done.filter((entry) => entry.part === part).map(({ id }) => id);
const store = await openStore(orders.store, { create: false, lockTimeoutMs: 60_000 });
try {
  checkLocks();
  await checkEvents(store);
  await checkHandoff(store);
  await checkObjects(store);
  await checkFiles(store);
} finally {
  await store.close();
}
writeFileSync(findingsPath, JSON.stringify(wrong));
process.exit();

/** A member that was killed may have left half a line, which it was not told to be done. */
function readJournal(path: string): CrowdEntry[] {
  const lines = readFileSync(path, "utf8").split("\n");
  return lines.flatMap((line, index) =>
    line === "" || index === lines.length - 1 ? [] : [JSON.parse(line) as CrowdEntry],
  );
}

function compare(part: string, acknowledged: readonly string[], found: readonly string[]): void {
  const counts = new Map<string, number>();
  for (const id of found) counts.set(id, (counts.get(id) ?? 0) + 1);
  for (const id of acknowledged) if (!counts.has(id)) wrong.push(`${part}: ${id} was acknowledged and is lost`);
  for (const [id, count] of counts) if (count > 1) wrong.push(`${part}: ${id} is there ${count} times`);
}

/** The holder of a lock appends its line while it holds it: the order of the lines is the order of the holders. */
function checkLocks(): void {
  const lines = readFileSync(`${orders.shared}/${linesFile}`, "utf8").trim().split("\n");
  const holders = lines.map((line) => line.split(" "));
  compare(
    "locks",
    idsOf("locks"),
    holders.map(([id = ""]) => id),
  );
  let last = 0;
  for (const [id, fence] of holders) {
    if (Number(fence) <= last) wrong.push(`locks: ${id} has the fence ${fence} after ${last}`);
    last = Number(fence);
  }
}

async function checkEvents(from: Store): Promise<void> {
  const log = await from.events("log");
  const found: string[] = [];
  for await (const { data } of log.read()) found.push((data as { id: string }).id);
  compare("events", idsOf("events"), found);
}

/** What no member has done is still there, each ticket once. */
async function checkHandoff(from: Store): Promise<void> {
  const box = await from.handoff("box");
  const finished = idsOf("handoff");
  const left: string[] = [];
  for (let delivery = await box.take(); delivery !== undefined; delivery = await box.take()) {
    left.push(delivery.key);
    await delivery.ack();
  }
  const keys = new Set([...finished, ...left]);
  compare("handoff", [], [...finished, ...left]);
  for (const key of await doneWithoutWord(
    box,
    idsOf("publish").filter((key) => !keys.has(key)),
  ))
    wrong.push(`handoff: ${key} was published and is lost`);
}

/** A worker that was killed after its acknowledgement counted has not told of it: the box knows. */
async function doneWithoutWord(box: Awaited<ReturnType<Store["handoff"]>>, keys: readonly string[]): Promise<string[]> {
  const lost: string[] = [];
  for (const key of keys) if ((await box.findByKey(key))?.state !== "archive") lost.push(key);
  return lost;
}

async function checkObjects(from: Store): Promise<void> {
  const bucket = await (await from.objects()).bucket(bucketName);
  const numbers: string[] = [];
  for await (const { versionId } of bucket.versions({ key: "counter" })) {
    await using version = await bucket.get("counter", { versionId });
    numbers.push(await version.text());
  }
  const won = done.flatMap(({ part, number }) => (part === "objects" ? [String(number)] : []));
  if (new Set(won).size !== won.length) wrong.push("objects: two members were told the same number");
  compare("objects", won, numbers);
}

async function checkFiles(from: Store): Promise<void> {
  const files = await from.files();
  const texts = await Promise.all(noteFiles.map(async (path) => await files.readText(path).catch(() => "")));
  compare(
    "files",
    idsOf("files"),
    texts
      .join("")
      .split("\n")
      .filter((line) => line !== ""),
  );
}
