// What every `open…` has in common: it refuses a place that is not there or not the one that is
// meant, and an option that it does not have.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openGround } from "../../src/durable/index.ts";
import { memoryEvents, openEvents } from "../../src/events/index.ts";
import { openHandoff } from "../../src/handoff/index.ts";
import { openStore, type OpenOptions } from "../../src/index.ts";
import { openPathLocks, openStoreLock, Semaphore } from "../../src/locks/index.ts";
import { makeScratch } from "../sites/scratch.ts";

type Opening = (directory: string, options?: OpenOptions) => Promise<{ close(): Promise<void> }>;

const openings: readonly (readonly [name: string, open: Opening, record: string])[] = [
  ["openEvents", openEvents, "log.json"],
  ["openHandoff", openHandoff, "box.json"],
  ["openPathLocks", openPathLocks, ".holdfast/ground.json"],
  ["openStoreLock", openStoreLock, "gate.json"],
  ["openGround", openGround, "ground.json"],
  ["openStore", openStore, "holdfast.json"],
];

describe.each(openings)("%s", (name, open, record) => {
  test("makes nothing where nothing is, with create: false or an id", async () => {
    const parent = makeScratch();
    const directory = join(parent, "not-mounted");
    for (const options of [{ create: false }, { id: "of-another" }, { create: true, id: "of-another" }])
      await expect(open(directory, options)).rejects.toMatchObject({ code: "NOT_A_STORE" });
    expect(existsSync(directory)).toBe(false);
    // The empty directory that a share is mounted on.
    await expect(open(parent, { create: false })).rejects.toMatchObject({ code: "NOT_A_STORE" });
    expect(readdirSync(parent)).toEqual([]);
  });

  test("opens what is there, and refuses one with another id", async () => {
    const directory = makeScratch();
    await (await open(directory)).close();
    const { body } = JSON.parse(readFileSync(join(directory, record), "utf8")) as { body: { id: string } };
    await (await open(directory, { create: false, id: body.id })).close();
    await expect(open(directory, { id: "of-another" })).rejects.toMatchObject({
      code: "WRONG_STORE",
      expected: "of-another",
      found: body.id,
    });
  });

  test("names an option that it does not have", async () => {
    const wrong = { creat: false } as OpenOptions;
    await expect(open(makeScratch(), wrong)).rejects.toThrow(
      new RegExp(`^${name}: there is no option "creat"; the options are .*create, id`),
    );
  });
});

describe("an option that a call does not have is named by", () => {
  const misspelt = { timeOutMs: 5 } as object;
  test("a semaphore", () => {
    expect(() => new Semaphore(join(makeScratch(), "a.lock"), misspelt)).toThrow(/new Semaphore: .*"timeOutMs"/);
  });

  test("path locks", async () => {
    await using locks = await openPathLocks(makeScratch());
    for (const call of ["acquire", "tryAcquire"] as const)
      await expect(locks[call]("a", misspelt)).rejects.toThrow(`${call}: there is no option "timeOutMs"`);
    await expect(locks.withLock("a", async () => 1, misspelt)).rejects.toThrow(/withLock: .*"timeOutMs"/);
  });

  test("an event store", async () => {
    await using store = memoryEvents();
    const event = { type: "Sold", data: 1 };
    await expect(store.append(event, misspelt)).rejects.toThrow(/append: .*"timeOutMs"/);
    await expect(store.append(event, { condition: { failIfEventMatches: "all" } as never })).rejects.toThrow(
      /append: condition: there is no option "failIfEventMatches"/,
    );
    expect(() => store.read("all", { from: 3 } as object)).toThrow(/read: .*"from"/);
    expect(() => store.subscribe("all", { from: 3 } as object)).toThrow(/subscribe: .*"from"/);
    expect(() => store.consume("c", "all", async () => undefined, { batchSize: 3 } as object)).toThrow(/"batchSize"/);
    expect(() => memoryEvents({ schema: {} } as object)).toThrow(/memoryEvents: .*"schema"/);
  });
});
