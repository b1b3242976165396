// The folder of a demo: which ones it refuses, and what it removes of a temporary one.
import { chmodSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { TemporaryFolder } from "../../src/cli/demo/temporary-folder.ts";
import { encodeRecord } from "../../src/format/record.ts";
import { asOrdinaryUser, makeScratch } from "../sites/scratch.ts";
import { holdfast, HoldfastProcess } from "./holdfast-process.ts";

const short = ["--workstations", "1", "--seconds", "1"];

test("where the store lock is in a table, as between machines, nothing is lost either, and a workstation can join by hand", async () => {
  const directory = join(makeScratch(), "shop");
  mkdirSync(join(directory, "tickets"), { recursive: true });
  // What the first process on a network mount records there.
  const gate = { kind: "gate", decode: (body: unknown) => body };
  writeFileSync(join(directory, "tickets", "gate.json"), encodeRecord<unknown>(gate, { id: "someone", gate: "table" }));
  const byHand = new HoldfastProcess(["demo", "--join", "--dir", directory]);
  const sold: string[] = [];
  while (sold.length < 3) sold.push(await byHand.hear());
  expect(sold[0]).toMatch(/: ticket \d+$/);
  expect(sold[1]).toMatch(/: (a|10 ×) \w+/);
  expect(sold[2]).toMatch(/: a lock on .* with fence \d+$/);
  // That one is at work, and has things locked, is not taken for disorder.
  const whole = await holdfast(["demo", "--workstations", "2", "--seconds", "3", "--dir", directory, "--json"]);
  expect(whole).toMatchObject({ exitCode: 0, stderr: "" });
  byHand.kill("SIGINT");
  const { stdout, signal } = await byHand.ended;
  expect(signal).toBe("SIGINT");
  // The audit of the first demo was over before the last piece by hand.
  const later = await holdfast(["demo", ...short, "--dir", directory, "--json"]);
  expect(later).toMatchObject({ exitCode: 0, stderr: "" });
  const acknowledged =
    sumOf("acknowledged", whole) + stdout.trimEnd().split("\n").length + sumOf("acknowledged", later);
  expect(sumOf("found", later)).toBeGreaterThanOrEqual(acknowledged);
});

function sumOf(what: "found" | "acknowledged", { stdout }: { readonly stdout: string }): number {
  const { stations } = JSON.parse(stdout) as { readonly stations: readonly Record<string, number>[] };
  return stations.reduce((total, station) => total + (station[what] ?? 0), 0);
}

test("links in a temporary folder go with it, and what they lead to stays", async () => {
  const root = makeScratch();
  const [temp, stranger] = [join(root, "temp"), join(root, "stranger")];
  for (const directory of [temp, stranger]) mkdirSync(directory);
  writeFileSync(join(stranger, "book"), "not yours");
  const run = new HoldfastProcess(["demo", ...short], { env: { TMPDIR: temp } });
  const folder = await vi.waitFor(() => join(temp, readdirSync(temp)[0] ?? expect.fail("not made yet")), 30_000);
  symlinkSync(stranger, join(folder, "link"));
  symlinkSync(join(root, "nowhere"), join(folder, "dangling"));
  const { exitCode, stdout, stderr } = await run.ended;
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  expect(stdout).toContain("Nothing was lost and nothing was doubled");
  expect(readdirSync(temp)).toEqual([]);
  expect(readdirSync(stranger)).toEqual(["book"]);
});

test("a temporary folder that cannot be removed is left, which is an answer and no failure", async () => {
  const temp = makeScratch();
  chmodSync(temp, 0o777);
  vi.stubEnv("TMPDIR", temp);
  try {
    await asOrdinaryUser(async () => {
      const folder = await TemporaryFolder.make();
      const closed = join(folder.directory, "closed");
      mkdirSync(closed);
      writeFileSync(join(closed, "file"), "");
      chmodSync(closed, 0o555);
      expect(await folder.remove()).toBe(false);
      chmodSync(closed, 0o755);
      expect(await folder.remove()).toBe(true);
    });
  } finally {
    vi.unstubAllEnvs();
  }
  expect(readdirSync(temp)).toEqual([]);
});

test.each([[[]], [["--join"]]])("a folder without a name is refused, with %j", async (flags) => {
  const cwd = makeScratch();
  const { exitCode, stderr, stdout } = await holdfast(["demo", "--dir", "", ...short, ...flags, "--json"], { cwd });
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
  expect(JSON.parse(stderr)).toMatchObject({ error: { code: "INVALID_PATH", path: "" } });
  expect(readdirSync(cwd)).toEqual([]);
});

test.each(["missing", "file"])(
  "a place for temporary files that is none is refused, and not made: %s",
  async (what) => {
    const root = makeScratch();
    const place = join(root, what);
    if (what === "file") writeFileSync(place, "");
    const path = join(place, "below");
    const { exitCode, stderr } = await holdfast(["demo", ...short, "--json"], { env: { TMPDIR: path } });
    expect(exitCode).toBe(what === "missing" ? 66 : 2);
    expect(JSON.parse(stderr)).toMatchObject({
      error: { code: "INVALID_PATH", path, message: expect.stringContaining("TMPDIR") as string },
    });
    expect(existsSync(path)).toBe(false);
    expect(readdirSync(root)).toEqual(what === "file" ? ["file"] : []);
  },
);
