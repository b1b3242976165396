// `holdfast objects` and what of `holdfast verify|stats|collect` concerns objects: exit codes, bytes
// and lines that a script can rely on.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { openStore } from "../../src/index.ts";
import { openObjects } from "../../src/objects/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { HoldfastProcess, main } from "./holdfast-process.ts";

interface Finished {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface RunOptions {
  readonly input?: string | undefined;
  /** Whether a person watches stderr. */
  readonly isTTY?: boolean | undefined;
}

/** In this process: quick, and with a coverage that shows. */
async function run(args: readonly string[], { input = "", isTTY }: RunOptions = {}): Promise<Finished> {
  const written = { stdout: "", stderr: "" };
  async function* stdin(): AsyncGenerator<string> {
    if (input !== "") yield input;
  }
  const write = (name: "stdout" | "stderr") => (text: string | Uint8Array) => {
    written[name] += Buffer.from(text).toString();
  };
  const pipes = { stdin: stdin(), stdout: { write: write("stdout") }, stderr: { write: write("stderr"), isTTY } };
  const exitCode = await runCommandLine(args, pipes, new AbortController().signal);
  return { exitCode, ...written };
}

const patience = { timeout: 20_000, interval: 20 };
const linesOf = (text: string): string[] => text.split("\n").filter((line) => line !== "");
const jsonOf = (text: string): Record<string, unknown> => JSON.parse(text) as Record<string, unknown>;

/** A verb on a bucket of an object store. */
type Verb = (verb: string, ...args: string[]) => Promise<Finished>;

async function newBucket(...flags: string[]): Promise<{ readonly directory: string; readonly on: Verb }> {
  const directory = join(makeScratch(), "objects");
  const on: Verb = (verb, ...args) => run(["objects", verb, directory, ...args, "--bucket", "photos"]);
  expect(await on("mb", ...flags)).toMatchObject({ exitCode: 0, stdout: "photos\n" });
  return { directory, on };
}

describe("put and get", () => {
  test("every put of a key is a version that is got back byte for byte, by its id or as the current one", async () => {
    const { directory, on } = await newBucket("--versioning");
    const bucket = ["--bucket", "photos"];
    const ids: string[] = [];
    for (const input of ["one", "two"]) {
      const { stdout, exitCode } = await run(["objects", "put", directory, "cats/tom", "-", ...bucket], { input });
      expect(exitCode).toBe(0);
      ids.push(stdout.trimEnd());
    }
    expect(await on("get", "cats/tom")).toMatchObject({ exitCode: 0, stdout: "two" });
    expect(await on("get", "cats/tom", "--version-id", ids[0] ?? "")).toMatchObject({ stdout: "one" });
    expect(await on("get", "cats/tom", "--range", "1-")).toMatchObject({ stdout: "wo" });
    expect(await on("get", "cats/tom", "--range", "-1")).toMatchObject({ stdout: "o" });
    expect(await on("get", "cats/tom", "--range", "x")).toMatchObject({ exitCode: 2 });
    expect(await on("get", "dogs")).toMatchObject({ exitCode: 3, stdout: "" });
  });

  test("a file goes in and comes out, with what is said about it", async () => {
    const { on } = await newBucket();
    const folder = makeScratch();
    const [from, to] = [join(folder, "from"), join(folder, "to")];
    writeFileSync(from, "x".repeat(200_000));
    const facts = ["--type", "text/plain", "--meta", "by=me", "--tag", "a=1", "--tag", "b=2=3"];
    const put = await on("put", "cat", from, ...facts, "--json");
    expect(jsonOf(put.stdout)).toMatchObject({
      bucket: "photos",
      key: "cat",
      size: 200_000,
      contentType: "text/plain",
      metadata: { by: "me" },
    });
    expect(await on("get", "cat", to)).toMatchObject({ exitCode: 0, stdout: "null\n" });
    expect(readFileSync(to)).toEqual(readFileSync(from));
    expect(await on("put", "cat", join(folder, "none"))).toMatchObject({ exitCode: 3 });
    expect(await on("put", "cat", from, "--meta", "none")).toMatchObject({ exitCode: 2 });
  });

  test("a condition decides: of two puts that want no object before them, the second ends with 1", async () => {
    const { on } = await newBucket("--versioning");
    const folder = makeScratch();
    const file = join(folder, "file");
    writeFileSync(file, "one");
    const first = jsonOf((await on("put", "cat", file, "--if-absent", "--json")).stdout);
    expect(await on("put", "cat", file, "--if-absent")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("PRECONDITION_FAILED") as string,
    });
    expect(await on("put", "cat", file, "--if-version", String(first.versionId))).toMatchObject({ exitCode: 0 });
    expect(await on("put", "cat", file, "--if-version", String(first.versionId))).toMatchObject({ exitCode: 1 });
    expect(await on("put", "cat", file, "--if-match", String(first.etag))).toMatchObject({ exitCode: 0 });
  });

  test("a person at a terminal sees how far it is, and a program sees nothing of it", async () => {
    const { directory } = await newBucket();
    const file = join(makeScratch(), "file");
    writeFileSync(file, "x".repeat(3_000_000));
    const put = ["objects", "put", directory, "cat", file, "--bucket", "photos"];
    expect((await run(put, { isTTY: true })).stderr).toContain("stored bytes: 100 % (3000000 of 3000000)");
    expect((await run(put)).stderr).toBe("");
    const get = ["objects", "get", directory, "cat", file, "--bucket", "photos"];
    expect((await run(get, { isTTY: true })).stderr).toContain("read bytes: 100 %");
    const piped = ["objects", "put", directory, "cat", "-", "--bucket", "photos"];
    expect((await run(piped, { isTTY: true, input: "four" })).stderr).toContain("stored bytes: 4");
  });

  test("a reader that has gone ends a get quietly, and a damaged object ends it with 5", async () => {
    const { directory, on } = await newBucket();
    const file = join(makeScratch(), "file");
    writeFileSync(file, "x".repeat(3_000_000));
    await on("put", "cat", file);
    const get = `"$0" "$1" objects get "$2" cat --bucket photos | head -c 3; echo " \${PIPESTATUS[0]}"`;
    expect(execFileSync("bash", ["-c", get, process.execPath, main, directory], { encoding: "utf8" })).toBe("xxx 0\n");
    const body = execFileSync("find", [directory, "-path", "*bodies*", "-type", "f"], { encoding: "utf8" }).trim();
    writeFileSync(body, "y".repeat(3_000_000));
    const { exitCode, stderr } = await on("get", "cat", "--json");
    expect(exitCode).toBe(5);
    expect(jsonOf(stderr)).toMatchObject({ error: { code: "CORRUPT", path: body } });
  });
});

