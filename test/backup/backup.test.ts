// A backup of a live store, and the store that is restored from it.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { manifestKind } from "../../src/backup/manifest.ts";
import { encodeEntry, type Entry } from "../../src/backup/model.ts";
import { encodeRecord } from "../../src/format/record.ts";
import { backup, openStore, restore } from "../../src/index.ts";
import { fill, makeSite, verifyAll } from "./site.ts";

describe("a restored backup", () => {
  test("has all parts of the live store as they were, and the store continues from there", async () => {
    const site = await makeSite();
    await fill(site);
    const box = await site.store.handoff("invoices");
    const claimed = await box.take();
    const made = await backup(site.live, site.target);
    expect(made.problems).toEqual([]);
    await claimed?.ack();
    expect(await restore(site.target, site.copy)).toMatchObject({ id: made.id, files: made.files });
    await verifyAll(site.copy);

    await using store = await openStore(site.copy, { create: false, id: site.store.id });
    const events = await store.events();
    expect(await events.append({ type: "Sold", data: { sku: 3 } })).toMatchObject({ first: 3 });
    const seen: number[] = [];
    await using mails = events.consume("mails", "all", async (batch) => {
      seen.push(...batch.map(({ position }) => position));
    });
    await mails.waitUntilProcessed(3);
    expect(seen).toEqual([3]);
    const copy = await store.handoff("invoices");
    // The claimed one returned to the queue, and the acknowledged one did not.
    const keys: (string | undefined)[] = [];
    for (let taken = await copy.take(); taken !== undefined; taken = await copy.take()) {
      keys.push(taken.key);
      await taken.ack();
    }
    expect(keys).toHaveLength(2);
    expect(keys).toContain(claimed?.key);
    expect((await copy.stats()).archive).toBe(3);
    expect(await copy.publish({ "1.xml": "again" }, { key: "R-1" })).toMatchObject({ duplicate: true });
    expect(await copy.publish({ "1.xml": "again" }, { key: "R-2" })).toMatchObject({ duplicate: true });
    const bucket = await (await store.objects()).bucket("photos");
    expect((await bucket.get("cats/tom")).size).toBe(4);
    const versions: string[] = [];
    for await (const { key } of bucket.versions()) versions.push(key);
    expect(versions).toEqual(["cats/tom", "cats/tom", "large"]);
    expect(readFileSync(join(site.copy, "files/notes/plan.md"), "utf8")).toBe("buy paint");
    expect(readlinkSync(join(site.copy, "files/notes/link"))).toBe("plan.md");
    expect(statSync(join(site.copy, "files/notes/run.sh")).mode & 0o777).toBe(0o750);
    expect(readdirSync(join(site.copy, "files/empty"))).toEqual([]);
    expect(await (await store.files()).search("paint")).toMatchObject([{ path: "notes/plan.md" }]);
  });
});

describe("a damaged backup", () => {
  test.each<[string, readonly Entry[]]>([
    ["leads out of the store", [{ kind: "directory", path: "../evil" }]],
    ["takes the place of our note", [{ kind: "directory", path: "restoring.json" }]],
    ["has an absolute path", [{ kind: "directory", path: "/tmp/evil" }]],
    ["lies below a link", [{ kind: "link", path: "a", target: "/tmp" }, { kind: "directory", path: "a/evil" }]], // prettier-ignore
    [
      "is there twice",
      [
        { kind: "link", path: "a", target: "/tmp" },
        { kind: "directory", path: "a" },
      ],
    ],
    ["is another name of a link", [{ kind: "link", path: "a", target: "/etc/passwd" }, { kind: "same", path: "b", of: "a" }]], // prettier-ignore
  ])("with an entry that %s is refused", async (_, entries) => {
    const site = await makeSite();
    const { id } = await backup(site.live, site.target);
    const index = Buffer.from(entries.map((entry) => `${encodeEntry(entry)}\n`).join(""));
    const blob = createHash("sha256").update(index).digest("hex");
    mkdirSync(join(site.target, "blobs", blob.slice(0, 2)), { recursive: true });
    writeFileSync(join(site.target, "blobs", blob.slice(0, 2), blob), index);
    const manifest = {
      ...{ id, store: site.store.id, startedAtMs: 1, finishedAtMs: 1, files: 0, bytes: 0, added: 0 },
      ...{ index: [blob], isComplete: true, problems: [] },
    };
    writeFileSync(join(site.target, "backups", `${id}.json`), encodeRecord(manifestKind, manifest));
    await expect(restore(site.target, site.copy)).rejects.toMatchObject({ code: "CORRUPT" });
    expect(existsSync(site.copy)).toBe(false);
  });
});

describe("a folder of backups", () => {
  test("belongs to one store, is outside of it, and has nothing else in it", async () => {
    const [site, other] = [await makeSite(), await makeSite()];
    await backup(site.live, site.target);
    await expect(backup(other.live, site.target)).rejects.toMatchObject({ code: "WRONG_STORE" });
    await expect(backup(site.live, join(site.live, "backup"))).rejects.toMatchObject({ code: "INVALID_PATH" });
    await expect(backup(site.live, other.live)).rejects.toMatchObject({ code: "INVALID_PATH" });
    await expect(backup(site.target, other.target)).rejects.toMatchObject({ code: "NOT_A_STORE" });
  });
});
