// Completion and the man page have every verb and every option of the command line. The shells that this machine has run
// their script on each command; bash is always there, except on Windows.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { runCommandLine } from "../../src/cli/program.ts";
import { makeScratch } from "../sites/scratch.ts";

interface Node {
  readonly words: string;
  /** Empty where a command has no verbs. */
  readonly verbs: readonly string[];
  readonly options: readonly string[];
}

async function run(...args: readonly string[]): Promise<string> {
  let text = "";
  const stdout = { write: (some: string | Uint8Array) => (text += String(some)), columns: 10_000 };
  const exitCode = await runCommandLine(args, { stdout, stderr: stdout }, new AbortController().signal);
  expect({ args, exitCode }).toEqual({ args, exitCode: 0 });
  return text;
}

/** Reads the tree from the help pages, as a person does: not from the code that makes the scripts. */
async function listNodes(words: readonly string[] = []): Promise<Node[]> {
  const help = await run(...words, "--help");
  const namesIn = (section: string, pattern: RegExp): string[] => {
    const [, list = ""] = help.split(`\n${section}:\n`);
    return [...(list.split("\n\n")[0] ?? "").matchAll(pattern)].flatMap(([, ...names]) =>
      names.filter((name) => name !== undefined),
    );
  };
  const verbs = namesIn("Commands", /^ {2}([a-z0-9-]+)/gm).filter((name) => name !== "help");
  const options = namesIn("Options", /^ {2}(?:(-\w), )?(--[a-z0-9-]+|-\w)/gm);
  const below: Node[] = [];
  for (const verb of verbs) below.push(...(await listNodes([...words, verb])));
  return [{ words: words.join(" "), verbs, options }, ...below];
}

let nodes: Node[] = [];
beforeAll(async () => {
  nodes = await listNodes();
  expect(nodes.length).toBeGreaterThan(60);
  expect(nodes.find(({ words }) => words === "events append")?.options).toContain("--type");
});

const has = (program: string): boolean => spawnSync(program, ["--version"]).status === 0;

/**
 * Answers completions in one process of the shell. `lines` are command lines; the last word is the one to complete. Each
 * answer ends with an empty line.
 */
