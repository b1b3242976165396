// Entries that other programs put into a tree and that no operation can use: each costs itself, and is reported.
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { openFiles, type FileTree, type TreeProblem } from "../../src/files/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { makeRealSite } from "../sites/sites.ts";
import { codeOf } from "./file-sites.ts";
import { indexedOn, type IndexedSite } from "./index/indexed-sites.ts";

async function open(root: string): Promise<FileTree> {
  const files = await openFiles(root);
  onTestFinished(() => files.close());
  return files;
}

async function found(files: FileTree, text: string): Promise<string[]> {
  return (await files.search(text)).map(({ path }) => path).sort();
}

async function listed(files: FileTree): Promise<{ paths: string[]; problems: Record<string, string> }> {
  const paths: string[] = [];
  const problems: Record<string, string> = {};
  const onProblem = ({ path, what }: TreeProblem): void => void (problems[path] = what);
  for await (const { path } of files.list("", { deep: true, onProblem })) paths.push(path);
  return { paths, problems };
}

/** What another program may put in the place of a file. */
const kinds: Readonly<Record<string, (path: string) => unknown>> = {
  "a FIFO": (path) => execFileSync("mkfifo", [path]),
  "a socket": async (path) => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(path, resolve));
    onTestFinished(() => void server.close());
  },
  "a link to itself": (path) => symlinkSync("a.md", path),
  "a link that is too long": (path) => symlinkSync("n".repeat(300), path),
  "a link to a file of the tree": (path) => symlinkSync("b.md", path),
  "a link to nothing": (path) => symlinkSync("nothing", path),
  "a directory": (path) => mkdirSync(path),
};

describe.skipIf(process.platform === "win32")("an odd entry of a tree", () => {
  it.each(Object.entries(kinds))("%s in the place of an indexed file stops nothing", async (_, make) => {
    const root = makeScratch();
    const files = await open(root);
    await files.write("a.md", "wolf one");
    await files.write("b.md", "wolf two");
    await files.settled();
    expect(await found(files, "wolf")).toEqual(["a.md", "b.md"]);
    unlinkSync(join(root, "a.md"));
    await make(join(root, "a.md"));
    expect(await found(files, "wolf")).toEqual(["b.md"]);
    expect((await listed(files)).paths).toContain("b.md");
    expect(await files.verify({ repair: true })).toMatchObject({ ok: true, checked: 1 });
    expect(await files.rebuildIndex()).toBe(1);
    await files.settled();
    expect(await found(files, "wolf")).toEqual(["b.md"]);
  });

  it("is worked on and followed when its change is still to be indexed", async () => {
    const root = makeScratch();
    const writer = await openFiles(root, { work: false });
    for (const name of ["out", "loop", "z"]) await writer.write(`${name}.md`, "wolf");
    await writer.close();
    for (const name of ["out", "loop"]) unlinkSync(join(root, `${name}.md`));
    symlinkSync("/etc/passwd", join(root, "out.md"));
    symlinkSync("loop.md", join(root, "loop.md"));
    const files = await open(root);
    await files.settled();
    expect(await found(files, "wolf")).toEqual(["z.md"]);
    const told: string[] = [];
    for await (const { path, number } of files.changes({ after: 0 })) {
      told.push(path);
      if (number === 3) break;
    }
    expect(told).toEqual(["out.md", "loop.md", "z.md"]);
  });

  it("is reported by verify and by a listing, whatever is wrong with it, and all others are listed", async () => {
    const root = makeScratch();
    const files = await open(join(root, "tree"));
    await files.write("d/a.md", "wolf");
    const at = (name: string): string => join(files.root, name);
    writeFileSync(join(root, "outside.md"), "wolf");
    symlinkSync(join(root, "outside.md"), at("link-out.md"));
    symlinkSync("nothing", at("link-nowhere"));
    symlinkSync("link-loop", at("link-loop"));
    symlinkSync("d/a.md", at("link-inside"));
    execFileSync("mkfifo", [at("fifo")]);
    writeFileSync(at("back\\slash.md"), "wolf");
    writeFileSync(at("c:drive"), "wolf");
    writeFileSync(Buffer.concat([Buffer.from(`${files.root}/bytes-`), Buffer.from([0xff])]), "wolf");
    const deep = `cd "$0" && for i in $(seq 30); do mkdir ${"q".repeat(200)} && cd ${"q".repeat(200)}; done; echo wolf > f.md`;
    execFileSync("/bin/bash", ["-c", deep, at("d")]);
    onTestFinished(() => void execFileSync("rm", ["-rf", at("d")]));
    expect(await files.verify({ repair: true })).toMatchObject({ ok: true });
    await files.settled();
    expect(await found(files, "wolf")).toEqual(["d/a.md"]);
    const { paths, problems } = await listed(files);
    expect(paths.filter((path) => !path.includes("q"))).toEqual(["d", "d/a.md"]);
    const expected = {
      "link-out.md": "leads out of the tree",
      "link-nowhere": "dangling",
      "link-loop": "circle",
      fifo: "neither a file nor a directory",
      "back\\slash.md": "backslash",
      "c:drive": "cannot be part of a path",
      "bytes-\ufffd": "not UTF-8",
    };
    for (const [path, why] of Object.entries(expected))
      expect([path, problems[path]]).toEqual([path, expect.stringContaining(why)]);
    const tooDeep = Object.entries(problems).filter(([path]) => path.includes("q"));
    expect(tooDeep).toEqual([[expect.any(String), expect.stringContaining("too long")]]);
    expect(Object.keys(problems)).toHaveLength(8);
    const reported = (await files.verify()).problems;
    expect(reported.map(({ path }) => path).sort()).toEqual(Object.keys(problems).sort());
    expect(new Set(reported.map(({ severity }) => severity))).toEqual(new Set(["note"]));
  });

  it("behind a link that leads out is no hit, also where a directory on the way became the link", async () => {
    const folder = makeScratch();
    const files = await open(join(folder, "tree"));
    await files.write("e.md", "hyena");
    await files.write("d/e.md", "hyena");
    await files.settled();
    renameSync(join(files.root, "e.md"), join(folder, "e.md"));
    symlinkSync(join(folder, "e.md"), join(files.root, "e.md"));
    renameSync(join(files.root, "d"), join(folder, "d"));
    symlinkSync(join(folder, "d"), join(files.root, "d"));
    expect(await found(files, "hyena")).toEqual([]);
  });

  it("with a name that no path has is refused in a staged directory, which stays whole", async () => {
    const folder = makeScratch();
    const files = await open(join(folder, "tree"));
    const names = [Buffer.from("back\\slash"), Buffer.concat([Buffer.from("bytes-"), Buffer.from([0xff])])];
    for (const [index, name] of names.entries()) {
      const staged = join(folder, `staged${index}`);
      mkdirSync(staged);
      writeFileSync(join(staged, "ok.md"), "1");
      writeFileSync(Buffer.concat([Buffer.from(`${staged}/`), name]), "2");
      expect(await codeOf(files.add("guide", staged))).toBe("INVALID_PATH");
      expect(readdirSync(staged)).toHaveLength(2);
      expect(await files.stat("guide")).toBeUndefined();
    }
  });
});

