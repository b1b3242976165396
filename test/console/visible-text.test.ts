// What the page shows of texts that others wrote, and how often the sampler loads what is dear.
import { describe, expect, test } from "vitest";
import { piecesOf, plainOf } from "../../src/console/page/visible-text.ts";
import { Paced } from "../../src/console/watch/paced.ts";

describe("a foreign text", () => {
  test.each([
    ["report\u202Efdp.exe", "report⟨U+202E⟩fdp.exe"],
    ["bell\u0007", "bell⟨U+0007⟩"],
    ["a\u200Bb\uFEFF", "a⟨U+200B⟩b⟨U+FEFF⟩"],
    ["no\u00A0break\nline\ttab", "no⟨U+00A0⟩break⟨U+000A⟩line⟨U+0009⟩tab"],
    ["half \uD800 pair", "half ⟨U+D800⟩ pair"],
    ["\u{E0041}", "⟨U+E0041⟩"],
  ])("shows every invisible character of %j as its code", (text, shown) => expect(plainOf(text)).toBe(shown));

  test("that is only unusual is shown as it is, in one piece", () => {
    for (const text of ["تقرير المخزون", "<b>bold</b>", "日本語 Größe 😀", "a b"])
      expect(piecesOf(text)).toEqual([{ text, isCode: false }]);
    expect(piecesOf("")).toEqual([]);
  });
});

describe("a paced value", () => {
  test("is loaded once for all callers, and again only when it is stale or expired", async () => {
    let loads = 0;
    const paced = new Paced(async () => ++loads, { everyMs: 60_000, factor: 1 });
    expect(await Promise.all([paced.get(), paced.get()])).toEqual([1, 1]);
    expect(await paced.get()).toBe(1);
    paced.expire();
    expect(await paced.get()).toBe(2);
  });

  test("that could not be loaded is loaded again by the next caller", async () => {
    let loads = 0;
    const paced = new Paced(async () => {
      if (++loads === 1) throw new Error("the share is gone");
      return loads;
    });
    await expect(paced.get()).rejects.toThrow("the share is gone");
    expect(await paced.get()).toBe(2);
  });

  test("that costs much processor time stays for many times as long", async () => {
    const paced = new Paced(
      async () => {
        for (const endMs = performance.now() + 30; performance.now() < endMs;) continue;
        return {};
      },
      { everyMs: 0, factor: 1_000_000 },
    );
    // The first load opens what it loads, so it is not charged.
    const first = await paced.get();
    const second = await paced.get();
    expect(second).not.toBe(first);
    expect(await paced.get()).toBe(second);
  });
});