async function complete(shell: Shell, lines: readonly (readonly string[])[]): Promise<string[][]> {
  const directory = makeScratch();
  writeFileSync(join(directory, "script"), await run("completion", shell));
  writeFileSync(join(directory, "asked"), asking[shell](lines));
  const { status, stdout, stderr } = spawnSync(shell, ["asked"], { cwd: directory, encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const answers = stdout.split("==\n").slice(0, -1);
  return answers.map((answer) => answer.split("\n").filter((line) => line !== ""));
}

type Shell = "bash" | "zsh" | "fish";

const quoted = (word: string): string => `'${word}'`;

const asking: Readonly<Record<Shell, (lines: readonly (readonly string[])[]) => string>> = {
  bash: (lines) =>
    [
      "source ./script",
      ...lines.map(
        (words) =>
          `COMP_WORDS=(holdfast ${words.map(quoted).join(" ")}) COMP_CWORD=${words.length}; _holdfast 2>&1; printf '%s\\n' "\${COMPREPLY[@]}" ==`,
      ),
    ].join("\n"),
  // The functions of the completion system print here what they would offer.
  zsh: (lines) =>
    [
      "compdef() { : }",
      `_describe() { local each; for each in "\${(@P)4}"; do print -r -- "\${each%%:*}"; done }`,
      "_files() { print -r -- FILES }",
      "_command_names() { print -r -- COMMANDS }",
      "_message() { : }",
      `compset() { : }`,
      "source ./script",
      ...lines.map(
        (words) => `words=(holdfast ${words.map(quoted).join(" ")}) CURRENT=${words.length + 1}; _holdfast; print '=='`,
      ),
    ].join("\n"),
  fish: (lines) =>
    [
      "source ./script",
      ...lines.map((words) => `complete -C "holdfast ${words.join(" ")}" | string replace -r '\\t.*' ''; echo ==`),
    ].join("\n"),
};

describe.each(["bash", "zsh", "fish"] as const)("the script for %s", (shell) => {
  test("names every verb and every option", async () => {
    const script = await run("completion", shell);
    for (const { words, verbs, options } of nodes) {
      const from = script.indexOf(shell === "fish" ? `case '${words}'\n` : `'${words}')`);
      expect({ words, from }).not.toEqual({ words, from: -1 });
      const row = script.slice(from).split(/ runs(?:=| yes| '')/)[0];
      for (const word of [...verbs, ...options])
        expect(row, `${words} ${word}`).toMatch(new RegExp(`[ ('"]${word}[ :'"]`));
    }
  });

  test.skipIf(!has(shell))("completes each command with exactly its verbs, and with exactly its options", async () => {
    const withVerbs = nodes.filter(({ verbs }) => verbs.length > 0);
    const lines = [
      ...withVerbs.map(({ words }) => [...words.split(" "), ""].slice(words === "" ? 1 : 0)),
      ...nodes.map(({ words }) => [...words.split(" "), "-"].slice(words === "" ? 1 : 0)),
    ];
    const answers = await complete(shell, lines);
    expect(answers).toHaveLength(lines.length);
    const sorted = (lists: readonly (readonly string[])[]): string[][] => lists.map((list) => [...list].sort());
    expect(sorted(answers)).toEqual(
      sorted([...withVerbs.map(({ verbs }) => verbs), ...nodes.map(({ options }) => options)]),
    );
  });

  test.skipIf(!has(shell))("completes a prefix, the values of an option, and a shell, but no free value", async () => {
    const [prefix, choices, shells, free, after] = await complete(shell, [
      ["ev"],
      ["handoff", "replay", "--from", ""],
      ["completion", ""],
      ["events", "append", "--type", ""],
      // The value of an option is not a verb.
      ["handoff", "--quiet", "put", "--key", "ls", "--pri"],
    ]);
    // zsh filters by the prefix after the function has answered.
    if (shell !== "zsh") expect({ prefix, after }).toEqual({ prefix: ["events"], after: ["--priority"] });
    expect({ choices, shells, free }).toEqual({
      choices: expect.arrayContaining(["error", "archive"]) as unknown,
      shells: expect.arrayContaining(["bash", "zsh", "fish"]) as unknown,
      free: [],
    });
  });
});

test.skipIf(!has("bash"))(
  "in bash, a word split at = is completed, and --  begins a command of the machine",
  async () => {
    const [value, command, files] = await complete("bash", [
      ["handoff", "replay", "--from", "=", "a"],
      ["run", "--lock", "x", "--", "bas"],
      ["run", "--lock", "x", "./some", "-"],
    ]);
    expect(value).toEqual(["archive"]);
    expect(command).toContain("bash");
    expect(files).toEqual([]);
  },
);

test("the man page of the package has every command, option, example and exit code of the help pages", async () => {
  const page = readFileSync(fileURLToPath(new URL("../../dist/holdfast.1", import.meta.url)), "utf8");
  const plain = page.replaceAll("\\-", "-").replaceAll("\\(dq", '"').replaceAll("\\(aq", "'");
  const [, ...commands] = plain.split('\n.SS "holdfast ');
  const [first] = nodes;
  for (const option of first?.options ?? []) expect(plain).toContain(option);
  expect(commands.map((text) => text.split(/ \[options\]| \[command\]| [[<]|"/)[0])).toEqual(
    nodes.slice(1).map(({ words }) => words),
  );
  for (const [index, { words, options }] of nodes.slice(1).entries())
    for (const option of options.filter((name) => !["-h", "--help", "--json", "--quiet"].includes(name)))
      expect(commands[index], `${words} ${option}`).toContain(option);
  const [, exampleLines = ""] = (await run("events", "append", "--help")).split("Examples:\n");
  expect(plain).toContain((exampleLines.split("\n")[0] ?? "").trim());
});

test.skipIf(!has("groff"))("groff sets the man page without a warning", () => {
  const path = fileURLToPath(new URL("../../dist/holdfast.1", import.meta.url));
  const { status, stdout, stderr } = spawnSync("groff", ["-man", "-Tutf8", "-ww", path], { encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout).toContain("HOLDFAST");
});
