// A store with something of everything, to be backed up.
import { chmodSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { openStore, verifyStore, type Store } from "../../src/index.ts";
import { makeScratch } from "../sites/scratch.ts";

export interface Site {
  readonly store: Store;
  readonly live: string;
  readonly target: string;
  readonly copy: string;
}

export async function makeSite(): Promise<Site> {
  const scratch = makeScratch();
  const store = await openStore(join(scratch, "live"));
  onTestFinished(() => store.close());
  return { store, live: join(scratch, "live"), target: join(scratch, "target"), copy: join(scratch, "copy") };
}

export const body = (letter: string): Buffer => Buffer.alloc(300_000, letter);

/** Something in every part. */
export async function fill({ store, live }: Site): Promise<void> {
  const events = await store.events();
  await events.append([
    { type: "Sold", data: { sku: 1 } },
    { type: "Sold", data: { sku: 2 } },
  ]);
  const mails = events.consume("mails", "all", async () => undefined);
  await mails.waitUntilProcessed(2);
  await mails.stop();
  const box = await store.handoff("invoices");
  await box.publish({ "1.xml": "one" }, { key: "R-1" });
  await box.publish({ "2.bin": body("2") }, { key: "R-2" });
  await box.publish({ "3.xml": "three" }, { group: "till" });
  await box.publish({ "4.xml": "four" }, { delayMs: 10_000_000 });
  await (await box.take())?.ack({ booked: 1 });
  const bucket = await (await store.objects()).createBucket("photos", { versioning: "enabled" });
  await bucket.put("cats/tom", "meow");
  await bucket.put("cats/tom", "purr");
  await bucket.put("large", body("L"));
  const files = await store.files();
  await files.write("notes/plan.md", "buy paint");
  writeFileSync(join(live, "files/notes/run.sh"), "true\n");
  chmodSync(join(live, "files/notes/run.sh"), 0o750);
  symlinkSync("plan.md", join(live, "files/notes/link"));
  mkdirSync(join(live, "files/empty"));
}

export async function verifyAll(directory: string): Promise<void> {
  expect(await verifyStore(directory)).toMatchObject({ ok: true, problems: [] });
  await using store = await openStore(directory, { create: false });
  const [events, box, objects, files] = [
    await store.events(),
    await store.handoff("invoices"),
    await store.objects(),
    await store.files(),
  ];
  expect(await events.verify()).toMatchObject({ ok: true });
  expect(await box.verify()).toMatchObject({ ok: true });
  expect(await objects.verify()).toMatchObject({ ok: true });
  await files.settled();
  expect(await files.verify()).toMatchObject({ ok: true, problems: [] });
}

export function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
