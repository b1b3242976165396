// An older copy of a tree under a process that has it open: the process notices, and leaves no gap in the change log.
import { cpSync, existsSync, readdirSync, rmSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { makeRealSite } from "../sites/sites.ts";
import { codeOf } from "./file-sites.ts";
import { found, indexedOn, type IndexedSite } from "./index/indexed-sites.ts";

describe("an older copy of a tree in the place of an open one", () => {
  // A copy that was made under the open process has its holder in it: that process notices by nothing else.
  it.each(["closed", "open"])("is noticed by a process that had it open; the copy is of an %s tree", async (when) => {
    const site = await indexedOn(makeRealSite);
    const copy = `${site.directory}/copy`;
    const first = await site.open();
    for (const each of [1, 2, 3]) await first.write(`${each}.md`, `old wolf uniq${each}`);
    await first.settled();
    if (when === "closed") await first.close();
    cpSync(site.root, copy, { recursive: true });
    const ada = when === "closed" ? await site.open() : first;
    for (const each of [4, 5]) await ada.write(`${each}.md`, `new wolf uniq${each}`);
    await ada.write("1.md", "changed");
    await ada.settled();
    expect(await found(ada, "wolf")).toEqual(["2.md", "3.md", "4.md", "5.md"]);
    const changes = ada.changes();
    rmSync(site.root, { recursive: true });
    cpSync(copy, site.root, { recursive: true });

    // What it had staged may be gone with the folder, too.
    expect(["LOCK_LOST", "CLOSED"]).toContain(await codeOf(ada.write("x.md", "x")));
    expect(await codeOf(ada.write("x.md", "x"))).toBe("CLOSED");
    expect(await codeOf(ada.search("wolf"))).toBe("CLOSED");
    expect(await codeOf(ada.settled())).toBe("CLOSED");
    expect(await codeOf(changes.next())).toBe("CLOSED");
    await ada.close().catch(() => undefined);

    const bob = await site.open();
    await bob.settled();
    expect(await bob.readText("1.md")).toBe("old wolf uniq1");
    expect(await found(bob, "wolf")).toEqual(["1.md", "2.md", "3.md"]);
    await bob.write("6.md", "the next wolf");
    await bob.settled();
    expect(await found(bob, "wolf")).toEqual(["1.md", "2.md", "3.md", "6.md"]);
    expect(await bob.verify()).toMatchObject({ ok: true, problems: [] });
    expect(readdirSync(`${site.state}/changes/0000000000`).sort()).toEqual(
      [1, 2, 3, 4].map((number) => String(number).padStart(10, "0")),
    );
  });
});

/** A tree with 3 files, or with 8 of which the first was changed; these parts of what is derived are of the other time. */
async function ofTwoTimes(log: "older" | "newer", parts: readonly string[]): Promise<IndexedSite> {
  const site = await indexedOn(makeRealSite);
  const times = { older: `${site.directory}/older`, newer: `${site.directory}/newer` };
  const first = await site.open();
  for (const each of [1, 2, 3]) await first.write(`${each}.md`, `wolf uniq${each}`);
  await first.settled();
  await first.close();
  cpSync(site.root, times.older, { recursive: true });
  const second = await site.open();
  for (const each of [4, 5, 6, 7, 8]) await second.write(`${each}.md`, `wolf uniq${each}`);
  await second.write("1.md", "bear");
  await second.settled();
  // Publishes a snapshot.
  await second.rebuildIndex();
  await second.close();
  cpSync(site.root, times.newer, { recursive: true });
  rmSync(site.root, { recursive: true });
  cpSync(times[log], site.root, { recursive: true });
  for (const part of parts) {
    const other = `${times[log === "older" ? "newer" : "older"]}/.holdfast/files/${part}`;
    rmSync(`${site.state}/${part}`, { recursive: true, force: true });
    if (existsSync(other)) cpSync(other, `${site.state}/${part}`, { recursive: true });
  }
  return site;
}

/** As copies are that were made file by file during changes. */
describe("what is derived from a tree, of another time than the change log", () => {
  it.each([
    ["older", ["indexed"]],
    ["older", ["queue", "indexed"]],
    ["older", ["documents"]],
    ["older", ["index"]],
    ["newer", ["queue", "documents", "index"]],
  ] as const)("never keeps a file from being found: the log is %s, with %j of the other time", async (log, parts) => {
    const site = await ofTwoTimes(log, parts);
    const files = await site.open();
    const added = [4, 5, 6, 7, 8, 9].map((each) => `new${each}.md`);
    for (const path of added) await files.write(path, "wolf again");
    await files.settled();
    const before = log === "older" ? ["1.md", "2.md", "3.md"] : [2, 3, 4, 5, 6, 7, 8].map((each) => `${each}.md`);
    expect(await found(files, "wolf")).toEqual([...before, ...added]);
    expect(await found(files, "bear")).toEqual(log === "older" ? [] : ["1.md"]);
    expect(await files.verify()).toMatchObject({ ok: true, problems: [] });
    await files.close();
    const next = await site.open();
    expect(await found(next, "wolf")).toEqual([...before, ...added]);
    expect((await next.stats()).backlog).toBe(0);
  });
});
