// A recipe shows a program of examples/recipes as it is, and what that program prints.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { blocksOf, root, scratch } from "./user-programs.ts";

const run = promisify(execFile);
const textOf = (path: string): string => readFileSync(join(root, path), "utf8");
const newFolder = (): string => join(mkdtempSync(join(scratch, "recipe-")), "shared");

const pages = readdirSync(join(root, "docs/recipes")).filter((name) => name !== "README.md");
const programs = readdirSync(join(root, "examples/recipes"));
/** Each program that a page shows, with the text that stands below it. */
const shown = pages.flatMap((page) =>
  [...textOf(`docs/recipes/${page}`).matchAll(/^```(?:ts|js)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?/gms)].map(
    ([, text = "", output]) => ({ page, text, output }),
  ),
);
const programOf = (text: string): string | undefined =>
  programs.find((name) => textOf(`examples/recipes/${name}`) === text);

/** The program as it was built: a user starts it from the package. */
const built = (program: string): string => join(root, "dist/examples/recipes", program.replace(/ts$/, "js"));

/** A job that never ends. */
const holding = `
import { openStore } from "holdfast";
const store = await openStore(process.argv[1]);
const hold = await (await store.locks()).acquire("reports", { mode: "tree" });
console.log("holding");
setInterval(() => hold.fence, 60_000);
`;

/** Calls each factory once, with what it injects, as the container of NestJS does. */
const container = `
import { HoldfastModule, STORE } from ${JSON.stringify(built("nestjs.ts"))};
const made = new Map();
for (const { provide, inject = [], useFactory } of HoldfastModule.forRoot("memory:").providers)
  made.set(provide, await useFactory(...inject.map((token) => made.get(token))));
const log = await made.get(STORE).events("sales");
const head = await log.head();
for (const each of made.values()) await each.onApplicationShutdown?.();
console.log(head, await log.head().catch((error) => error.code));
`;

describe("the recipes", () => {
  it("show each program as it is in examples/recipes, once", () => {
    expect(
      shown.map(({ page, text }) => programOf(text) ?? `${page} shows no program of examples/recipes`).sort(),
    ).toEqual(programs.toSorted());
  });

  it("are all in the index", () => {
    const links = [...textOf("docs/recipes/README.md").matchAll(/\]\(([\w-]+\.md)\)/g)].map(([, page]) => page);
    expect(new Set(links)).toEqual(new Set(pages));
  });

  it("show settings that a program can read", () => {
    const settings = pages.flatMap((page) => blocksOf(`docs/recipes/${page}`, "json"));
    expect(settings.map((text) => Object.keys(JSON.parse(text) as object))).toEqual([["mcpServers"], ["jest"]]);
  });

  it.concurrent.each(
    shown.flatMap(({ text, output }) => (output === undefined ? [] : [{ program: programOf(text) ?? "", output }])),
  )("print what stands below them: $program", async ({ program, output }) => {
    const { stdout } = await run(process.execPath, [built(program), newFolder()], { timeout: 30_000 });
    expect(stdout).toBe(output);
  });

  it("send the mail of an order although the service was killed as soon as it had accepted it", async () => {
    const folder = newFolder();
    const service = spawn(process.execPath, [built("outbox.ts"), folder]);
    await once(service.stdout, "data");
    service.kill("SIGKILL");
    await once(service, "exit");
    const { output } = shown.find(({ text }) => programOf(text) === "outbox.ts")!;
    const { stdout } = await run(process.execPath, [built("outbox.ts"), folder], { timeout: 30_000 });
    expect(stdout).toBe(output);
  });

  it("move no row of a SQLite file twice", async () => {
    const folder = newFolder();
    const move = async () => (await run(process.execPath, [built("from-sqlite.ts"), folder])).stdout.split("\n")[0];
    expect([await move(), await move()]).toEqual(["3 of 3 rows are new", "0 of 3 rows are new"]);
  });

  it("have tests that run under jest as they run here", async () => {
    const cwd = mkdtempSync(join(scratch, "jest-"));
    mkdirSync(join(cwd, "node_modules"));
    symlinkSync(root, join(cwd, "node_modules/holdfast"));
    symlinkSync(join(root, "node_modules/@jest"), join(cwd, "node_modules/@jest"));
    // As the page says: another name in one import, and these settings.
    const [settings = ""] = blocksOf("docs/recipes/testing.md", "json");
    writeFileSync(join(cwd, "package.json"), JSON.stringify({ type: "module", ...JSON.parse(settings) }));
    for (const name of ["stock.js", "stock.test.js"])
      writeFileSync(join(cwd, name), readFileSync(built(name), "utf8").replace(`"vitest"`, `"@jest/globals"`));
    const jest = join(root, "node_modules/jest/bin/jest.js");
    const { stderr } = await run(process.execPath, ["--experimental-vm-modules", jest], { cwd, timeout: 60_000 });
    expect(stderr).toContain("Tests:       3 passed, 3 total");
  });

  it("have a module of NestJS that opens a store once, and closes it with the application", async () => {
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", container], { cwd: root });
    expect(stdout).toBe("0 CLOSED\n");
  });

  const commands = ["README.md", ...pages].flatMap((page) =>
    [...textOf(`docs/recipes/${page}`).matchAll(/^```sh\n(.*?)^```$/gms)].map(([, text = ""]) => ({ page, text })),
  );
  it("let a second job end at once, and a third run as soon as the first is killed", async () => {
    const folder = newFolder();
    const holder = spawn(process.execPath, ["--input-type=module", "-e", holding, folder], { cwd: root });
    await once(holder.stdout, "data");
    const skipped = await run(process.execPath, [built("cron-jobs.ts"), folder]);
    expect(skipped.stdout).toBe(`skipped: process ${holder.pid} on ${hostname()} is at work\n`);
    holder.kill("SIGKILL");
    await once(holder, "exit");
    for (const said of ["report written", "skipped: done already today"])
      expect((await run(process.execPath, [built("cron-jobs.ts"), folder])).stdout).toBe(`${said}\n`);
  });

  it.concurrent.each(commands)("have commands that work as printed: $page", async ({ text }) => {
    const cwd = mkdtempSync(join(scratch, "commands-"));
    mkdirSync(join(cwd, "shared"));
    mkdirSync(join(cwd, "node_modules"));
    symlinkSync(root, join(cwd, "node_modules/holdfast"));
    const holdfast = `holdfast() { "${process.execPath}" "${join(root, "dist/cli/bin.cjs")}" "$@"; }`;
    const { stdout } = await run("sh", ["-euc", `${holdfast}\n${text}`], { cwd, timeout: 30_000 });
    expect(stdout).not.toBe("");
  });
});
