// Processes on one database: copies that are killed and repeated, and several gateways.
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import * as s3 from "@aws-sdk/client-s3";
import { expect, test } from "vitest";
import { openStore } from "../../src/index.ts";
import { holdfast, HoldfastProcess } from "../cli/holdfast-process.ts";
import { clientOf, GatewayProcess } from "../s3/gateway-process.ts";
import { makeScratch } from "../sites/scratch.ts";
import { serverUrl } from "./stores.ts";

function newLocation(): string {
  const url = new URL(serverUrl());
  url.password = "s3cret";
  url.searchParams.set("store", randomUUID());
  return url.href;
}

async function fill(folder: string): Promise<void> {
  await using store = await openStore(folder);
  const log = await store.events("main");
  const box = await store.handoff("orders");
  const bucket = await (await store.objects()).createBucket("photos", { versioning: "enabled" });
  const large = Buffer.alloc(200_000, "large ");
  await Promise.all(Array.from({ length: 300 }, (_, i) => log.append({ type: "A", data: i })));
  for (let i = 0; i < 120; i++) {
    const files = i % 10 ? { a: String(i) } : { big: large };
    await box.publish(files, { key: `k${i}`, ...(i % 3 ? { group: `g${i % 4}` } : {}) });
    if (i % 5 === 0) await (await box.take({ waitMs: 10_000 }))?.ack(i);
    await bucket.put(`o${i % 80}`, i % 10 ? String(i) : large);
  }
}

/** The location of the object store in a store. */
function objectsOf(store: string): string {
  return store.startsWith("postgres:") ? `${store}#objects` : join(store, "objects");
}

test("a copy that is killed again and again ends with all of it, to a database and back", async () => {
  const [folder, shop, back] = [join(makeScratch(), "shop"), newLocation(), join(makeScratch(), "back")];
  await fill(folder);
  await (await openStore(back)).close();
  for (const [from, to] of [
    [folder, shop],
    [shop, back],
  ] as const) {
    for (const [index, aliveMs] of [250, 400, 600, 800, 1_000, 1_300].entries()) {
      // Every other one copies the objects alone, so that kills meet them, too.
      const isWhole = index % 2 === 0;
      const args = isWhole ? [from, to] : [objectsOf(from), objectsOf(to)];
      const copy = new HoldfastProcess(["copy", ...args]);
      // Time passes: the kill meets the copy wherever it is by then.
      const timer = setTimeout(() => copy.kill("SIGKILL"), aliveMs);
      await copy.ended;
      clearTimeout(timer);
    }
    const whole = await holdfast(["copy", from, to, "--verify", "--json"]);
    expect(whole).toMatchObject({ exitCode: 0, stderr: "" });
    const parts = whole.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
    expect(parts).toMatchObject([
      { part: "log", total: 300, equal: true },
      { part: "box", total: 120, equal: true },
      { part: "objects", total: 80, equal: true },
    ]);
    expect(await holdfast(["verify", to])).toMatchObject({ exitCode: 0 });
  }
});

test("gateways on one database are one S3: one of many creators wins, and what a killed one acknowledged stays", async () => {
  const shop = newLocation();
  const start = async (): Promise<GatewayProcess> => await GatewayProcess.start([shop, "--bucket", "photos"]);
  const [one, other] = await Promise.all([start(), start()]);
  const clients = [clientOf(one.url), clientOf(other.url)] as const;
  const put = async (client: s3.S3Client, Key: string, Body: string, IfNoneMatch?: string): Promise<unknown> =>
    await client.send(new s3.PutObjectCommand({ Bucket: "photos", Key, Body, IfNoneMatch }));
  for (let round = 0; round < 10; round++) {
    const rivals = Array.from({ length: 8 }, (_, i) => put(clients[i % 2 ? 0 : 1], `once${round}`, String(i), "*"));
    const ends = await Promise.allSettled(rivals);
    expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  }
  const acknowledged: string[] = [];
  let isKilled = false;
  const writing = Array.from({ length: 4 }, async (_, i) => {
    for (let n = 0; !isKilled; n++)
      try {
        await put(clients[0], `w${i}/${n}`, `${i} ${n}`);
        acknowledged.push(`w${i}/${n}`);
        if (acknowledged.length === 40) one.kill("SIGKILL");
      } catch {
        isKilled = true;
      }
  });
  await Promise.all(writing);
  expect(await one.ended).toMatchObject({ signal: "SIGKILL" });
  for (const Key of acknowledged) {
    const { Body } = await clients[1].send(new s3.GetObjectCommand({ Bucket: "photos", Key }));
    expect(await Body?.transformToString()).toBe(Key.slice(1).replace("/", " "));
  }
  for (const client of clients) client.destroy();
  for (const { stdout, stderr } of [await one.ended, await other.stop()])
    expect(stdout + stderr).not.toContain("s3cret");
  expect(await holdfast(["verify", shop])).toMatchObject({ exitCode: 0 });
});