describe("buckets", () => {
  test("one is made once, listed with whether it keeps versions, and removed when it is empty", async () => {
    const { directory, on } = await newBucket();
    expect(await on("mb")).toMatchObject({ exitCode: 1 });
    expect(linesOf((await run(["objects", "ls", directory])).stdout)).toEqual([
      expect.stringMatching(/^\S+Z {2}off {8}photos$/),
    ]);
    await on("versions", "--enable");
    expect(jsonOf((await run(["objects", "ls", directory, "--json"])).stdout)).toMatchObject({ versioning: "enabled" });
    await run(["objects", "put", directory, "cat", "-", "--bucket", "photos"], { input: "one" });
    await on("rm", "cat");
    expect(await on("rb")).toMatchObject({ exitCode: 1 });
    expect(await on("rm", "--recursive", "--all-versions")).toMatchObject({ exitCode: 0, stdout: "2\n" });
    expect(await on("rb")).toMatchObject({ exitCode: 0 });
    expect(await on("get", "cat")).toMatchObject({
      exitCode: 66,
      stderr: expect.stringContaining("Create it with `holdfast objects mb`") as string,
    });
  });

  test("where there is no object store every verb ends with 66 and makes none, and mb makes one in a store", async () => {
    const directory = join(makeScratch(), "shop");
    await (await openStore(directory)).close();
    for (const args of [["ls"], ["get", "cat"], ["mb", "--no-create"], ["rb"]]) {
      const [verb = "", ...rest] = args;
      expect(await run(["objects", verb, directory, ...rest])).toMatchObject({ exitCode: 66, stdout: "" });
    }
    expect(existsSync(join(directory, "objects", "objects.json"))).toBe(false);
    expect(await run(["objects", "mb", directory])).toMatchObject({ exitCode: 0, stdout: "main\n" });
    await using store = await openStore(directory);
    expect(await (await store.objects()).listBuckets()).toMatchObject([{ name: "main" }]);
  });
});