function flip(path: string): void {
  const bytes = readFileSync(path);
  bytes[bytes.length >> 1]! ^= 0x15;
  writeFileSync(path, bytes);
}

describe("a damaged record of what is derived from a tree", () => {
  it.each([
    ["a flipped bit", flip],
    ["an empty file", (path: string) => writeFileSync(path, "")],
    ["a directory in its place", (path: string) => (unlinkSync(path), mkdirSync(path))],
  ])("index.json with %s is set aside, and the index is built anew", async (_, damage) => {
    const site = await indexedOn(makeRealSite);
    const writer = await site.open();
    await writer.write("a.md", "wolf");
    await writer.settled();
    await writer.close();
    damage(`${site.state}/documents/index.json`);
    const [ada, bob] = await Promise.all([site.open(), site.open()]);
    expect(await ada.readText("a.md")).toBe("wolf");
    await bob.write("b.md", "wolf");
    await ada.settled();
    for (const files of [ada, bob]) expect(await found(files, "wolf")).toEqual(["a.md", "b.md"]);
    expect(readdirSync(`${site.state}/aside`)).toEqual([expect.stringMatching(/^index\.json\./)]);
  });

  it("an outcome with a flipped bit costs no search", async () => {
    const root = makeScratch();
    const writer = await openFiles(root);
    await writer.write("a.md", "wolf");
    await writer.write("b.md", "wolf");
    await writer.settled();
    await writer.close();
    flip(join(root, ".holdfast/files/documents/outcomes/0000000000/0000000001"));
    const files = await open(root);
    await files.settled();
    expect(await found(files, "wolf")).toEqual(["a.md", "b.md"]);
  });
});

