// Real processes and one store: made by several at once, and opened as a whole or in part.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openStore } from "../../src/index.ts";
import { startChild, type Child } from "../durable/child.ts";
import { makeScratch } from "../sites/scratch.ts";

const main = new URL("../../dist/index.js", import.meta.url).href;
const events = new URL("../../dist/events/index.js", import.meta.url).href;

/**
 * A process that opens what `program` says, tells its first line, and closes it when it is told
 * anything.
 */
function start(program: string, directory: string): Child {
  return startChild(
    `
    const { openStore } = await import(args[0]);
    const { openEvents } = await import(args[1]);
    const directory = args[2];
    ${program}
    await told.next();
    await opened.close();
    process.exit(0);`,
    main,
    events,
    directory,
  );
}

test("processes that make a store at the same time make one", async () => {
  const directory = join(makeScratch(), "shop");
  const program = `
    const opened = await openStore(directory);
    await (await opened.events()).append({ type: "Opened", data: process.pid });
    say(opened.id);`;
  const makers = Array.from({ length: 4 }, () => start(program, directory));
  const ids = await Promise.all(makers.map((maker) => maker.hear()));
  expect(new Set(ids).size).toBe(1);
  await using store = await openStore(directory, { create: false, id: ids[0] });
  expect(await (await store.events()).head()).toBe(4);
  expect(await store.holders()).toHaveLength(5);
  await Promise.all(makers.map((maker) => maker.end()));
  expect(await store.holders()).toHaveLength(1);
});

test("a process that opened the store and one that opened the log alone have the same holders", async () => {
  const directory = makeScratch();
  await using store = await openStore(directory);
  await (await store.events()).append({ type: "Sold", data: 1 });
  const child = start(
    `
    const opened = await openEvents(directory + "/events/main");
    say(String(await opened.head()));`,
    directory,
  );
  expect(await child.hear()).toBe("1");
  const pids = (await store.holders()).map(({ pid }) => pid);
  expect(new Set(pids)).toEqual(new Set([process.pid, child.process.pid]));
  await child.end("SIGKILL");
  expect((await store.holders()).find(({ pid }) => pid === child.process.pid)).toMatchObject({ state: "dead" });
  // The next process that opens a part removes what the dead one has left.
  await (await store.locks()).close();
  expect(await store.holders()).toHaveLength(1);
  expect(readdirSync(join(directory, "ground", "temp"))).toHaveLength(1);
});