describe("ls, versions, rm and cp", () => {
  test("a level is listed by its prefixes, all of it with -r, and every version with its state", async () => {
    const { directory, on } = await newBucket("--versioning");
    await using objects = await openObjects(join(directory, "objects"));
    const bucket = await objects.bucket("photos");
    for (const key of ["a", "cats/tim", "cats/tom", "cats/tom"]) await bucket.put(key, key);
    expect(linesOf((await on("ls")).stdout)).toEqual([
      expect.stringMatching(/^ +cats\/$/),
      expect.stringMatching(/^\S+Z +1 {2}a$/),
    ]);
    expect(linesOf((await on("ls", "cats/")).stdout)).toHaveLength(2);
    const all = linesOf((await on("ls", "-r", "--json")).stdout).map(jsonOf);
    expect(all).toMatchObject([{ key: "a" }, { key: "cats/tim" }, { key: "cats/tom", isLatest: true }]);
    expect(await run(["objects", "ls", directory, "cats/"])).toMatchObject({ exitCode: 2 });
    await on("rm", "cats/tom");
    const states = linesOf((await on("versions", "cats/tom")).stdout).map((line) => line.split(/ +/)[3]);
    expect(states).toEqual(["deleted", "old", "old"]);
    expect(linesOf((await on("versions")).stdout)).toHaveLength(5);
    expect(linesOf((await on("versions", "--prefix", "cats/ti")).stdout)).toHaveLength(1);
    expect(await on("versions", "a", "--prefix", "b")).toMatchObject({ exitCode: 2 });
  });

  test("a version that is removed by its id is gone, and one that is copied onto its key is current again", async () => {
    const { directory, on } = await newBucket("--versioning");
    await using objects = await openObjects(join(directory, "objects"));
    const bucket = await objects.bucket("photos");
    const [one, two] = [await bucket.put("cat", "one"), await bucket.put("cat", "two")];
    expect(await on("cp", "cat", "cat", "--version-id", one.versionId)).toMatchObject({ exitCode: 0 });
    expect(await on("get", "cat")).toMatchObject({ stdout: "one" });
    expect(await on("rm", "cat", "--version-id", two.versionId)).toMatchObject({ exitCode: 0, stdout: "1\n" });
    expect(await on("get", "cat", "--version-id", two.versionId)).toMatchObject({ exitCode: 3 });
    expect(await on("rm", "cat", "--if-match", two.etag)).toMatchObject({ exitCode: 1 });
    expect(await on("rm")).toMatchObject({ exitCode: 2 });
    await objects.createBucket("copies");
    expect(await on("cp", "cat", "dog", "--to-bucket", "copies")).toMatchObject({ exitCode: 0 });
    expect(await run(["objects", "get", directory, "dog", "--bucket", "copies"])).toMatchObject({ stdout: "one" });
  });
});

describe("what is not there, or not what it is taken for", () => {
  test("a deletion of an object that never was says so, and adds nothing", async () => {
    const { directory, on } = await newBucket("--versioning");
    const never = await on("rm", "never");
    expect(never).toMatchObject({ exitCode: 0, stdout: "0\n" });
    expect(never.stderr).toMatch(/there is no object never/);
    expect(await on("versions")).toMatchObject({ stdout: "" });
    await using objects = await openObjects(join(directory, "objects"));
    const { versionId } = await (await objects.bucket("photos")).put("cat", "x");
    expect((await on("rm", "cat", "--version-id", "null")).stderr).toMatch(/there is no version null/);
    expect(await on("rm", "cat")).toMatchObject({ exitCode: 0, stdout: "1\n", stderr: "" });
    expect(await on("rm", "cat")).toMatchObject({ stdout: "0\n" });
    const [marker] = linesOf((await on("versions", "--json")).stdout).map((line) => String(jsonOf(line).versionId));
    expect(marker).not.toBe(versionId);
    expect(await on("rm", "cat", "--version-id", marker!)).toMatchObject({ exitCode: 0, stdout: "1\n", stderr: "" });
    expect(await on("get", "cat")).toMatchObject({ stdout: "x" });
  });

  test("a condition on an object that is not there fails like a lost race", async () => {
    const { on } = await newBucket();
    expect(await on("put", "cat", "-", "--if-match", "x")).toMatchObject({ exitCode: 1 });
    expect(await on("rm", "cat", "--if-match", "x")).toMatchObject({ exitCode: 1 });
  });

  test("the help names the default bucket, and that of a verb that there is not is wrong usage", async () => {
    expect((await run(["objects", "put", "--help"])).stdout).toMatch(/default: main/);
    expect(await run(["objects", "--help"])).toMatchObject({ exitCode: 0 });
    expect(await run(["objects", "help", "put"])).toMatchObject({ exitCode: 0 });
    for (const words of [["objects", "nonsense"], ["events", "nonsense"], ["nonsense"]]) {
      const { exitCode, stderr } = await run([...words, "--help"]);
      expect(exitCode).toBe(2);
      expect(stderr).toMatch(/unknown command 'nonsense'/);
    }
  });

  test("a directory that is given as a file is told to be one", async () => {
    const { directory, on } = await newBucket();
    const { exitCode, stderr } = await on("put", "cat", directory);
    expect(exitCode).toBe(3);
    expect(stderr).toMatch(/is a directory/);
  });
});

