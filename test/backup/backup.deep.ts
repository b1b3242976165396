// Backups that follow each other, are interrupted, damaged or removed.
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, unlinkSync, writeFileSync } from "node:fs"; // prettier-ignore
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { backup, listBackups, openStore, pruneBackups, restore, verifyBackups, verifyStore } from "../../src/index.ts";
import { body, fill, filesIn, makeSite, verifyAll } from "./site.ts";

describe("a restored backup", () => {
  test("gives out fences above those that the living store gave out after the backup", async () => {
    const site = await makeSite();
    const locks = await site.store.locks();
    await (await locks.acquire("door")).release();
    await backup(site.live, site.target);
    const hold = await locks.acquire("door");
    const { fencesAbove } = await restore(site.target, site.copy);
    await using copy = await openStore(site.copy, { create: false });
    const restored = await (await copy.locks()).acquire("door");
    expect(fencesAbove).toBeGreaterThan(hold.fence);
    expect(restored.fence).toBeGreaterThan(fencesAbove);
  });

  test("keeps names that are hostile to other programs", async () => {
    const site = await makeSite();
    await site.store.files();
    const names = ["-rf", "a\nb", "..c", "d\\e", " f ", "ü\u0301", 'g"h', "con"];
    for (const name of names) writeFileSync(join(site.live, "files", name), name);
    await backup(site.live, site.target);
    await restore(site.target, site.copy);
    expect(readdirSync(join(site.copy, "files")).sort()).toEqual(names.sort());
  });
});

describe("the next backup", () => {
  test("adds only what is new, and every backup can still be restored", async () => {
    const site = await makeSite();
    await fill(site);
    const first = await backup(site.live, site.target);
    await (await site.store.events()).append({ type: "Sold", data: {} });
    const second = await backup(site.live, site.target);
    expect(first.added).toBeGreaterThan(600_000);
    expect(second.added).toBeLessThan(100_000);
    await restore(site.target, site.copy, { backup: first.id });
    await using copy = await openStore(site.copy, { create: false });
    expect(await (await copy.events()).head()).toBe(2);
    expect(await listBackups(site.target)).toMatchObject([{ id: first.id }, { id: second.id }]);
  });

  test("has a file that was changed within one step of its time stamp", async () => {
    const site = await makeSite();
    await site.store.files();
    const path = join(site.live, "files/counter");
    for (let count = 0; count < 3; count++) {
      writeFileSync(path, `count ${count}`);
      await backup(site.live, site.target);
      await restore(site.target, join(site.copy, String(count)));
      expect(readFileSync(join(site.copy, String(count), "files/counter"), "utf8")).toBe(`count ${count}`);
    }
  });

  test("continues one that was interrupted, which is never restored", async () => {
    const site = await makeSite();
    await fill(site);
    const parts: string[] = [];
    const over = new AbortController();
    const onProgress = ({ part }: { part: string }): void => {
      parts.push(part);
      if (part === "files") over.abort(new Error("enough"));
    };
    await expect(backup(site.live, site.target, { signal: over.signal, onProgress })).rejects.toThrow("enough");
    expect(await listBackups(site.target)).toEqual([]);
    await expect(restore(site.target, site.copy)).rejects.toMatchObject({ code: "NOT_A_STORE" });
    expect(parts).toContain("objects");
    // Bodies are there already.
    expect((await backup(site.live, site.target)).added).toBeLessThan(100_000);
    await restore(site.target, site.copy);
    await verifyAll(site.copy);
  });

  test("may run beside another one into the same folder", async () => {
    const site = await makeSite();
    await fill(site);
    const made = await Promise.all([backup(site.live, site.target), backup(site.live, site.target)]);
    for (const { id } of made) {
      await restore(site.target, join(site.copy, id), { backup: id });
      await verifyAll(join(site.copy, id));
    }
  });
});