describe("a damaged change record", () => {
  /** A tree with three changes, of which number `damaged` cannot be read. */
  async function damagedTree(damaged: number): Promise<IndexedSite> {
    const site = await indexedOn(makeRealSite);
    const writer = await site.open();
    for (const name of ["a", "b", "c"]) await writer.write(`${name}.md`, `wolf ${name}`);
    await writer.settled();
    await writer.close();
    flip(`${site.state}/changes/0000000000/000000000${damaged}`);
    return site;
  }

  async function follow(files: FileTree, last: number): Promise<{ number: number; path: string; damaged?: string }[]> {
    const told: { number: number; path: string; damaged?: string }[] = [];
    for await (const change of files.changes({ after: 0 })) {
      told.push(change);
      if (change.number === last) break;
    }
    return told;
  }

  it.each([1, 2, 3])(
    "number %i of three costs that change alone: the others are followed and worked on",
    async (damaged) => {
      const site = await damagedTree(damaged);
      const files = await site.open();
      const told = await follow(files, 3);
      expect(told.map(({ number }) => number)).toEqual([1, 2, 3]);
      for (const { number, path, damaged: why } of told)
        expect([path, why !== undefined]).toEqual(number === damaged ? ["", true] : [`${"abc"[number - 1]}.md`, false]);
      await files.write("d.md", "wolf d");
      await files.settled();
      expect(await found(files, "wolf")).toEqual(["a.md", "b.md", "c.md", "d.md"]);
      const { ok, problems } = await files.verify();
      expect(ok).toBe(false);
      expect(problems).toMatchObject([
        { severity: "damage", path: expect.stringMatching(new RegExp(`000000000${damaged}$`)), repaired: false },
      ]);
    },
  );

  it("is set aside by a repair, and a change of the whole tree stands in its place", async () => {
    const site = await damagedTree(3);
    const files = await site.open({ work: false });
    expect(await files.verify({ repair: true })).toMatchObject({ ok: true, problems: [{ repaired: true }] });
    await files.close();
    const again = await site.open();
    expect(await again.verify()).toMatchObject({ ok: true, problems: [] });
    expect((await follow(again, 3)).at(-1)).toMatchObject({ number: 3, path: "", damaged: expect.any(String) });
    await again.write("d.md", "wolf d");
    await again.settled();
    expect(await found(again, "wolf")).toHaveLength(4);
    expect(readdirSync(`${site.state}/aside`)).toEqual([expect.stringMatching(/^0000000003\./)]);
  });

  it("of a session is reported by verify, with its place", async () => {
    const site = await indexedOn(makeRealSite);
    const files = await site.open();
    const session = await files.session("monday");
    await session.append({ role: "user", content: "one" });
    await session.append({ role: "user", content: "two" });
    expect(await files.verify()).toMatchObject({ ok: true });
    flip(`${site.state}/sessions/monday/messages/0000000001`);
    expect(await files.verify()).toMatchObject({
      ok: false,
      problems: [{ severity: "damage", path: expect.stringContaining("sessions/monday/messages") }],
    });
  });
});

it("a process that was killed is forgotten among those that can do the work", async () => {
  const site = await indexedOn(makeRealSite);
  mkdirSync(`${site.state}/able`, { recursive: true });
  writeFileSync(`${site.state}/able/gone.sessions.extract`, "");
  writeFileSync(`${site.state}/able/gone.embed`, "");
  const files = await site.open({ embed: async () => [1] });
  await files.write("a.md", "wolf");
  await files.settled();
  const names = readdirSync(`${site.state}/able`);
  expect(names.filter((name) => name.startsWith("gone"))).toEqual([]);
  expect(names).toContainEqual(expect.stringMatching(/\.embed$/));
});

it("the numbers of a tree tell its backlog, and the files whose indexing was given up until they change", async () => {
  const site = await indexedOn(makeRealSite);
  let isMended = false;
  const extract = async (path: string): Promise<string> => {
    if (path === "bad.md" && !isMended) throw new Error("no such format");
    return "wolf";
  };
  const writer = await site.open({ work: false, extract });
  await writer.write("bad.md", "bad");
  await writer.write("good.md", "good");
  expect(await writer.stats()).toMatchObject({ files: 2, changes: 2, backlog: 2, givenUp: [] });
  const worker = await site.open({ extract });
  await worker.settled();
  expect(await writer.stats()).toMatchObject({
    backlog: 0,
    givenUp: [{ task: "index", path: "bad.md", reason: expect.stringContaining("no such format") }],
  });
  isMended = true;
  await writer.write("bad.md", "mended");
  await worker.settled();
  expect(await writer.stats()).toMatchObject({ backlog: 0, givenUp: [] });
});