describe("import", () => {
  // Other systems refuse such a name.
  test.runIf(process.platform === "linux")(
    "lists what has a name that is not UTF-8, instead of leaving it out in silence",
    async () => {
      const { on } = await newBucket();
      const folder = makeScratch();
      const named = (bytes: string): Buffer => Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(bytes, "latin1")]);
      writeFileSync(named("M\u00fcnchen"), "x");
      mkdirSync(named("d\u00ffr"));
      writeFileSync(join(folder, "good"), "x");
      writeFileSync(join(folder, "M\ufffdnchen"), "of that very name");
      const { stdout, stderr } = await on("import", folder, "--json");
      expect(jsonOf(stdout)).toMatchObject({ files: 2, skipped: [expect.any(String), expect.any(String)] });
      expect(linesOf(stderr)).toHaveLength(2);
    },
  );

  test("takes the files of a folder in under their paths, and a second run only what has changed", async () => {
    const { on } = await newBucket("--versioning");
    const folder = makeScratch();
    mkdirSync(join(folder, "cats", "old"), { recursive: true });
    for (const path of ["note", "cats/tom", "cats/old/tim"]) writeFileSync(join(folder, path), path);
    symlinkSync(join(folder, "note"), join(folder, "link"));
    const first = await on("import", folder, "--prefix", "2026/", "--json");
    expect(jsonOf(first.stdout)).toMatchObject({ files: 3, bytes: 24, unchanged: 0, skipped: [join(folder, "link")] });
    expect(first.stderr).toContain("link");
    expect(await on("get", "2026/cats/old/tim")).toMatchObject({ stdout: "cats/old/tim" });
    writeFileSync(join(folder, "note"), "NOTE");
    expect(await on("import", folder, "--prefix", "2026/")).toMatchObject({
      exitCode: 0,
      stdout: "1 object(s) put, 4 bytes; 2 unchanged.\n",
    });
    expect(linesOf((await on("versions", "2026/note")).stdout)).toHaveLength(2);
    expect(linesOf((await on("versions", "2026/cats/tom")).stdout)).toHaveLength(1);
  });

  test("refuses a folder that is not there, and the object store itself", async () => {
    const { directory, on } = await newBucket();
    for (const folder of [join(directory, "none"), directory, join(directory, ".."), join(directory, "buckets")])
      expect(await on("import", folder)).toMatchObject({ exitCode: 2, stdout: "" });
  });
});

test("verify, stats and collect of a store see its objects", async () => {
  const directory = join(makeScratch(), "shop");
  {
    await using store = await openStore(directory);
    const bucket = await (await store.objects()).createBucket("photos", { versioning: "enabled" });
    await bucket.put("cat", "one");
    await bucket.put("cat", "three");
  }
  const objects = join(directory, "objects");
  expect((await run(["stats", directory])).stdout).toBe(`${objects}: objects, buckets 1, objects 1, bytes 5\n`);
  expect((await run(["verify", objects])).stdout).toBe(`${objects}\nok: 2 entries checked.\n`);
  expect((await run(["collect", directory])).stdout).toContain(`${objects}: objects, objects 0, bytes 0`);
  writeFileSync(join(objects, "objects.json"), "garbage");
  expect(await run(["verify", directory])).toMatchObject({
    exitCode: 5,
    stdout: expect.stringContaining("The record of this object store cannot be read") as string,
  });
});

