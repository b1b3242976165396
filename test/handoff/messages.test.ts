// Messages of mistakes that a program makes first: each names what was wrong, and what to do.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openHandoff, publishFile, type DeadLetter, type Delivery } from "../../src/handoff/index.ts";
import { failureOf } from "../sites/event-logs.ts";
import { makeScratch } from "../sites/scratch.ts";

test("a value that JSON cannot represent is refused, naming call and argument, and the claim stays", async () => {
  await using box = await openHandoff("memory:");
  await expect(box.publish({ a: "1" }, { meta: { n: 1n } })).rejects.toThrow(/^publish: meta is not JSON: .*BigInt/);
  await expect(box.publish({ a: "1" }, { meta: [NaN] })).rejects.toThrow("publish: meta[0] is NaN");
  const { id } = await box.publish({ a: "1" });
  const delivery = await box.take();
  await expect(delivery?.ack({ n: 1n })).rejects.toThrow(/^ack: result is not JSON/);
  await expect(delivery?.ack({ rate: NaN })).rejects.toThrow("ack: result.rate is NaN, which JSON does not have.");
  await expect(delivery?.ack([undefined])).rejects.toThrow("ack: result[0] is undefined");
  await delivery?.ack({ rate: 1 });
  expect(await box.find(id)).toMatchObject({ state: "archive", result: { rate: 1 } });
});

test("onDeadLetter reports each ticket that went to the dead letters, including those that no handler saw", async () => {
  await using box = await openHandoff("memory:");
  const late = await box.publish({ a: "1" }, { expiresMs: 0 });
  const bad = await box.publish({ a: "2" });
  const dead: DeadLetter[] = [];
  const handler = (delivery: Delivery): Promise<void> => delivery.fail("no such customer");
  await box.consume(handler, { idleMs: 0, onDeadLetter: (ticket) => dead.push(ticket) }).done;
  const byId = new Map(dead.map((each) => [each.id, each]));
  expect(byId.get(late.id)).toMatchObject({ attempt: 1, outcome: "expired" });
  expect(byId.get(bad.id)).toEqual({ id: bad.id, attempt: 1, outcome: "fail", reason: "no such customer" });
  expect(dead).toHaveLength(2);
  expect(() => box.consume(handler, { onDeadLetter: "log" as never })).toThrow("onDeadLetter must be a function.");
  const rule = { by: "rename", ignore: "*.tmp" } as never;
  await expect(box.adopt("/in", rule)).rejects.toThrow('adopt: ignore must be a list of globs, like ["*.tmp"].');
});

test("a missing folder, and a file in its place, are reported as such", async () => {
  const directory = makeScratch();
  const missing = join(directory, "missing");
  expect(await failureOf(publishFile(join(missing, "a.csv"), "1"))).toMatchObject({
    code: "INVALID_PATH",
    path: missing,
    message: expect.stringMatching(/it does not exist\. Is the share mounted\?$/) as string,
  });
  const file = join(directory, "file");
  writeFileSync(file, "");
  expect(await failureOf(openHandoff(file))).toMatchObject({
    code: "INVALID_PATH",
    message: `${file} is a file: name a directory.`,
  });
});
