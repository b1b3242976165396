// What must hold when many processes put to one key: the same checks for a few of them and for many.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { openObjects } from "../../src/objects/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { archiveAll, countWinners, putAll, readAll, type Crowd, type Rivalry } from "./hot-key.ts";

/** Every version that was acknowledged is there, whole, under its id, and none besides. */
export async function checkCrowd(size: Crowd): Promise<void> {
  const directory = makeScratch();
  {
    await using store = await openObjects(directory);
    await store.createBucket("photos", { versioning: "enabled" });
  }
  const acknowledged = await putAll(directory, size);
  expect(acknowledged).toHaveLength(size.processes * size.putsEach);
  const found = await readAll(directory);
  expect(found.size).toBe(acknowledged.length);
  for (const { versionId, text } of acknowledged) expect(found.get(versionId)).toBe(text);
  // Ids are in the order of the commits, so those of one process are in the order of its puts.
  const sorted = [...found.keys()].sort().reverse();
  expect([...found.keys()]).toEqual(sorted);
}

/** Of all conditional writers of a round exactly one wins. */
export async function checkRivals(size: Rivalry): Promise<void> {
  const directory = makeScratch();
  {
    await using store = await openObjects(directory);
    await store.createBucket("photos");
  }
  const { first, replaced } = await countWinners(directory, size);
  expect(first).toEqual(Array.from({ length: size.rounds }, () => 1));
  expect(replaced).toEqual(Array.from({ length: size.rounds }, () => 1));
}

/** How many acknowledged versions the way of the known gateways loses. */
export async function countLostByArchiving(size: Crowd): Promise<number> {
  const directory = makeScratch();
  mkdirSync(join(directory, "versions"));
  writeFileSync(join(directory, "current"), "first");
  const acknowledged = await archiveAll(directory, size);
  const kept = new Set([...readdirSync(join(directory, "versions")), readFileSync(join(directory, "current"), "utf8")]);
  return acknowledged.filter((id) => !kept.has(id)).length;
}