test("beside damage the command line goes on, names it, and says ok only when nothing is damaged", async () => {
  const { directory, on } = await newBucket("--versioning");
  for (const [key, input] of [
    ["cat", "one"],
    ["cat", "two!"],
    ["dog", "three"],
  ] as const)
    expect((await run(["objects", "put", directory, key, "-", "--bucket", "photos"], { input })).exitCode).toBe(0);
  expect((await run(["objects", "mb", directory, "--bucket", "broken"])).exitCode).toBe(0);
  const flip = (path: string): void => {
    const bytes = readFileSync(path);
    const at = bytes.lastIndexOf('"crc"');
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(path, bytes);
  };
  const find = (...args: string[]): string[] =>
    linesOf(execFileSync("find", [directory, "-type", "f", ...args], { encoding: "utf8" })).sort();
  flip(find("-path", "*cat~*").at(-1) ?? "");
  expect(await on("ls")).toMatchObject({
    exitCode: 5,
    stdout: expect.stringMatching(/dog\n.*damaged {2}cat\n/) as string,
  });
  expect(await on("versions")).toMatchObject({
    exitCode: 5,
    stdout: expect.stringMatching(/old.*cat\n.*dog\n/) as string,
  });
  expect(await run(["stats", directory])).toMatchObject({
    exitCode: 0,
    stdout: `${join(directory, "objects")}: objects, buckets 2, objects 1, bytes 5, damaged 1\n`,
  });
  expect(await run(["verify", directory])).toMatchObject({
    exitCode: 5,
    stdout: expect.stringContaining("damaged: 3 entries checked.") as string,
  });
  // Something was set aside: only the next verification is ok.
  expect(await run(["verify", directory, "--repair"])).toMatchObject({
    exitCode: 5,
    stdout: expect.stringContaining("repaired: 3 entries checked. Verify it again.") as string,
  });
  expect(await run(["verify", directory])).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/note .*aside[^]*ok: 4 entries checked\./) as string,
  });
  expect(await on("ls")).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/ 3 {2}cat\n.* 5 {2}dog\n/) as string,
  });
  flip(find("-path", "*broken/config/0*").filter((path) => !path.endsWith("open"))[0] ?? "");
  expect(await run(["objects", "ls", directory])).toMatchObject({
    exitCode: 5,
    stdout: expect.stringMatching(/damaged {4}broken\n.*enabled {4}photos\n/) as string,
  });
  expect(await run(["stats", directory])).toMatchObject({
    exitCode: 0,
    stdout: `${join(directory, "objects")}: objects, buckets 2, objects 2, bytes 8, damaged 1\n`,
  });
  for (const flags of [[], ["--repair"], []])
    expect(await run(["verify", directory, ...flags])).toMatchObject({
      exitCode: 5,
      stdout: expect.stringContaining("The configuration of the bucket broken cannot be read") as string,
    });
});

test("every verb has a help page with an example and its exit codes", async () => {
  for (const verb of ["mb", "rb", "ls", "put", "get", "rm", "versions", "cp", "import"]) {
    const { stdout, exitCode } = await run(["objects", verb, "--help"]);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(new RegExp(`Examples?:\\n {2}.*holdfast objects ${verb} /mnt/[^]*Exit codes:\\n`));
  }
});

test("a put from a pipe that is cut off by a signal leaves nothing", async () => {
  const { directory, on } = await newBucket("--versioning");
  const put = new HoldfastProcess(["objects", "put", directory, "cat", "-", "--bucket", "photos"]);
  const bodies = (): string =>
    execFileSync("find", [directory, "-path", "*bodies*", "-type", "f"], { encoding: "utf8" });
  put.tell("x".repeat(100_000));
  await vi.waitFor(() => expect(bodies()).not.toBe(""), patience);
  put.kill("SIGTERM");
  expect(await put.ended).toMatchObject({ signal: "SIGTERM", stdout: "" });
  expect(bodies()).toBe("");
  expect(await on("versions", "cat")).toMatchObject({ exitCode: 0, stdout: "" });
});
