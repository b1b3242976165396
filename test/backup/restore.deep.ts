// Restores that meet each other, and the files that they make.
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from "node:fs"; // prettier-ignore
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { backup, restore } from "../../src/index.ts";
import { makeSite, type Site } from "./site.ts";

async function makeTree(): Promise<Site> {
  const site = await makeSite();
  await (await site.store.files()).write("plan.md", "buy paint");
  return site;
}

describe("a restore", () => {
  test("refuses to work beside another one into the same folder, which ends well", async () => {
    const site = await makeTree();
    await backup(site.live, site.target);
    let other: Promise<unknown> | undefined;
    const onProgress = (): void => {
      other ??= restore(site.target, site.copy).catch((error: unknown) => error);
    };
    await restore(site.target, site.copy, { onProgress });
    // It came while the first one worked, or after it.
    expect(["RESOURCE_BUSY", "INVALID_PATH"]).toContain(((await other) as { code?: string }).code);
    expect(readFileSync(join(site.copy, "files/plan.md"), "utf8")).toBe("buy paint");
    expect(readdirSync(dirname(site.copy)).filter((name) => name.includes("restoring"))).toEqual([]);
  });

  test("of several at once, exactly one restores the store", async () => {
    const site = await makeTree();
    await backup(site.live, site.target);
    const all = await Promise.allSettled(Array.from({ length: 4 }, () => restore(site.target, site.copy)));
    const errors = all.flatMap((each) => (each.status === "rejected" ? [(each.reason as { code?: string }).code] : []));
    expect(errors).toHaveLength(3);
    for (const code of errors) expect(["RESOURCE_BUSY", "INVALID_PATH"]).toContain(code);
    expect(readFileSync(join(site.copy, "files/plan.md"), "utf8")).toBe("buy paint");
  });

  test.skipIf(process.platform === "win32")("gives a large file that nobody may write its permissions", async () => {
    const site = await makeTree();
    const path = join(site.live, "files/large");
    writeFileSync(path, "");
    truncateSync(path, 17 * 1024 * 1024);
    chmodSync(path, 0o440);
    await backup(site.live, site.target);
    await restore(site.target, site.copy);
    expect(statSync(join(site.copy, "files/large")).mode & 0o777).toBe(0o440);
  });

  test("writes nothing through a link in what an interrupted one has left", async () => {
    const site = await makeTree();
    await backup(site.live, site.target);
    const over = new AbortController();
    const onProgress = (): void => over.abort(new Error("enough"));
    await expect(restore(site.target, site.copy, { signal: over.signal, onProgress })).rejects.toThrow("enough");
    const outside = join(dirname(site.copy), "outside");
    mkdirSync(outside);
    const files = `${site.copy}.restoring/files`;
    // What the first one has made of it, if anything, is of no interest.
    rmSync(files, { recursive: true, force: true });
    symlinkSync(outside, files);
    await restore(site.target, site.copy);
    expect(readdirSync(outside)).toEqual([]);
    expect(readFileSync(join(site.copy, "files/plan.md"), "utf8")).toBe("buy paint");
  });
});
