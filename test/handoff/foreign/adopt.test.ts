// Files of programs that know nothing of Holdfast: each complete one becomes one ticket, by each of the rules, on
// every kind of disk.
import { createHash } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import type { AdoptRule } from "../../../src/handoff/foreign/rule.ts";
import type { BoxHandoff } from "../../../src/handoff/handoff.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import { diskError } from "../../../src/ports/disk-error.ts";
import { changedDisk, readText } from "../../sites/disks.ts";
import { failureOf } from "../../sites/event-logs.ts";
import { sites, type Site } from "../../sites/sites.ts";
import { until } from "../../waiting.ts";
import { drain, filesIn, openOn } from "../publish/opened-box.ts";

const doneFile: AdoptRule = { by: "done-file", done: "{name}.done" };
const rename: AdoptRule = { by: "rename", ignore: ["*.tmp", "*.part"] };

function sha256Of(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

describe.each(sites)("on %s", (_name, makeSite) => {
  let site: Site;
  let disk: Disk;
  let box: BoxHandoff;
  let folder: string;

  const put = async (files: Readonly<Record<string, string>>): Promise<void> => {
    for (const [name, text] of Object.entries(files))
      await disk.createFile(`${folder}/${name}`, Buffer.from(text), { sync: false });
  };
  const contents = async (): Promise<Record<string, string>[]> => (await drain(box)).map(({ files }) => ({ ...files }));

  beforeEach(async () => {
    site = await makeSite();
    const ports = await site.openPorts();
    disk = ports.disk;
    folder = `${site.directory}/in`;
    await disk.mkdir(folder);
    box = await openOn(ports, `${site.directory}/box`);
  });

  it("a file is taken when its done file is there, and both are gone from the folder", async () => {
    await put({ "a.csv": "1", "a.csv.done": "", "b.csv": "half", "c.csv.done": "" });
    expect(await box.adopt(folder, doneFile)).toBe(1);
    expect(await filesIn(disk, folder)).toEqual(["b.csv", "c.csv.done"]);
    await put({ "c.csv": "3" });
    expect(await box.adopt(folder, { ...doneFile, group: "g", meta: { from: "erp" } })).toBe(1);
    const taken = (await contents()).sort((a, b) => ("a.csv" in a ? -1 : "a.csv" in b ? 1 : 0));
    expect(taken).toEqual([{ "a.csv": "1" }, { "c.csv": "3" }]);
    expect(await filesIn(disk, `${site.directory}/box/adopting`)).toEqual([]);
  });

  it("a file that cannot be read is told, keeps no other back, and is adopted when it can be read", async () => {
    const ports = await site.openPorts();
    let isReadable = false;
    const reader = changedDisk(ports.disk, (whole) => ({
      open: async (...of) => {
        const [path] = of;
        const isFirst = path.startsWith(`${site.directory}/box/adopting/`) && (await readText(whole, path)) === "1";
        if (isFirst && !isReadable) throw diskError("EACCES", "open", path);
        return await whole.open(...of);
      },
    }));
    const adopter = await openOn({ ...ports, disk: reader }, `${site.directory}/box`);
    await put({ "a.csv": "1", "b.csv": "2" });
    expect(await failureOf(adopter.adopt(folder, rename))).toMatchObject({ code: "NO_PERMISSION" });
    expect(await contents()).toEqual([{ "b.csv": "2" }]);
    expect(await filesIn(disk, folder)).toEqual([]);
    expect(await failureOf(adopter.adopt(folder, rename))).toMatchObject({ code: "NO_PERMISSION" });
    isReadable = true;
    expect(await adopter.adopt(folder, rename)).toBe(1);
    expect(await contents()).toEqual([{ "a.csv": "1" }]);
    expect(await filesIn(disk, `${site.directory}/box/adopting`)).toEqual([]);
  });

  it("files that share a done file by their base are one ticket", async () => {
    await put({ "a.csv": "1", "a.pdf": "2", "a.ok": "", "b.csv": "3" });
    expect(await box.adopt(folder, { by: "done-file", done: "{base}.ok" })).toBe(1);
    expect(await contents()).toEqual([{ "a.csv": "1", "a.pdf": "2" }]);
    expect(await filesIn(disk, folder)).toEqual(["b.csv"]);
  });

  it("an equal file tomorrow is a new ticket, unless the key is its content or a function says otherwise", async () => {
    for (const expected of [1, 1]) {
      await put({ "a.csv": "same", "a.csv.done": "" });
      expect(await box.adopt(folder, doneFile)).toBe(expected);
    }
    for (const expected of [1, 0]) {
      await put({ "a.csv": "same", "a.csv.done": "" });
      expect(await box.adopt(folder, { ...doneFile, key: "content" })).toBe(expected);
    }
    const key = ({ name, sha256 }: { name: string; sha256: string }): string => `${name} ${sha256}`;
    for (const expected of [1, 0]) {
      await put({ "a.csv": "same", "a.csv.done": "" });
      expect(await box.adopt(folder, { ...doneFile, key })).toBe(expected);
    }
    const keys = (await drain(box)).map((taken) => taken.key);
    expect(new Set(keys).size).toBe(4);
    expect(keys).toContain(`a.csv ${sha256Of("same")}`);
    expect(await filesIn(disk, folder)).toEqual([]);
  });

  it("a producer that renames is adopted by names, and names that it still writes are left alone", async () => {
    await put({ "a.csv": "1", "b.csv.tmp": "half", ".hidden": "x", "c.txt": "2" });
    await disk.mkdir(`${folder}/below`);
    expect(await box.adopt(folder, { ...rename, include: ["*.csv", "*.tmp"] })).toBe(1);
    expect(await contents()).toEqual([{ "a.csv": "1" }]);
    expect(await filesIn(disk, folder)).toEqual([".hidden", "b.csv.tmp", "c.txt"]);
    expect(await box.adopt(folder, rename)).toBe(1);
    expect(await filesIn(disk, folder)).toEqual([".hidden", "b.csv.tmp"]);
  });

  it("a manifest of sha256sum hands over its files together, when all of them are there", async () => {
    const sums = `${sha256Of("1")}  a.csv\n${sha256Of("2")} *b.csv\n`;
    await put({ "a.csv": "1", SHA256SUMS: sums });
    const rule: AdoptRule = { by: "manifest", manifest: "SHA256SUMS" };
    expect(await box.adopt(folder, rule)).toBe(0);
    await put({ "b.csv": "2" });
    expect(await box.adopt(folder, rule)).toBe(1);
    expect(await contents()).toEqual([{ "a.csv": "1", "b.csv": "2" }]);
    expect(await filesIn(disk, folder)).toEqual([]);
  });

  it("a manifest in JSON tells size, hash and records; one that is torn waits; a parser of one's own may read others", async () => {
    const manifest = { FileName: "a.csv", Size: 1, Hash: sha256Of("1").toUpperCase(), RecordCount: 7 };
    await put({ "a.csv": "1", "a.csv.done": JSON.stringify(manifest).slice(0, -1) });
    const rule: AdoptRule = { by: "manifest", manifest: "{name}.done" };
    expect(await box.adopt(folder, rule)).toBe(0);
    await disk.unlink(`${folder}/a.csv.done`);
    await put({ "a.csv.done": JSON.stringify(manifest), "b.csv": "2", "list.txt": "b.csv|3" });
    expect(await box.adopt(folder, rule)).toBe(1);
    const delivery = await box.take();
    expect(delivery?.files).toEqual([{ name: "a.csv", size: 1, sha256: sha256Of("1"), records: 7 }]);
    await delivery?.ack();
    const parse = (text: string): { name: string; records: number }[] =>
      text.split("\n").map((line) => ({ name: line.split("|")[0] ?? "", records: Number(line.split("|")[1]) }));
    expect(await box.adopt(folder, { by: "manifest", manifest: "list.txt", parse })).toBe(1);
    expect(await contents()).toEqual([{ "b.csv": "2" }]);
  });

  it("a file that is not what its manifest says ends with the dead letters, and no handler sees it", async () => {
    await put({ "a.csv": "spoilt", "a.csv.sum": `${sha256Of("good")}  a.csv\n` });
    expect(await box.adopt(folder, { by: "manifest", manifest: "{name}.sum" })).toBe(1);
    expect(await contents()).toEqual([]);
    expect(await filesIn(disk, `${site.directory}/box/error`)).toHaveLength(1);
  });

  it("a file whose size was quiet is taken by the rule that says that it guesses, one that grows is not", async () => {
    await put({ "a.csv": "1", "b.csv": "1" });
    const adopting = box.adopt(folder, { by: "guess-by-quiet-size", quietMs: 100 });
    let isOver = false;
    const over = adopting.finally(() => (isOver = true));
    const growing = await disk.open(`${folder}/b.csv`, "write");
    for (let size = 1; !isOver; size++) {
      await growing.write(size, Buffer.from("x"));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await growing.close();
    expect(await over).toBe(1);
    expect(await contents()).toEqual([{ "a.csv": "1" }]);
    expect(await filesIn(disk, folder)).toEqual(["b.csv"]);
  });

  it("of several adopters on one folder each file makes one ticket", async () => {
    const names = Array.from({ length: 8 }, (_, index) => `f${index}.csv`);
    await put(Object.fromEntries(names.flatMap((name) => [[name, name] as const, [`${name}.done`, ""] as const])));
    const others = [box, await openOn(await site.openPorts(), `${site.directory}/box`)];
    others.push(await openOn(await site.openPorts(), `${site.directory}/box`));
    const counts = await Promise.all(others.map((each) => each.adopt(folder, doneFile)));
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(names.length);
    const taken = await contents();
    expect(taken.flatMap((files) => Object.keys(files)).sort()).toEqual(names);
    expect(await filesIn(disk, folder)).toEqual([]);
    expect(await filesIn(disk, `${site.directory}/box/adopting`)).toEqual([]);
  });

  it("keepAdopting takes what comes, waits while the box is full, and ends when it is stopped", async () => {
    const limited = await openOn(await site.openPorts(), `${site.directory}/box`, { limits: { tickets: 2 } });
    const adopting = limited.keepAdopting(folder, rename, { everyMs: 20 });
    await put({ "a.csv": "1", "b.csv": "2", "c.csv": "3" });
    await until(async () => (await filesIn(disk, folder)).length === 1);
    await until(async () => (await filesIn(disk, `${site.directory}/box/adopting`)).length === 0);
    const delivery = await box.take();
    await delivery?.ack();
    await until(async () => (await filesIn(disk, folder)).length === 0);
    await adopting.stop();
    const names = [delivery?.files[0]?.name ?? "", ...(await contents()).flatMap((files) => Object.keys(files))];
    expect(names.sort()).toEqual(["a.csv", "b.csv", "c.csv"]);
  });

  it("a name that no ticket can have is told by adopt, does not stop the others, and stays", async () => {
    const long = "x".repeat(210);
    await put({ [long]: "1", "z.csv": "2" });
    expect(await failureOf(box.adopt(folder, rename))).toMatchObject({ code: "INVALID_NAME" });
    expect(await contents()).toEqual([{ "z.csv": "2" }]);
    expect(await filesIn(disk, folder)).toEqual([long]);
  });

  it("a folder that is not there, is a file, or is a part of the box is refused", async () => {
    await put({ file: "1" });
    for (const path of [
      `${site.directory}/none`,
      `${folder}/file`,
      `${site.directory}/box`,
      `${site.directory}/box/data`,
    ]) {
      const failure = await failureOf(box.adopt(path, rename));
      expect(failure, `the folder ${path}`).toMatchObject({ code: "INVALID_PATH" });
    }
  });
});
