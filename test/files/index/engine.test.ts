// The index that is built in: what it finds, what it forgets, and that its bytes are all of it.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { matchExpression, termsOf } from "../../../src/files/engine/query.ts";
import { excerptOf } from "../../../src/files/engine/excerpt.ts";
import { BuiltInEngine } from "../../../src/files/search/engine.ts";
import type { Clock } from "../../../src/ports/clock.ts";
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
    expect(matchExpression(termsOf('a "b c" d a'), "all")).toBe('"a" AND "b c" AND "d"');
    expect(matchExpression(termsOf("… ! *"), "any")).toBeUndefined();
    expect(await pathsFor(index, "column:text")).toEqual(["b"]);
    expect(await pathsFor(index, "and")).toEqual(["a"]);
  });
});

describe("the language of a search", () => {
  it("counts every word of a query, and not only the first 64", async () => {
    const words = Array.from({ length: 70 }, (_, index) => `word${index}`);
    const index = await filled({ all: words.join(" "), lacking: words.slice(0, 64).join(" ") });
    expect(await pathsFor(index, words.join(" "))).toEqual(["all"]);
  });

  it("refuses a query of more words than it can count, and never ignores one", async () => {
    const index = await filled({ a: "wolf" });
    const query = (count: number): string => Array.from({ length: count }, (_, each) => `w${each}`).join(" ");
    expect(await pathsFor(index, `${query(4095)} wolf`)).toEqual(["a"]);
    await expect(index.search(query(4097))).rejects.toMatchObject({ code: "TOO_LARGE", limit: 4096, actual: 4097 });
    await expect(index.search("狼".repeat(5000))).rejects.toMatchObject({ code: "TOO_LARGE", actual: 5000 });
    await expect(index.search(query(257).replaceAll(/$| /g, "* "))).rejects.toMatchObject({ limit: 256 });
    // The same word twice is one.
    expect(await pathsFor(index, "wolf ".repeat(20_000))).toEqual(["a"]);
  });

  it.each([
    ["Chinese", "中文搜索测试", ["中文", "搜索", "测试", "中", "中文搜索测试"], ["文中", '"索测文"']],
    ["Japanese", "狼は北に住んでいる。ﾊﾝｸﾞﾙ", ["狼", "北に", "住んで", "ハングル", '"狼は北"'], ['"北狼"']],
    ["Korean", "늑대는 북쪽에 산다", ["늑대", "북쪽", "산다"], ['"대늑"']],
    ["Korean, decomposed", "늑대는".normalize("NFD"), ["늑대"], []],
    ["Thai", "หมาป่าอยู่ทางเหนือ", ["หมาป่า", "เหนือ", "หมาป่าอยู่"], ['"ป่าหมา"', "กา"]],
    ["Khmer", "ចចកនៅខាងជើង", ["ចចក", "ជើង"], []],
    ["Hindi", "भेड़िया उत्तर में", ["भेड़िया", "उत्तर"], ["उत"]],
    ["Arabic, with and without vowels", "الذِّئْبُ في الشَّمال", ["الذئب", "الشمال", "في"], ["شمال"]],
    ["Hebrew, with and without points", "זְאֵב בצפון", ["זאב", "בצפון"], []],
    ["full width and ligatures", "ＷＯＬＦ of ﬁre", ["wolf", "fire"], []],
    ["mixed scripts", "Wolfの巣 A中B", ["wolf", "巣", "wolfの", "中", "a中b"], ["olf"]],
    ["letters with signs", "Die Wölfe rôdent", ["wolfe", "WÖLFE", "rodent"], ["wölf"]],
    ["a soft hyphen", "Donau\u00addampfschiff", ["donaudampfschiff", "Donau*"], ["dampf"]],
  ])("finds words of %s", async (_, text, hits, misses) => {
    const index = await filled({ text, other: "nothing of that" });
    for (const query of hits) expect([query, await pathsFor(index, query)]).toEqual([query, ["text"]]);
    for (const query of misses) expect([query, await pathsFor(index, query)]).toEqual([query, []]);
  });

  it("takes a star behind a word for its beginning, also behind a phrase", async () => {
    const index = await filled({ a: "the work of wolves", b: "a world", c: "sword" });
    expect((await pathsFor(index, "wor*")).sort()).toEqual(["a", "b"]);
    expect(await pathsFor(index, "wor* wol*")).toEqual(["a"]);
    expect(await pathsFor(index, '"work of wol"*')).toEqual(["a"]);
    expect(await pathsFor(index, "“work of wolves”")).toEqual(["a"]);
    expect(await pathsFor(index, "wor")).toEqual([]);
    for (const nothing of ["*", "* *", '"*"', '""*']) expect(await pathsFor(index, nothing)).toEqual([]);
  });

  it("finds a sentence without spaces by its parts, where no file has all of it", async () => {
    const index = await filled({ wolf: "狼は北に住んでいる", bear: "熊は南に住んでいる", other: "別の話" });
    const found = await pathsFor(index, "狼は南に住んでいますか");
    expect(found.sort()).toEqual(["bear", "wolf"]);
  });

  it("shows the place of such words in the excerpt", () => {
    const filler = "lorem ipsum ".repeat(100);
    expect(excerptOf(`${filler}中文搜索测试 ${filler}`, termsOf("搜索"))).toContain("中文搜索测试");
    expect(excerptOf(`${filler}the wolfram ${filler}`, termsOf("wolf*"))).toContain("the wolfram");
    expect(excerptOf(`${filler}狼は北に ${filler}`, termsOf("狼は南に"))).toContain("狼は北に");
  });
});

describe("an excerpt", () => {
  it("shows the first place of a word, whatever its case and the signs on its letters", async () => {
    const filler = "lorem ipsum ".repeat(100);
    expect(excerptOf(`${filler}the Wolf sleeps. ${filler}`, termsOf("WOLF"))).toMatch(/^….* the Wolf sleeps\. .*…$/);
    expect(excerptOf(`${filler}le loup rôde ${filler}`, termsOf("rode"))).toContain("loup rôde");
    expect(excerptOf(`${filler}wolfram`, termsOf("wolf"))).toMatch(/^lorem .*…$/);
    expect(excerptOf("  short  ", termsOf("nothing"))).toBe("short");
    expect(excerptOf(`${"😀".repeat(300)} wolf`, termsOf("wolf"))).not.toMatch(/[\ud800-\udbff]$|^…?[\udc00-\udfff]/);
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

it("lets other work of the process go on while many files are dropped or put", async () => {
  let nowMs = 0;
  let pauses = 0;
  const clock = {
    monotonicMs: () => (nowMs += 30),
    sleep: async () => void pauses++,
  } as unknown as Clock;
  const engine = new BuiltInEngine(await TextIndex.open(), clock);
  const files = Array.from({ length: 1_000 }, (_, each) => ({
    path: `d/${each}.md`,
    text: `wolf ${each}`,
    stamp: `${each}`,
    change: 1 + (each % 2),
  }));
  await engine.put(files);
  expect(pauses).toBeGreaterThan(10);
  pauses = 0;
  await engine.drop("d", 2);
  expect(pauses).toBeGreaterThan(5);
  expect(engine.index.count).toBe(500);
  // A step that removes all that it may is not the last one, and one that removes nothing is.
  await engine.drop("d", 3);
  expect(engine.index.count).toBe(0);
  await engine.index.close();
});
