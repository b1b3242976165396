// The lock file of a log is deleted again and again while processes append: no acknowledged event
// is lost.
import { unlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { openEvents } from "../../src/events/index.ts";
import { startChild } from "../durable/child.ts";
import { nodeClock } from "../../src/ports/node/clock.ts";
import { makeScratch } from "../sites/scratch.ts";

const events = new URL("../../dist/events/index.js", import.meta.url).href;

/** Appends events one after the other, and prints the names of acknowledged ones. */
const append = `
  const { openEvents } = await import(args[0]);
  let log = await openEvents(args[1]);
  say("ready");
  await told.next();
  for (let count = 0; count < 40; count++) {
    const name = args[2] + ":" + count;
    try {
      await log.append([{ type: "Named", data: { name } }]);
      say("acknowledged " + name);
    } catch (error) {
      say("failed " + name + " " + ("code" in error ? error.code : String(error)));
      if (error.code === "CLOSED") log = await openEvents(args[1]);
    }
  }
  say("done");
  await log.close();
  process.exit(0);`;

it("an acknowledged event is there once, though the lock file was deleted at any moment", async () => {
  const directory = join(makeScratch(), "log");
  await (await openEvents(directory)).close();
  const children = ["ada", "bob", "cleo"].map((name) => startChild(append, events, directory, name));
  for (const child of children) expect(await child.hear()).toBe("ready");
  let isOver = false;
  const deletions = vi.fn(() => unlinkSync(join(directory, ".store.lock")));
  const deleting = (async () => {
    while (!isOver) {
      try {
        deletions();
      } catch {
        // The next writer has not made it yet.
      }
      // Time passes: the deletions come again and again, at any moment of the writers.
      await nodeClock.sleep(3);
    }
  })();
  const acknowledged: string[] = [];
  const failed: { name: string; code: string }[] = [];
  await Promise.all(
    children.map(async (child) => {
      child.tell("go");
      for (let line = await child.hear(); line !== "done"; line = await child.hear()) {
        const [outcome, name, code] = /^(\w+) (\S+) ?(.*)$/.exec(line)!.slice(1);
        if (outcome === "acknowledged") acknowledged.push(name!);
        else failed.push({ name: name!, code: code! });
      }
    }),
  );
  isOver = true;
  await deleting;
  expect(deletions.mock.results.filter(({ type }) => type === "return").length).toBeGreaterThan(5);
  // Two writers were inside, and one noticed too late to know the outcome; or it wrote an older
  // head over that of the other one, which has to open the log again. A slow machine may lose each
  // turn that it gets, and gives up in the end.
  const honest = ["OUTCOME_UNKNOWN", "CLOSED", "LOCK_LOST"];
  expect(failed.filter(({ code }) => !honest.includes(code))).toEqual([]);
  await using log = await openEvents(directory);
  const found: unknown[] = [];
  for await (const { data } of log.read()) found.push((data as { name: string }).name);
  expect(new Set(found).size).toBe(found.length);
  expect(acknowledged.filter((name) => !found.includes(name))).toEqual([]);
});
