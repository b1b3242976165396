// The index that is built in: what it finds, what it forgets, and that its bytes are all of it.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { matchExpression } from "../../../src/files/engine/query.ts";
import { excerptOf } from "../../../src/files/engine/excerpt.ts";
import { TextIndex } from "../../../src/files/engine/text-index.ts";

async function filled(texts: Readonly<Record<string, string>>): Promise<TextIndex> {
  const index = await TextIndex.open();
  for (const [path, text] of Object.entries(texts)) await index.upsert(path, text, { stamp: `stamp of ${path}` });
  return index;
}

async function pathsFor(index: TextIndex, text: string, under?: string): Promise<string[]> {
  return (await index.search(text, { under })).map(({ path }) => path);
}

describe("the built-in index", () => {
  it("finds files by all words first, and gives stamp, score and the place where they are", async () => {
    const index = await filled({
      "a.md": `${"filler ".repeat(300)} the quick brown fox jumps`,
      "b.md": "a brown bear",
      "c.md": "nothing of that kind",
    });
    const [best, ...others] = await index.search("Brown FOX");
    expect(best).toMatchObject({ path: "a.md", stamp: "stamp of a.md" });
    expect(best?.excerpt).toContain("quick brown fox");
    expect(best?.excerpt?.length).toBeLessThan(400);
    expect(best?.score).toBeGreaterThan(0);
    expect(others).toEqual([]);
    // No file has both words: then those with one of them.
    expect(await pathsFor(index, "bear kind")).toEqual(expect.arrayContaining(["b.md", "c.md"]));
    expect(await pathsFor(index, '"brown bear"')).toEqual(["b.md"]);
    expect(await pathsFor(index, '"bear brown"')).toEqual([]);
  });

  it("replaces, removes with all below, and renames with all below", async () => {
    const index = await filled({ "docs/a": "wolf", "docs/sub/b": "wolf", docs2: "wolf", "docs.md": "wolf" });
    expect(await pathsFor(index, "wolf", "docs")).toHaveLength(2);
    await index.rename("docs", "old");
    expect((await pathsFor(index, "wolf")).sort()).toEqual(["docs.md", "docs2", "old/a", "old/sub/b"]);
    await index.upsert("old/a", "lynx");
    expect(await pathsFor(index, "wolf", "old")).toEqual(["old/sub/b"]);
    await index.remove("old");
    expect((await pathsFor(index, "wolf lynx")).sort()).toEqual(["docs.md", "docs2"]);
    await index.clear();
    expect(await pathsFor(index, "wolf")).toEqual([]);
    expect(index.count).toBe(0);
  });

  it("keeps the text of the highest change, in whichever order they come", async () => {
    const index = await TextIndex.open();
    const file = (change: number, text: string) => ({ path: "a", stamp: `${change}`, change, text });
    index.put([file(7, "newest")]);
    index.put([file(5, "older")]);
    expect(await index.search("older")).toEqual([]);
    expect(index.find("a")).toEqual({ path: "a", stamp: "7", change: 7 });
    index.drop("a", { before: 7 });
    expect(index.find("a")).toBeDefined();
    index.drop("", { before: 8 });
    expect(index.find("a")).toBeUndefined();
  });

  it("orders by meaning and by words when it is given a vector", async () => {
    const index = await TextIndex.open();
    await index.upsert("near", "unrelated words", { vector: [1, 0.1] });
    await index.upsert("far", "wolf", { vector: [0, 1] });
    await index.upsert("both", "wolf", { vector: [1, 0] });
    await index.upsert("other model", "wolf", { vector: [1, 0, 0] });
    const hits = await index.search("wolf", { vector: [1, 0], limit: 3 });
    expect(hits[0]?.path).toBe("both");
    expect(hits.map(({ path }) => path)).toContain("near");
    expect((await index.search("", { vector: [1, 0], limit: 1 }))[0]).toMatchObject({ path: "both", excerpt: "wolf" });
    expect(await index.search("wolf", { vector: [1, 0], under: "far" })).toHaveLength(1);
  });

  it("gives the same answers when it is loaded from its bytes, and can be changed then", async () => {
    const index = await filled({ a: "wolf in the north", b: "bear" });
    await index.upsert("v", "lynx", { vector: [0.5, 0.25], stamp: "s" });
    const loaded = await TextIndex.open(index.toBytes());
    for (const query of ["wolf", "bear north", "lynx"])
      expect(await loaded.search(query, { vector: [1, 1] })).toEqual(await index.search(query, { vector: [1, 1] }));
    await loaded.upsert("c", "a wolf again");
    expect(await pathsFor(loaded, "wolf")).toHaveLength(2);
    await loaded.remove("a");
    expect(await pathsFor(loaded, "wolf")).toEqual(["c"]);
    expect(await pathsFor(index, "wolf")).toEqual(["a"]);
  });

  it("refuses bytes that are no index", async () => {
    const bytes = (await filled({ a: "wolf" })).toBytes();
    await expect(TextIndex.open(bytes.map((byte, at) => (at > 100 ? 0xaa : byte)))).rejects.toThrow();
    await expect(TextIndex.open(Buffer.from("no database"))).rejects.toThrow();
  });

  it("takes whatever a user types as words, and never as a syntax error", async () => {
    const index = await filled({ a: "wolf AND bear", b: "NEAR the column: text*" });
    const nasty = ['"', "AND", "wolf AND", "NEAR(", "text:", "a*", "^a", "(", "-", "''", "\0", "wolf\0bear", "", " "];
    const query = fc.oneof(
      fc.string(),
      fc.string({ unit: "grapheme" }),
      fc.array(fc.constantFrom(...nasty)).map(String),
    );
    await fc.assert(
      fc.asyncProperty(query, async (text) => {
        expect(Array.isArray(await index.search(text))).toBe(true);
      }),
      { numRuns: 200, examples: [['"wolf'], [nasty.join(" ")], ["wolf ".repeat(5000)]] },
    );
    expect(matchExpression('a "b c" d', "all")).toBe('"a" AND "b c" AND "d"');
    expect(matchExpression("… !", "any")).toBeUndefined();
    expect(await pathsFor(index, "column:text")).toEqual(["b"]);
    expect(await pathsFor(index, "and")).toEqual(["a"]);
  });
});

describe("an excerpt", () => {
  it("shows the first place of a word, whatever its case and the signs on its letters", async () => {
    const filler = "lorem ipsum ".repeat(100);
    expect(excerptOf(`${filler}the Wolf sleeps. ${filler}`, "WOLF")).toMatch(/^….* the Wolf sleeps\. .*…$/);
    expect(excerptOf(`${filler}le loup rôde ${filler}`, "rode")).toContain("loup rôde");
    expect(excerptOf(`${filler}wolfram`, "wolf")).toMatch(/^lorem .*…$/);
    expect(excerptOf("  short  ", "nothing")).toBe("short");
    expect(excerptOf(`${"😀".repeat(300)} wolf`, "wolf")).not.toMatch(/[\ud800-\udbff]$|^…?[\udc00-\udfff]/);
  });

  it("of a text with a word a hundred thousand times takes no longer than the search", async () => {
    const index = await TextIndex.open();
    await index.upsert("log", "wolf ".repeat(100_000));
    const startMs = performance.now();
    expect((await index.search("wolf"))[0]?.excerpt?.length).toBeLessThanOrEqual(202);
    expect(performance.now() - startMs).toBeLessThan(2_000);
    await index.close();
  });
});
