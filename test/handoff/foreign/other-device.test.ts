// A foreign folder on another file system than the box: claimed there by a rename, copied, and removed last.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, type TestContext } from "vitest";
import { openHandoff, type AdoptRule, type Handoff } from "../../../src/handoff/index.ts";
import { makeScratch } from "../../sites/scratch.ts";
import { drain } from "../publish/opened-box.ts";

const rule: AdoptRule = { by: "done-file", done: "{name}.done" };

/** A folder on a file system that is not that of `directory`. */
function makeElsewhere(context: TestContext, directory: string): string {
  const other = "/dev/shm";
  if (!existsSync(other) || statSync(other).dev === statSync(directory).dev)
    context.skip(`${other} is not on another file system than ${directory}`);
  const folder = mkdtempSync(join(other, "holdfast-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function open(directory: string): Promise<Handoff> {
  const box = await openHandoff(directory);
  onTestFinished(() => box.close());
  return box;
}

it("several adopters make one ticket of each file, and nothing is left in the folder", async (context) => {
  const directory = makeScratch();
  const folder = makeElsewhere(context, directory);
  const boxes = [await open(join(directory, "box")), await open(join(directory, "box"))];
  const names = Array.from({ length: 6 }, (_, index) => `f${index}.csv`);
  for (const name of names) for (const each of [name, `${name}.done`]) writeFileSync(join(folder, each), name);
  const counts = await Promise.all(boxes.map((box) => box.adopt(folder, rule)));
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(6);
  expect((await drain(boxes[0]!)).flatMap(({ files }) => Object.keys(files)).sort()).toEqual(names);
  expect(readdirSync(folder)).toEqual([]);
});

it("a claim that a process left there is completed by the next adopter of the folder, and not by other boxes", async (context) => {
  const directory = makeScratch();
  const folder = makeElsewhere(context, directory);
  const gone = await openHandoff(join(directory, "box"));
  for (const each of ["a.csv", "a.csv.done"]) writeFileSync(join(folder, each), "1");
  // A key that cannot be used fails behind the claim, and its process ends with that.
  const failing = gone.adopt(folder, { ...rule, key: () => "" });
  await expect(failing).rejects.toBeInstanceOf(TypeError);
  await gone.close();
  expect(readdirSync(folder)).toEqual([".holdfast-adopting"]);
  const other = await open(join(directory, "other"));
  expect(await other.adopt(folder, rule)).toBe(0);
  const box = await open(join(directory, "box"));
  // Only a process that has the key function can complete it.
  expect(await box.adopt(folder, rule)).toBe(0);
  expect(await box.adopt(folder, { ...rule, key: ({ name }) => name })).toBe(1);
  expect(await drain(box)).toMatchObject([{ key: "a.csv", files: { "a.csv": "1" } }]);
  expect(readdirSync(folder)).toEqual([]);
});

it("a ticket is exported to a folder on another file system", async (context) => {
  const directory = makeScratch();
  const folder = join(makeElsewhere(context, directory), "out");
  mkdirSync(folder);
  const box = await open(join(directory, "box"));
  const { id } = await box.publish({ "a.csv": "1" });
  const exporting = box.keepExporting(folder, { content: "empty" });
  while (!existsSync(join(folder, "a.csv.done"))) await new Promise((resolve) => setImmediate(resolve));
  await exporting.stop();
  expect(readdirSync(folder).sort()).toEqual(["a.csv", "a.csv.done"]);
  expect(id).not.toBe("");
});
