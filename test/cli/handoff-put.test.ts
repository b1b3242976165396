// `holdfast publish` and `holdfast handoff put|adopt|export`: what a script can rely on.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { openHandoff } from "../../src/handoff/index.ts";
import { openStore } from "../../src/index.ts";
import { drain } from "../handoff/publish/opened-box.ts";
import { makeScratch } from "../sites/scratch.ts";
import { until } from "../waiting.ts";

interface Finished {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(
  args: readonly string[],
  { input = "", signal = new AbortController().signal } = {},
): Promise<Finished> {
  const written = { stdout: "", stderr: "" };
  async function* stdin(): AsyncGenerator<string> {
    if (input !== "") yield input;
  }
  const pipes = {
    stdin: stdin(),
    stdout: { write: (text: string) => (written.stdout += text) },
    stderr: { write: (text: string) => (written.stderr += text) },
  };
  return { exitCode: await runCommandLine(args, pipes, signal), ...written };
}

const jsonOf = (text: string): Record<string, unknown> => JSON.parse(text) as Record<string, unknown>;

describe("publish", () => {
  test("stdin becomes a whole file with its done file, and is not put in the place of another", async () => {
    const folder = makeScratch();
    const path = join(folder, "a.csv");
    const { exitCode, stdout } = await run(["publish", path, "--done", "--records", "1", "--json"], { input: "1;2\n" });
    expect(exitCode).toBe(0);
    expect(jsonOf(stdout)).toMatchObject({ name: "a.csv", size: 4, records: 1 });
    expect(readdirSync(folder).sort()).toEqual(["a.csv", "a.csv.done"]);
    expect(jsonOf(readFileSync(`${path}.done`, "utf8"))).toMatchObject({ files: [jsonOf(stdout)] });
    const again = await run(["publish", path], { input: "2" });
    expect(again).toMatchObject({ exitCode: 1, stdout: "" });
    expect(again.stderr).toContain("already exists");
    expect(await run(["publish", path, "--replace"], { input: "2" })).toMatchObject({ exitCode: 0 });
    expect(readFileSync(path, "utf8")).toBe("2");
    expect(await run(["publish", path, "--content", "empty"])).toMatchObject({ exitCode: 2 });
    expect(await run(["publish", join(folder, "b"), "--done", "{name}"])).not.toMatchObject({ exitCode: 0 });
    expect(existsSync(join(folder, "b"))).toBe(false);
  });
});

describe("put", () => {
  test("files become one ticket, and a key that was published before tells the first id", async () => {
    const folder = makeScratch();
    writeFileSync(join(folder, "a.csv"), "1");
    writeFileSync(join(folder, "b.csv"), "2");
    const directory = join(folder, "box");
    const args = ["handoff", "put", directory, join(folder, "a.csv"), join(folder, "b.csv"), "--key", "k", "--json"];
    const first = await run([...args, "--records", "a.csv=1", "--meta", '{"n":1}', "--priority", "0"]);
    expect(first.exitCode).toBe(0);
    const second = await run(args);
    expect(jsonOf(second.stdout)).toEqual({ ...jsonOf(first.stdout), duplicate: true });
    await using box = await openHandoff(directory);
    const delivery = await box.take();
    expect(delivery).toMatchObject({ priority: 0, meta: { n: 1 }, key: "k" });
    expect(delivery?.files).toMatchObject([{ name: "a.csv", records: 1 }, { name: "b.csv" }]);
    expect(await delivery?.text("b.csv")).toBe("2");
    await delivery?.ack();
  });

  test("stdin becomes a file of a ticket in a box of a store", async () => {
    const directory = makeScratch();
    await using store = await openStore(directory);
    const put = ["handoff", "put", directory, "--box", "invoices", "--name", "a.txt"];
    expect(await run(put, { input: "hello" })).toMatchObject({ exitCode: 0 });
    const box = await store.handoff("invoices");
    expect(await drain(box)).toMatchObject([{ files: { "a.txt": "hello" } }]);
  });

  test("wrong usage and files that are not there have exit codes of their own, and make no ticket", async () => {
    const folder = makeScratch();
    const directory = join(folder, "box");
    mkdirSync(join(folder, "other"));
    for (const path of ["a.csv", "other/a.csv"]) writeFileSync(join(folder, path), "1");
    const a = join(folder, "a.csv");
    for (const args of [
      [],
      [a, "--name", "x"],
      [a, join(folder, "other/a.csv")],
      [a, "--records", "b=1"],
      [a, "--priority", "10"],
      [a, "--delay", "5"],
      [a, "--keys", "k"],
      [a, "--key", ""],
      [a, "--key", "k".repeat(1_025)],
      [a, "--group", ""],
    ])
      expect(await run(["handoff", "put", directory, ...args]), `with ${args.join(" ")}`).toMatchObject({
        exitCode: 2,
      });
    expect(existsSync(directory)).toBe(false);
    expect(await run(["handoff", "put", directory, join(folder, "none")])).toMatchObject({ exitCode: 3 });
    expect(await run(["handoff", "put", directory, folder])).toMatchObject({ exitCode: 3 });
    expect(await run(["handoff", "put", directory, "--name", "con"], { input: "x" })).toMatchObject({ exitCode: 2 });
    await using box = await openHandoff(directory);
    expect(await drain(box)).toEqual([]);
  });
});

test("an empty key, group or reason, as from an unset variable of a shell, is wrong usage", async () => {
  const folder = makeScratch();
  const directory = join(folder, "box");
  await using _ = await openHandoff(directory);
  for (const args of [
    ["handoff", "ls", directory, "--group", ""],
    ["handoff", "adopt", directory, folder, "--renamed", "--group", ""],
    ["handoff", "pause", directory, "--reason", "r".repeat(1_025)],
    ["publish", join(folder, "p"), "--key", ""],
  ]) {
    const { exitCode, stderr } = await run(args, { input: "x" });
    expect({ args, exitCode }).toEqual({ args, exitCode: 2 });
    expect(stderr).toContain("Write a text of 1 to 1024 characters.");
  }
  expect(existsSync(join(folder, "p"))).toBe(false);
});

describe("adopt and export", () => {
  test("a pass makes tickets of what is complete, and one rule must be given", async () => {
    const folder = makeScratch();
    const directory = join(folder, "box");
    const inbox = join(folder, "in");
    mkdirSync(inbox);
    for (const name of ["a.csv", "a.csv.done", "b.csv"]) writeFileSync(join(inbox, name), name);
    const adopt = ["handoff", "adopt", directory, inbox];
    for (const args of [
      [],
      ["--done", "x", "--renamed"],
      ["--done", "{name}.done", "--ignore", "*"],
      ["--renamed", "--every", "1s"],
    ])
      expect(await run([...adopt, ...args]), `with ${args.join(" ")}`).toMatchObject({ exitCode: 2 });
    const passed = await run([...adopt, "--done", "{name}.done", "--json"]);
    expect(passed).toMatchObject({ exitCode: 0, stdout: '{"tickets":1}\n' });
    expect(readdirSync(inbox)).toEqual(["b.csv"]);
    expect(await run(["handoff", "adopt", directory, join(folder, "none"), "--renamed"])).toMatchObject({
      exitCode: 66,
    });
  });

  test("a chain of adopt --watch and export hands files from folder to folder until it is stopped", async () => {
    const folder = makeScratch();
    const directory = join(folder, "box");
    const [inbox, outbox] = [join(folder, "in"), join(folder, "out")];
    for (const each of [inbox, outbox]) mkdirSync(each);
    expect(await run(["handoff", "export", directory, outbox])).toMatchObject({ exitCode: 66 });
    const stop = new AbortController();
    writeFileSync(join(inbox, "a.csv"), "1");
    await (await openHandoff(directory)).close();
    const running = [
      run(["handoff", "adopt", directory, inbox, "--renamed", "--watch", "--every", "50ms"], { signal: stop.signal }),
      run(["handoff", "export", directory, outbox, "--done", "{base}.ok", "--content", "empty"], {
        signal: stop.signal,
      }),
    ];
    await until(() => existsSync(join(outbox, "a.ok")));
    expect(readFileSync(join(outbox, "a.csv"), "utf8")).toBe("1");
    writeFileSync(join(inbox, "b.csv"), "2");
    await until(() => existsSync(join(outbox, "b.ok")));
    stop.abort(new Error("stopped"));
    expect((await Promise.all(running)).map(({ exitCode }) => exitCode)).toEqual([0, 0]);
    expect(readdirSync(inbox)).toEqual([]);
  });

  test("export --once hands over what is there, says how many, and tells of what can never be handed over", async () => {
    const folder = makeScratch();
    const directory = join(folder, "box");
    const outbox = join(folder, "out");
    mkdirSync(outbox);
    await using box = await openHandoff(directory);
    const once = ["handoff", "export", directory, outbox, "--once"];
    expect(await run(once)).toMatchObject({ exitCode: 0, stdout: "0 ticket(s)\n" });
    await box.publish({ "a.csv": "1" });
    const { id } = await box.publish({ "b.csv": "2", "b.csv.done": "3" });
    const exported = await run([...once, "--json"]);
    expect(exported).toMatchObject({ exitCode: 0, stdout: '{"tickets":1}\n' });
    expect(exported.stderr).toContain(`ticket ${id} went to the dead letters`);
    expect(readdirSync(outbox)).toEqual(["a.csv", "a.csv.done"]);
  });
});
