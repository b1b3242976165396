// What docs/operations.md and examples/operations tell an operator to run works: the disaster drill, the units, and every
// command line with its options.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadWholeProgram } from "../../src/cli/program.ts";
import { makeScratch } from "../sites/scratch.ts";
import { main } from "./holdfast-process.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const examples = join(root, "examples/operations");

function holdfast(...args: readonly string[]): string {
  return execFileSync(process.execPath, [main, ...args], { encoding: "utf8", input: "probe" });
}

describe("the disaster drill", () => {
  const scratch = mkdtempSync(join(tmpdir(), "holdfast-test-"));
  const store = join(scratch, "shop");
  afterAll(() => rmSync(scratch, { recursive: true }));
  beforeAll(() => {
    holdfast("init", store);
    for (const type of ["Sold", "Paid", "Sent"]) holdfast("events", "append", store, "--log", "sales", "--type", type);
    holdfast("handoff", "put", store, "--box", "invoices", "--name", "R-7.xml", "--key", "R-7");
    holdfast("objects", "mb", store, "--bucket", "photos");
    holdfast("objects", "put", store, "lamp", "-", "--bucket", "photos");
    holdfast("files", "write", store, "notes/a.md");
  });

  function drill(copy: string): { status: number | null; stdout: string; stderr: string } {
    return spawnSync("sh", [join(examples, "drill.sh"), copy, store], {
      encoding: "utf8",
      env: { ...process.env, HOLDFAST: `${process.execPath} ${main}`, TMPDIR: makeScratch() },
    });
  }

  test("passes on a good copy, and changes neither the copy nor any content of the store", () => {
    const copy = join(makeScratch(), "copy");
    cpSync(store, copy, { recursive: true });
    // `stats` joins the ground of the store, as every process that opens it.
    const partsOf = (): unknown => contentsOf(store).filter(([name]) => !name.startsWith("ground"));
    const before = [contentsOf(copy), partsOf()];
    const { status, stdout, stderr } = drill(copy);
    expect({ status, stderr }).toMatchObject({ status: 0 });
    expect(stdout).toContain("== the drill has passed");
    expect([contentsOf(copy), partsOf()]).toEqual(before);
  });

  test("fails on a copy in which one byte of an event was changed", () => {
    const copy = join(makeScratch(), "copy");
    cpSync(store, copy, { recursive: true });
    const segments = join(copy, "events/sales/segments");
    const [name = ""] = readdirSync(segments);
    const bytes = readFileSync(join(segments, name));
    const at = bytes.indexOf("Paid");
    expect(at).toBeGreaterThan(0);
    bytes[at] = "M".charCodeAt(0);
    writeFileSync(join(segments, name), bytes);
    const { status, stdout, stderr } = drill(copy);
    expect(status).toBe(5);
    expect(stderr).toContain("the drill has FAILED with 5");
    expect(stdout).not.toContain("append an event");
  });
});

function contentsOf(directory: string): readonly (readonly [string, string])[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .sort()
    .map((name) => {
      const path = join(directory, name);
      return [name, statSync(path).isDirectory() ? "" : readFileSync(path, "latin1")];
    });
}

const hasSystemd = spawnSync("systemd-analyze", ["--version"]).status === 0;
const units = readdirSync(examples).filter((name) => /\.(?:service|timer)$/.test(name));

test.skipIf(!hasSystemd).each(units)("systemd accepts %s", (name) => {
  const { status, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", join(examples, name)], {
    encoding: "utf8",
  });
  // It also verifies the units of this machine on which they depend.
  expect(stderr.split("\n").filter((line) => line.includes("holdfast"))).toEqual([]);
  expect(status).toBe(0);
});

test("every command line of the guide and the examples names commands and options that exist", async () => {
  const program = await loadWholeProgram(process);
  const pages = [join(root, "docs/operations.md"), ...readdirSync(examples).map((name) => join(examples, name))];
  let checked = 0;
  for (const page of pages)
    for (const line of commandLinesIn(readFileSync(page, "utf8"))) {
      checked++;
      const { command, options } = parsed(program, line);
      const known = command
        .createHelp()
        .visibleOptions(command)
        .flatMap(({ short, long }) => [short, long]);
      expect(known, `${page}: ${line}`).toEqual(expect.arrayContaining(options));
      expect(command.commands, `${page}: ${line}`).toEqual([]);
    }
  expect(checked).toBeGreaterThanOrEqual(20);
});

/** Lines that run `holdfast`: in a unit, a script, a crontab, or a block of the guide. */
function commandLinesIn(text: string): string[] {
  return text
    .split("\n")
    .filter((line) => /(?:^|[ (="])holdfast [a-z]/.test(line) && !/^(?:\s*[#-] ?|[A-Z|].* .*\.$)/.test(line))
    .flatMap((line) =>
      [...line.matchAll(/(?:^|[ (])holdfast ((?:[^|;&>)#]|\$\([^)]*\))+)/g)].map(([, words = ""]) => words),
    )
    .filter((words) => /^[a-z]/.test(words) && !words.includes("…"));
}

function parsed(program: Command, line: string): { readonly command: Command; readonly options: string[] } {
  // What `run` runs has options of its own.
  const words = (line.split(" -- ")[0] ?? "").trim().split(/\s+/);
  let command = program;
  for (const word of words) {
    const next = command.commands.find((each) => each.name() === word);
    if (next === undefined) break;
    command = next;
  }
  return { command, options: words.filter((word) => /^--?[a-z]/.test(word)).map((word) => word.split("=")[0] ?? "") };
}
