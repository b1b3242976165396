// Files of programs that know nothing of Holdfast: each complete one becomes one ticket, by each of the rules, on
// every kind of disk.
import { createHash } from "node:crypto";
import { beforeEach, describe, expect, it } from "vitest";
import type { Problem } from "../../../src/common.ts";
import type { AdoptRule } from "../../../src/handoff/model/foreign-rule.ts";
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

function md5Of(text: string): string {
  return createHash("md5").update(text).digest("hex");
}

function collector(): { problems: Problem[]; onProblem: (problem: Problem) => void } {
  const problems: Problem[] = [];
  return { problems, onProblem: (problem) => void problems.push(problem) };
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

  it("a file is adopted once its done file exists, and both are removed from the folder", async () => {
    await put({ "a.csv": "1", "a.csv.done": "", "b.csv": "half", "c.csv.done": "" });
    expect(await box.adopt(folder, doneFile)).toBe(1);
    expect(await filesIn(disk, folder)).toEqual(["b.csv", "c.csv.done"]);
    await put({ "c.csv": "3" });
    expect(await box.adopt(folder, { ...doneFile, group: "g", meta: { from: "erp" } })).toBe(1);
    const taken = (await contents()).sort((a, b) => ("a.csv" in a ? -1 : "a.csv" in b ? 1 : 0));
    expect(taken).toEqual([{ "a.csv": "1" }, { "c.csv": "3" }]);
    expect(await filesIn(disk, `${site.directory}/box/adopting`)).toEqual([]);
  });

  it("a file that cannot be read is reported, blocks no other, and is adopted once it can be read", async () => {
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
    const { problems, onProblem } = collector();
    expect(await adopter.adopt(folder, rename, { onProblem })).toBe(1);
    expect(problems).toMatchObject([{ path: `${folder}/a.csv`, what: expect.stringContaining("EACCES") as string }]);
    expect(await contents()).toEqual([{ "b.csv": "2" }]);
    expect(await filesIn(disk, folder)).toEqual(["a.csv"]);
    expect(await adopter.adopt(folder, rename, { onProblem })).toBe(0);
    expect(problems).toHaveLength(2);
    expect((await box.verify()).problems.map(({ path }) => path)).toEqual([`${folder}/a.csv`]);
    isReadable = true;
    expect(await adopter.adopt(folder, rename)).toBe(1);
    expect(await contents()).toEqual([{ "a.csv": "1" }]);
    expect(await filesIn(disk, `${site.directory}/box/adopting`)).toEqual([]);
    expect((await box.verify()).problems).toEqual([]);
  });

  it("a directory in place of a done file or a file stays where it is, and a loop reports it once", async () => {
    for (const name of ["a.csv.done", "d.csv"]) await disk.mkdir(`${folder}/${name}`);
    await put({ "a.csv": "1", "a.csv.done/precious": "x", "b.csv": "2", "b.csv.done": "", "d.csv.done": "" });
    const { problems, onProblem } = collector();
    const adopting = box.keepAdopting(folder, doneFile, { everyMs: 5, onProblem });
    await until(async () => (await box.stats()).incoming === 1);
    await put({ "e.csv": "5", "e.csv.done": "" });
    await until(async () => (await box.stats()).incoming === 2);
    await adopting.stop();
    expect(problems.map(({ path }) => path).sort()).toEqual([`${folder}/a.csv.done`, `${folder}/d.csv`]);
    expect((await box.verify()).problems.map(({ path }) => path).sort()).toEqual(
      problems.map(({ path }) => path).sort(),
    );
    expect(await readText(disk, `${folder}/a.csv.done/precious`)).toBe("x");
    expect((await contents()).length).toBe(2);
  });

  it("a directory in place of a manifest is reported, and stays", async () => {
    await disk.mkdir(`${folder}/a.csv.json`);
    await put({ "a.csv": "1", "b.csv": "2", "b.csv.json": JSON.stringify({ name: "b.csv" }) });
    const { problems, onProblem } = collector();
    expect(await box.adopt(folder, { by: "manifest", manifest: "{name}.json" }, { onProblem })).toBe(1);
    expect(problems.map(({ path }) => path)).toEqual([`${folder}/a.csv.json`]);
  });

  it("a manifest's idempotency key makes one ticket, also across names, openings and workers", async () => {
    const rule: AdoptRule = { by: "manifest", manifest: "{name}.done" };
    for (const [name, key] of [
      ["first.csv", "k"],
      ["second.csv", "k"],
      ["third.csv", "l"],
    ] as const) {
      const manifest = { fileName: name, size: "4", hash: sha256Of("same"), idempotencyKey: key };
      await put({ [name]: "same", [`${name}.done`]: JSON.stringify(manifest) });
      await box.adopt(folder, rule);
    }
    expect((await drain(box)).map(({ key }) => key).sort()).toEqual(["k", "l"]);
    await put({ "later.csv": "same", "later.csv.done": JSON.stringify({ key: "k", files: [{ name: "later.csv" }] }) });
    const { problems, onProblem } = collector();
    expect(await box.adopt(folder, rule, { onProblem })).toBe(0);
    expect(problems).toEqual([]);
    expect(await filesIn(disk, folder)).toEqual([]);
    expect((await box.publish({ a: "same" }, { key: "k" })).duplicate).toBe(true);
  });

  it("other content under a key that was handed over before is set aside and reported, not discarded", async () => {
    const rule: AdoptRule = { by: "manifest", manifest: "{name}.json" };
    await put({ a: "one", "a.json": JSON.stringify({ name: "a", key: "k" }) });
    expect(await box.adopt(folder, rule)).toBe(1);
    await put({ a: "two", "a.json": JSON.stringify({ name: "a", key: "k" }) });
    const { problems, onProblem } = collector();
    expect(await box.adopt(folder, rule, { onProblem })).toBe(0);
    expect(problems).toMatchObject([{ what: expect.stringContaining("with other content") as string }]);
    const kept = await filesIn(disk, `${site.directory}/box/aside`);
    expect(kept.filter((path) => path.endsWith("file-0"))).toHaveLength(1);
    expect(await contents()).toEqual([{ a: "one" }]);
  });

  it("a spoilt file does not use up the key of its manifest: the right one is adopted when it is sent again", async () => {
    const rule: AdoptRule = { by: "manifest", manifest: "{name}.json" };
    for (const [digest, value] of [
      ["sha256", sha256Of("good")],
      ["md5", md5Of("good")],
    ] as const)
      for (const text of ["spoilt", "good"]) {
        await put({ a: text, "a.json": JSON.stringify({ name: "a", [digest]: value, key: `by ${digest}` }) });
        expect(await box.adopt(folder, rule)).toBe(1);
      }
    expect((await drain(box)).map(({ key, files }) => `${key} ${files.a}`).sort()).toEqual([
      "by md5 good",
      "by sha256 good",
    ]);
    const reasons: string[] = [];
    for await (const { history } of box.list("error")) reasons.push(history[0]?.reason ?? "");
    expect(reasons.sort()).toMatchObject([
      expect.stringContaining(md5Of("spoilt")),
      expect.stringContaining("SHA-256"),
    ]);
  });

  it("manifests with a byte order mark, UTF-16, MD5, SHA-1, SHA-512 and numbers as strings are read", async () => {
    const rule: AdoptRule = { by: "manifest", manifest: "{name}.json" };
    const hashOf = (algorithm: string): string => createHash(algorithm).update("1").digest("hex");
    const manifests: Record<string, object> = {
      bom: { name: "bom", size: 1 },
      md5: { name: "md5", hash: hashOf("md5").toUpperCase() },
      sha1: { name: "sha1", Checksum: `sha1:${hashOf("sha1")}` },
      sha512: { name: "sha512", SHA512: hashOf("sha512") },
      text: { name: "text", size: "1", recordCount: "7" },
    };
    for (const [name, manifest] of Object.entries(manifests))
      await put({ [name]: "1", [`${name}.json`]: `\uFEFF${JSON.stringify(manifest)}` });
    await put({ wide: "1", sums: "1", "sums.json": `${hashOf("md5")}  sums\n` });
    const wide = Buffer.from(`\uFEFF${JSON.stringify({ name: "wide" })}`, "utf16le");
    await disk.createFile(`${folder}/wide.json`, wide, { sync: false });
    expect(await box.adopt(folder, rule)).toBe(7);
    expect(await contents()).toHaveLength(7);
  });

  it("a manifest that makes no sense is reported with the reason, and one that may still be written is by a single pass", async () => {
    const rule: AdoptRule = { by: "manifest", manifest: "{name}.json" };
    await put({
      a: "1",
      "a.json": JSON.stringify({ name: "a", hash: "zz" }),
      "b.json": "{ not",
      "c.json": JSON.stringify({ name: "../c" }),
      "d.json": JSON.stringify({ name: "d" }),
      "e.json": JSON.stringify([{ name: "a" }, { name: "a" }]),
      "f.json": JSON.stringify({ name: "a", size: -1 }),
      "g.json": JSON.stringify({ name: "a", key: "x".repeat(1025) }),
    });
    const { problems, onProblem } = collector();
    const adopting = box.keepAdopting(folder, rule, { everyMs: 5, onProblem });
    await until(() => problems.length >= 4);
    await adopting.stop();
    expect(problems.map(({ path }) => path.slice(-6)).sort()).toEqual(["a.json", "c.json", "f.json", "g.json"]);
    problems.length = 0;
    expect(await box.adopt(folder, rule, { onProblem })).toBe(0);
    const whats = ["hash", "not JSON", "not a file of this folder", "does not exist yet", "twice", "size", "key"];
    for (const [index, what] of whats.entries()) expect(problems[index]?.what).toContain(what);
    expect((await box.verify()).problems).toHaveLength(7);
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

  it("a manifest of sha256sum hands over its files together once all of them exist", async () => {
    const sums = `${sha256Of("1")}  a.csv\n${sha256Of("2")} *b.csv\n`;
    await put({ "a.csv": "1", SHA256SUMS: sums });
    const rule: AdoptRule = { by: "manifest", manifest: "SHA256SUMS" };
    expect(await box.adopt(folder, rule)).toBe(0);
    await put({ "b.csv": "2" });
    expect(await box.adopt(folder, rule)).toBe(1);
    expect(await contents()).toEqual([{ "a.csv": "1", "b.csv": "2" }]);
    expect(await filesIn(disk, folder)).toEqual([]);
  });

  it("a JSON manifest declares size, hash and records; a torn one waits; a custom parser may read others", async () => {
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

  it("a file that does not match its manifest ends in the dead letters, and no handler sees it", async () => {
    await put({ "a.csv": "spoilt", "a.csv.sum": `${sha256Of("good")}  a.csv\n` });
    expect(await box.adopt(folder, { by: "manifest", manifest: "{name}.sum" })).toBe(1);
    expect(await contents()).toEqual([]);
    expect(await filesIn(disk, `${site.directory}/box/error`)).toHaveLength(1);
  });

  it("the guessing rule adopts a file whose size was quiet, and not one that grows", async () => {
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

  it("several adopters of one folder make one ticket of each file", async () => {
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

  it("keepAdopting adopts new files, waits while the box is full, and ends when it is stopped", async () => {
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

  it("adopt reports a name that no ticket can have, adopts the others, and leaves the file", async () => {
    const long = "x".repeat(210);
    await put({ [long]: "1", "z.csv": "2" });
    const { problems, onProblem } = collector();
    expect(await box.adopt(folder, rename, { onProblem })).toBe(1);
    expect(problems).toMatchObject([
      { path: `${folder}/${long}`, what: expect.stringContaining("200 bytes") as string },
    ]);
    expect(await contents()).toEqual([{ "z.csv": "2" }]);
    expect(await filesIn(disk, folder)).toEqual([long]);
  });

  it("a folder that does not exist, is a file, or is part of the box is refused", async () => {
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
