// Backups in a bucket, through our own gateway.
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { backup, listBackups, openStore, pruneBackups, restore, verifyBackups, verifyStore } from "../../src/index.ts";
import { openObjects } from "../../src/objects/index.ts";
import { startS3Gateway } from "../../src/s3/index.ts";
import { makeScratch } from "../sites/scratch.ts";

test("a bucket holds backups as a folder does, under a prefix that needs encoding", async () => {
  const scratch = makeScratch();
  const objects = await openObjects("memory:");
  onTestFinished(() => objects.close());
  const bucket = await objects.createBucket("backups");
  const keys = { accessKeyId: "shop", secretAccessKey: "a secret of the shop" };
  const gateway = await startS3Gateway(objects, { port: 0, credentials: [keys] });
  onTestFinished(() => gateway.close());
  const s3 = { ...keys, endpoint: gateway.url };
  const target = "s3://backups/our shop/ä+b";

  await using store = await openStore(join(scratch, "live"));
  const events = await store.events();
  await events.append({ type: "Sold", data: 1 });
  await (await store.files()).write("plan.md", "paint");
  const photos = await (await store.objects()).createBucket("photos");
  await photos.put("large", Buffer.alloc(9_000_000, "L"));
  const first = await backup(join(scratch, "live"), target, { s3 });
  await events.append({ type: "Sold", data: 2 });
  const second = await backup(join(scratch, "live"), target, { s3 });
  expect(second.added).toBeLessThan(100_000);
  expect(await verifyBackups(target, { s3 })).toMatchObject({ ok: true });
  await pruneBackups(target, { s3, keep: 1 });
  expect(await listBackups(target, { s3 })).toMatchObject([{ id: second.id }]);
  await restore(target, join(scratch, "copy"), { s3 });
  expect(await verifyStore(join(scratch, "copy"))).toMatchObject({ ok: true });
  await using copy = await openStore(join(scratch, "copy"), { create: false });
  expect(await (await copy.events()).head()).toBe(2);
  expect(await (await copy.objects()).verify()).toMatchObject({ ok: true });

  expect((await bucket.list()).objects.every(({ key }) => key.startsWith("our shop/ä+b/"))).toBe(true);
  await expect(restore(target, join(scratch, "other"), { s3, backup: first.id })).rejects.toMatchObject({
    code: "NOT_A_STORE",
  });
  const wrong = { ...s3, secretAccessKey: "another secret" };
  await expect(backup(join(scratch, "live"), target, { s3: wrong })).rejects.toMatchObject({ code: "NO_PERMISSION" });
  await expect(backup(join(scratch, "live"), "s3://none", { s3 })).rejects.toMatchObject({ code: "NO_SUCH_BUCKET" });
});