describe("a damaged backup", () => {
  test("is not restored, not even in part, is named by a verification, and does not spread to a full one", async () => {
    const site = await makeSite();
    await fill(site);
    await backup(site.live, site.target);
    const [largest = ""] = filesIn(join(site.target, "blobs")).sort((a, b) => statSync(b).size - statSync(a).size);
    const bytes = readFileSync(largest);
    bytes[1000] = (bytes[1000] ?? 0) ^ 1;
    writeFileSync(largest, bytes);
    await expect(restore(site.target, site.copy)).rejects.toMatchObject({ code: "CORRUPT", path: largest });
    expect(existsSync(site.copy)).toBe(false);
    expect(await verifyBackups(site.target)).toMatchObject({ ok: false, problems: [{ path: largest }] });
    await backup(site.live, site.target, { full: true });
    await pruneBackups(site.target, { keep: 1 });
    expect(await verifyBackups(site.target)).toMatchObject({ ok: true });
    await restore(site.target, site.copy);
    await verifyAll(site.copy);
  });

  test("whose blobs are missing or cut off is replaced by the next one", async () => {
    const site = await makeSite();
    await fill(site);
    await backup(site.live, site.target);
    const [one = "", ...others] = filesIn(join(site.target, "blobs"));
    writeFileSync(one, readFileSync(one).subarray(0, 100));
    for (const each of others) unlinkSync(each);
    const { id } = await backup(site.live, site.target);
    await restore(site.target, site.copy, { backup: id });
    await verifyAll(site.copy);
  });
});

describe("a restore", () => {
  test("that was interrupted leaves no store, and the next one continues it", async () => {
    const site = await makeSite();
    await fill(site);
    await backup(site.live, site.target);
    const over = new AbortController();
    const onProgress = ({ files }: { files: number }): void => {
      if (files > 10) over.abort(new Error("enough"));
    };
    await expect(restore(site.target, site.copy, { signal: over.signal, onProgress })).rejects.toThrow("enough");
    expect(existsSync(site.copy)).toBe(false);
    // Half of a file, and one that is not of the backup.
    const [whole = ""] = filesIn(`${site.copy}.restoring/objects`);
    appendFileSync(whole, "x");
    writeFileSync(`${site.copy}.restoring/objects/foreign`, "x");
    await restore(site.target, site.copy);
    expect(existsSync(join(site.copy, "objects/foreign"))).toBe(false);
    expect(existsSync(`${site.copy}.restoring`)).toBe(false);
    await verifyAll(site.copy);
  });

  test("refuses a folder with anything in it", async () => {
    const site = await makeSite();
    await backup(site.live, site.target);
    await expect(restore(site.target, site.live)).rejects.toMatchObject({ code: "INVALID_PATH" });
    mkdirSync(`${site.copy}.restoring`);
    writeFileSync(`${site.copy}.restoring/mine`, "");
    await expect(restore(site.target, site.copy)).rejects.toMatchObject({ code: "INVALID_PATH" });
    expect(existsSync(`${site.copy}.restoring/mine`)).toBe(true);
  });
});

describe("a folder of backups", () => {
  test("loses old backups and nothing that another one needs", async () => {
    const site = await makeSite();
    await fill(site);
    const first = await backup(site.live, site.target);
    await (await (await site.store.objects()).bucket("photos")).put("large", body("M"));
    const second = await backup(site.live, site.target);
    rmSync(join(site.live, "files/notes"), { recursive: true });
    const third = await backup(site.live, site.target);
    expect(await pruneBackups(site.target, { keep: 2 })).toMatchObject({ removed: [first.id], kept: [second.id, third.id] }); // prettier-ignore
    expect(await verifyBackups(site.target)).toMatchObject({ ok: true });
    await restore(site.target, site.copy);
    expect(await verifyStore(site.copy)).toMatchObject({ ok: true });
  });

  test("is not pruned while a backup is being made, and takes no backup while it is pruned", async () => {
    const site = await makeSite();
    await fill(site);
    await backup(site.live, site.target);
    let refused: unknown;
    const onProgress = ({ part }: { part: string }): void => {
      if (part === "objects") refused ??= pruneBackups(site.target, { keep: 1 }).catch((error: unknown) => error);
    };
    await backup(site.live, site.target, { full: true, onProgress });
    expect(await refused).toMatchObject({ code: "RESOURCE_BUSY" });
    mkdirSync(join(site.target, "pruning"), { recursive: true });
    writeFileSync(join(site.target, "pruning/other.json"), "{}");
    await expect(backup(site.live, site.target)).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
  });
});
