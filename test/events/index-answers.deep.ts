// An index file never changes an answer, whatever happens to it, before a log is opened and while
// it is in use.
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { NewEvent } from "../../src/common.ts";
import type { EventStore } from "../../src/events/model/event-store.ts";
import type { Query } from "../../src/events/model/query.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { Chance } from "../../harness/processes/chance.ts";
import { makeScratch } from "../sites/scratch.ts";
import { failureOf, listOf, numbers, openOn, positionsOf } from "../sites/event-logs.ts";

const count = 150;
const segmentBytesMax = 900;
const queries: readonly Query[] = [
  "all",
  { types: ["Even"] },
  { tags: ["third:0"] },
  { types: ["Odd"], tags: ["third:1", "fifth:2"] },
  [{ tags: ["each:7"] }, { tags: ["each:140"] }, { tags: ["late"] }],
  { tags: ["never"] },
];

function event(each: number): NewEvent {
  const tags = [`each:${each}`, `third:${each % 3}`, `fifth:${each % 5}`];
  return { type: each % 2 === 0 ? "Even" : "Odd", data: { each }, tags, id: `id-${each}` };
}

async function open(directory: string): Promise<EventStore> {
  return await openOn(await openNodePorts(directory), directory, { segmentBytesMax });
}

/** A closed log with many segments and an index of each. */
async function makeLog(): Promise<string> {
  const directory = `${makeScratch()}/log`;
  const store = await open(directory);
  for (let each = 1; each <= count; each += 3) await store.append([event(each), event(each + 1), event(each + 2)]);
  await store.addTags([30, 90], ["late"]);
  await answersOf(store);
  await store.close();
  return directory;
}

/** Everything that an index is asked for. */
async function answersOf(store: EventStore): Promise<unknown[]> {
  const answers: unknown[] = [];
  for (const query of queries)
    for (const options of [
      {},
      { backwards: true },
      { after: 40, upTo: 100, limit: 10 },
      { after: 100, backwards: true },
    ])
      answers.push(positionsOf(await listOf(store.read(query, options))));
  for (const query of queries) answers.push((await store.last(query))?.id);
  for (const each of [1, 74, count]) {
    // With the two that it was appended with.
    const first = each - ((each - 1) % 3);
    answers.push(await store.append(numbers(first, first + 2).map(event)));
    answers.push(await store.append(event(each)));
    const condition = { failIfEventsMatch: { tags: [`each:${each}`] } };
    const error = await failureOf(store.append({ type: "Never", data: 1 }, { condition }));
    answers.push(positionsOf((error as { conflicts: { position: number }[] }).conflicts));
  }
  return answers;
}

function indexFiles(directory: string): string[] {
  return readdirSync(join(directory, "index"))
    .filter((name) => name.endsWith(".idx"))
    .sort()
    .map((name) => join(directory, "index", name));
}

const chance = new Chance(5);

/** What can happen to one index file, or to all of them. */
const damages: readonly [what: string, act: (path: string, others: readonly string[]) => void][] = [
  ["missing", (path) => rmSync(path)],
  ["empty", (path) => truncateSync(path, 0)],
  ["cut in the middle", (path) => truncateSync(path, Math.floor(statSync(path).size / 2))],
  ["short of a byte", (path) => truncateSync(path, statSync(path).size - 1)],
  ["longer than it was", (path) => writeFileSync(path, Buffer.alloc(100), { flag: "a" })],
  [
    "garbage",
    (path) => writeFileSync(path, Buffer.from(numbers(1, 5000).map(() => Math.floor(chance.fraction() * 256)))),
  ],
  ["zeros", (path) => writeFileSync(path, Buffer.alloc(statSync(path).size))],
  ["the index of another segment", (path, others) => cpSync(others.find((other) => other !== path) ?? path, path)],
  [
    "a directory",
    (path) => {
      rmSync(path);
      mkdirSync(path);
    },
  ],
  ["changed in one bit", (path) => flip(path)],
];

function flip(path: string): void {
  const bytes = readFileSync(path);
  const at = Math.floor(chance.fraction() * bytes.length);
  bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(chance.fraction() * 8));
  writeFileSync(path, bytes);
}

describe("an index file that is", () => {
  it.each(damages)("%s changes no answer, neither of an open log nor of one that is opened later", async (_, act) => {
    const directory = await makeLog();
    expect(indexFiles(directory).length).toBeGreaterThan(3);
    const used = await open(directory);
    const expected = await answersOf(used);
    const cold = await open(directory);
    const fresh = await open(directory);
    const before = indexFiles(directory);
    for (const path of before) act(path, before);
    // A store that has read them, one that has not, and one that is opened later.
    for (const store of [used, cold, await open(directory)]) expect(await answersOf(store)).toEqual(expected);
    // Every second one, in the middle of a read.
    const seen: number[] = [];
    for await (const { position } of fresh.read({ types: ["Odd"] })) {
      seen.push(position);
      if (seen.length % 20 === 0)
        for (const [index, path] of indexFiles(directory).entries())
          if (index % 2 === 0 && statSync(path).isFile()) act(path, before);
    }
    expect(seen).toEqual(numbers(1, count).filter((each) => each % 2 === 1));
    expect(await answersOf(fresh)).toEqual(expected);
  });

  it("of another log is not used", async () => {
    const [directory, other] = [await makeLog(), `${makeScratch()}/log`];
    const expected = await answersOf(await open(directory));
    // The same shape, other content: every tag at another position.
    const store = await open(other);
    for (let each = count; each >= 1; each -= 3) await store.append([event(each), event(each - 1), event(each - 2)]);
    for (const query of queries) await listOf(store.read(query));
    await store.close();
    rmSync(join(directory, "index"), { recursive: true });
    cpSync(join(other, "index"), join(directory, "index"), { recursive: true });
    expect(await answersOf(await open(directory))).toEqual(expected);
  });

  it("changed at any byte gives the same answers", async () => {
    const directory = await makeLog();
    const store = await open(directory);
    const expected = await answersOf(store);
    for (let round = 0; round < 10; round++) {
      for (const path of indexFiles(directory)) if (chance.happens(0.5)) flip(path);
      expect(await answersOf(round % 5 === 0 ? await open(directory) : store)).toEqual(expected);
    }
  });
});

it("an index directory that is gone, or cannot be made, changes no answer, and appends go on", async () => {
  const directory = await makeLog();
  const store = await open(directory);
  const expected = await answersOf(store);
  rmSync(join(directory, "index"), { recursive: true });
  expect(await answersOf(store)).toEqual(expected);
  rmSync(join(directory, "index"), { recursive: true, force: true });
  writeFileSync(join(directory, "index"), "a file in its place");
  for (const each of [store, await open(directory)]) expect(await answersOf(each)).toEqual(expected);
  for (let each = 0; each < 20; each++) await store.append({ type: "After", data: "x".repeat(200), tags: ["after"] });
  expect(positionsOf(await listOf(store.read({ tags: ["after"] })))).toEqual(numbers(count + 1, count + 20));
  renameSync(join(directory, "index"), join(directory, "notes.txt"));
  const again = await open(directory);
  expect(positionsOf(await listOf(again.read({ tags: ["after"] })))).toEqual(numbers(count + 1, count + 20));
});
