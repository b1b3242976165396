// The audit of the price labels: it looks for every version that was acknowledged, byte for byte.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { priceLabels } from "../../src/cli/demo/stations/price-labels.ts";
import { openSharedFolder, type SharedFolder, type Receipt } from "../../src/cli/demo/stations/station.ts";
import { makeScratch } from "../sites/scratch.ts";

const clerk = { workstation: "till-01", session: "0a1b2c3d" };
const options = { signal: new AbortController().signal, forgets: false };

async function sell(): Promise<{ readonly place: SharedFolder; readonly receipts: readonly Receipt[] }> {
  const place = await openSharedFolder(join(makeScratch(), "shop"), "test");
  onTestFinished(() => place.ground.close());
  const station = await priceLabels.open(place, clerk);
  const receipts: Receipt[] = [];
  for (let sequence = 1; sequence <= 5; sequence++) {
    const receipt = await station.work(sequence, options);
    if (receipt !== undefined) receipts.push(receipt);
  }
  await station.close();
  return { place, receipts };
}

test("finds every version that was put, and names a receipt without one", async () => {
  const { place, receipts } = await sell();
  expect(await priceLabels.audit(place, receipts)).toMatchObject({ found: 5, lost: [], doubled: [], disorder: [] });
  const lie = { station: "labels", ...clerk, sequence: 9, what: "a label for the lamp" };
  expect(await priceLabels.audit(place, [...receipts, lie])).toMatchObject({
    acknowledged: 6,
    lost: ["a label for the lamp, piece 9 of till-01"],
  });
});

test("names the file of a version in which one byte was altered, and reads all others", async () => {
  const { place, receipts } = await sell();
  const slot = readdirSync(place.directory, { recursive: true, encoding: "utf8" }).find((path) =>
    /lamp~.*-0{9}1$/.test(path),
  );
  const path = join(place.directory, slot ?? "");
  const text = readFileSync(path, "utf8");
  writeFileSync(path, text.replace("-----\n", "----+\n"));
  const { lost, disorder, found } = await priceLabels.audit(place, receipts);
  expect(disorder).toEqual([expect.stringContaining(slot ?? "lamp")]);
  expect(found).toBe(4);
  expect(lost).toEqual([expect.stringContaining("piece 1 of till-01")]);
});

test("names a version that no workstation has put, and one that is there twice", async () => {
  const { place, receipts } = await sell();
  const { openObjects } = await import("../../src/objects/index.ts");
  await using objects = await openObjects(join(place.directory, "labels"));
  const bucket = await objects.bucket("labels");
  await using first = await bucket.get("lamp");
  const { versionId } = await bucket.put("lamp", await first.text());
  const foreign = await bucket.put("chair", "half a label");
  const { doubled, disorder } = await priceLabels.audit(place, receipts);
  expect(doubled).toHaveLength(1);
  expect(disorder).toEqual([expect.stringContaining(foreign.versionId)]);
  expect(versionId).not.toBe(foreign.versionId);
});
