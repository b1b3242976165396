// While a backup lists the tickets of a box, a claim stays where it is.
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { encodeRecord } from "../../../src/format/record.ts";
import { openBox } from "../../../src/handoff/box/open-box.ts";
import { isScanned, underScanGate } from "../../../src/handoff/consume/scan-gate.ts";
import { openHandoff } from "../../../src/handoff/index.ts";
import { openNodePorts } from "../../../src/ports/node/ports.ts";
import { makeScratch } from "../../sites/scratch.ts";
import { nextTurn, until } from "../../waiting.ts";

function ticketsIn(directory: string, room: string): string[] {
  if (!existsSync(join(directory, room))) return [];
  return readdirSync(join(directory, room), { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".json"),
  );
}

test("a ticket that is claimed during a scan is delivered, returned or archived only after it", async () => {
  const directory = makeScratch();
  await using handoff = await openHandoff(directory);
  await handoff.publish({ "a.txt": "one" });
  const { box, ownsGround } = await openBox(await openNodePorts(directory), directory, { create: false });
  const seen: string[] = [];
  let taking: Promise<void> | undefined;
  await underScanGate(box, async () => {
    taking = handoff.take().then(async (delivery) => {
      seen.push("delivered");
      await delivery?.ack();
    });
    await until(() => ticketsIn(directory, "processing").length === 1);
    for (let turn = 0; turn < 100; turn++) await nextTurn();
    expect(ticketsIn(directory, "processing")).toHaveLength(1);
    seen.push("scanned");
  });
  await taking;
  expect(seen).toEqual(["scanned", "delivered"]);
  expect(ticketsIn(directory, "archive")).toHaveLength(1);
  if (ownsGround) await box.ground.close();
});

test("a scan whose process died delays a claim once, and then it is gone", async () => {
  const directory = makeScratch();
  await using handoff = await openHandoff(directory);
  await handoff.publish({ "a.txt": "one" });
  const { box } = await openBox(await openNodePorts(directory), directory, { create: false });
  const record = encodeRecord({ kind: "scan", decode: (value) => value }, { id: "dead", ms: 20 });
  writeFileSync(join(directory, "scan.json"), record);
  expect(await isScanned(box)).toBe(true);
  await (await handoff.take())?.ack();
  expect(await isScanned(box)).toBe(false);
  await box.ground.close();
});
