// Producers that go on while their files are adopted: none of what they write is lost, and what cannot be adopted goes
// back.
import { beforeEach, expect, it } from "vitest";
import type { AdoptRule } from "../../../src/handoff/model/foreign-rule.ts";
import type { BoxHandoff } from "../../../src/handoff/handoff.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import { failureOf } from "../../sites/event-logs.ts";
import { makeRealSite } from "../../sites/sites.ts";
import { drain, filesIn, openOn } from "../publish/opened-box.ts";

const doneFile: AdoptRule = { by: "done-file", done: "{name}.done" };

let disk: Disk;
let box: BoxHandoff;
let folder: string;
/** What the producer does before or after the adopter moves a file out of the folder. */
let before: (name: string) => Promise<void>;
let after: (name: string) => Promise<void>;

async function put(name: string, text: string): Promise<void> {
  await disk.unlink(`${folder}/${name}`).catch(() => undefined);
  await disk.createFile(`${folder}/${name}`, Buffer.from(text), { sync: false });
}

beforeEach(async () => {
  const { directory, openPorts } = await makeRealSite();
  const ports = await openPorts();
  disk = ports.disk;
  folder = `${directory}/in`;
  await disk.mkdir(folder);
  before = after = async () => undefined;
  const rename: Disk["rename"] = async (from, to) => {
    const name = from.startsWith(`${folder}/`) ? from.slice(folder.length + 1) : undefined;
    if (name !== undefined) await before(name);
    await disk.rename(from, to);
    if (name !== undefined) await after(name);
  };
  const seen = new Proxy(disk, {
    get: (target, name) => {
      if (name === "rename") return rename;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
  box = await openOn({ ...ports, disk: seen }, `${directory}/box`);
});

it("a producer that writes the next file as soon as the first is gone hands over both", async () => {
  await put("a.csv", "first");
  await put("a.csv.done", "");
  let isWritten = false;
  after = async (name) => {
    if (name !== "a.csv" || isWritten) return;
    isWritten = true;
    await put("a.csv", "second");
    await put("a.csv.done", "");
  };
  expect((await box.adopt(folder, doneFile)) + (await box.adopt(folder, doneFile))).toBe(2);
  expect((await drain(box)).flatMap(({ files }) => Object.values(files)).sort()).toEqual(["first", "second"]);
  expect(await filesIn(disk, folder)).toEqual([]);
});

it("a done file whose file is removed under the adopter returns to the folder, and waits for the next file", async () => {
  await put("a.csv", "first");
  await put("a.csv.done", "");
  before = async (name) => {
    if (name === "a.csv") await disk.unlink(`${folder}/a.csv`).catch(() => undefined);
  };
  expect(await box.adopt(folder, doneFile)).toBe(0);
  expect(await filesIn(disk, folder)).toEqual(["a.csv.done"]);
  before = async () => undefined;
  await put("a.csv", "second");
  expect(await box.adopt(folder, doneFile)).toBe(1);
});

it("files of a bundle return to the folder without replacing new ones, and are adopted once their names are free", async () => {
  for (const name of ["a.csv", "a.pdf", "a.ok"]) await put(name, `old ${name}`);
  const rule: AdoptRule = { by: "done-file", done: "{base}.ok" };
  before = async (name) => {
    if (name !== "a.pdf") return;
    await disk.unlink(`${folder}/a.pdf`);
    await put("a.csv", "new a.csv");
  };
  expect(await box.adopt(folder, rule)).toBe(0);
  expect(await filesIn(disk, folder)).toEqual(["a.csv"]);
  before = async () => undefined;
  // The new file goes another way; then the old one comes back, and is adopted with its done file.
  await disk.unlink(`${folder}/a.csv`);
  expect(await box.adopt(folder, rule)).toBe(1);
  expect((await drain(box)).map(({ files }) => files)).toEqual([{ "a.csv": "old a.csv" }]);
});

it("a manifest that is replaced between listing and claim returns to the folder, and its new text counts", async () => {
  await put("a.csv", "1");
  await put("b.csv", "2");
  await put("m.json", '[{"name":"a.csv"}]');
  let isReplaced = false;
  before = async (name) => {
    if (name !== "m.json" || isReplaced) return;
    isReplaced = true;
    await put("m.json", '[{"name":"a.csv"},{"name":"b.csv"}]');
  };
  const rule: AdoptRule = { by: "manifest", manifest: "m.json" };
  expect(await box.adopt(folder, rule)).toBe(0);
  expect(await box.adopt(folder, rule)).toBe(1);
  expect((await drain(box)).map(({ files }) => files)).toEqual([{ "a.csv": "1", "b.csv": "2" }]);
});

it("with the guessing rule, a file that grows between listing and claim returns to the folder", async () => {
  await put("a.csv", "1");
  before = async () => {
    const file = await disk.open(`${folder}/a.csv`, "write");
    await file.write(1, Buffer.from("2"));
    await file.close();
  };
  expect(await box.adopt(folder, { by: "guess-by-quiet-size", quietMs: 1 })).toBe(0);
  expect(await filesIn(disk, folder)).toEqual(["a.csv"]);
  before = async () => undefined;
  expect(await box.adopt(folder, { by: "guess-by-quiet-size", quietMs: 1 })).toBe(1);
  expect((await drain(box)).map(({ files }) => files)).toEqual([{ "a.csv": "12" }]);
});

const wrong: readonly [what: string, rule: unknown, kind: typeof Error | string][] = [
  ["no rule", undefined, TypeError],
  ["an unknown way", { by: "magic" }, TypeError],
  ["an unknown option", { by: "rename", ignore: [], includes: ["*"] }, TypeError],
  ["an option of another rule", { by: "rename", ignore: [], done: "{name}.done" }, TypeError],
  ["a done file that is the file itself", { by: "done-file", done: "{name}" }, TypeError],
  ["a done file in another directory", { by: "done-file", done: "done/{name}" }, "INVALID_NAME"],
  ["an empty manifest", { by: "manifest", manifest: "" }, TypeError],
  ["a parser that is no function", { by: "manifest", manifest: "m", parse: "json" }, TypeError],
  ["ignore that is no list", { by: "rename", ignore: "*.tmp" }, TypeError],
  ["include with a number", { by: "rename", ignore: [], include: [1] }, TypeError],
  ["no time to be quiet", { by: "guess-by-quiet-size", quietMs: 0 }, RangeError],
  ["a key that is a word", { by: "rename", ignore: [], key: "name" }, TypeError],
  ["an empty group", { by: "rename", ignore: [], group: "" }, TypeError],
];
it.each(wrong)("a rule with %s is refused before the folder is touched", async (_what, rule, kind) => {
  await put("a.csv", "1");
  const failure = await failureOf(box.adopt(folder, rule as AdoptRule));
  if (typeof kind === "string") expect(failure).toMatchObject({ code: kind });
  else expect(failure).toBeInstanceOf(kind);
  expect(() => box.keepAdopting(folder, rule as AdoptRule)).toThrow();
  expect(await filesIn(disk, folder)).toEqual(["a.csv"]);
});
