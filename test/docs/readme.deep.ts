// The README as a newcomer follows it: its programs and its commands, as printed and in their order, in an empty folder with
// the packed package.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ModuleKind, ScriptTarget, transpileModule } from "typescript";
import { expect, it } from "vitest";
import { root, scratch } from "./user-programs.ts";

/** An empty project in which the package was installed: what `npm pack` puts into it, beside what it depends on. */
function installPackage(): string {
  const project = mkdtempSync(join(scratch, "newcomer-"));
  const modules = join(project, "node_modules");
  mkdirSync(join(modules, ".bin"), { recursive: true });
  const tarball = execFileSync("npm", ["pack", "--ignore-scripts", "--silent", "--pack-destination", project], {
    cwd: root,
    encoding: "utf8",
  }).trim();
  execFileSync("tar", ["xzf", join(project, tarball), "-C", modules]);
  execFileSync("mv", [join(modules, "package"), join(modules, "holdfast")]);
  // Only these: a package that is missing among the dependencies is not found.
  for (const name of productionPackages()) {
    mkdirSync(join(modules, name, ".."), { recursive: true });
    symlinkSync(join(root, "node_modules", name), join(modules, name));
  }
  const bin = join(modules, "holdfast/dist/cli/bin.cjs");
  chmodSync(bin, 0o755);
  symlinkSync(bin, join(modules, ".bin/holdfast"));
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "newcomer", private: true, type: "module" }));
  return project;
}

function productionPackages(): string[] {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    packages: Record<string, { dev?: boolean; devOptional?: boolean; optional?: boolean }>;
  };
  const there = new Set(
    Object.entries(lock.packages)
      .filter(([path, { dev, devOptional }]) => path.startsWith("node_modules/") && !dev && !devOptional)
      .map(([path]) => path.slice("node_modules/".length)),
  );
  return [...there].filter((name) => {
    const [scope = ""] = name.split("/");
    return !name.includes("/node_modules/") && readdirSync(join(root, "node_modules")).includes(scope);
  });
}

/** Commands that run until they are told to end. */
const isEndless = (command: string): boolean => command.includes("Ctrl-C stops it");

it.each([
  ["the programs and commands", true],
  ["the commands alone", false],
])("%s of the README work as printed, in their order, in an empty folder", async (_, hasPrograms) => {
  const cwd = installPackage();
  const env = { ...process.env, PATH: `${join(cwd, "node_modules/.bin")}:${process.env["PATH"]}`, HOLDFAST_STORE: "" };
  const run = (command: string, args: readonly string[]): string => {
    try {
      return execFileSync(command, args, {
        cwd,
        env,
        encoding: "utf8",
        timeout: 60_000,
        stdio: ["pipe", "pipe", "pipe"],
      });
    } catch (error) {
      throw new Error(`${args.join(" ")}\n${(error as { stderr: string }).stderr}`, { cause: error });
    }
  };
  const page = readFileSync(join(root, "README.md"), "utf8");
  const said: string[] = [];
  for (const [, language, block = ""] of page.matchAll(/^```(ts|sh)\n(.*?)^```$/gms)) {
    // Of a checkout, not of the package.
    if (block.startsWith("npm ") || (language === "ts" && !hasPrograms)) continue;
    if (language === "ts") {
      const compilerOptions = { target: ScriptTarget.ES2022, module: ModuleKind.ESNext };
      writeFileSync(join(cwd, "program.js"), transpileModule(block, { compilerOptions }).outputText);
      said.push(run(process.execPath, ["program.js"]));
    } else if (isEndless(block)) said.push(await interrupted(block, cwd, env));
    // One shell for a block: $$ is the same process for all of it.
    else said.push(run("sh", ["-euc", block]));
  }
  const all = said.join("\n");
  const fromPrograms = [
    "1 event, 1 process",
    "fulfilled, rejected of 2 events",
    "booking invoice/R-7: <total>119.00</total>, published twice: true",
    "3 versions; one winner",
    "wrote alone",
    "sold ticket 1",
  ];
  const fromCommands = [
    '"data":{"sku":"lamp"}',
    " done 1\n",
    "AWS_ACCESS_KEY_ID",
    "archive/plan.md: paint the shelf",
    "alone\n",
    "deploy.lock is free.",
    "Holdfast can be used here",
  ];
  for (const text of [...(hasPrograms ? fromPrograms : []), ...fromCommands]) expect(all).toContain(text);
});

/** What an endless command prints before it is told to end, after which it ends without a failure. */
async function interrupted(block: string, cwd: string, env: NodeJS.ProcessEnv): Promise<string> {
  const words = block.split(" #")[0]?.trim().split(/\s+/).slice(1) ?? [];
  const [verb = ""] = words;
  const { says, flags } = endless[verb]!;
  const child = spawn(join(cwd, "node_modules/.bin/holdfast"), [...words, ...flags], { cwd, env });
  let said = "";
  const hasSaid = new Promise<void>((resolve) => {
    for (const output of [child.stdout, child.stderr])
      output.setEncoding("utf8").on("data", (text: string) => (said += text).includes(says) && resolve());
  });
  const ended = once(child, "exit");
  await Promise.race([hasSaid, ended]);
  child.kill("SIGINT");
  expect(await ended).toEqual([0, null]);
  return said;
}

/** What a command has said once it runs. Another program may have the port that is the default. */
const endless: Readonly<Record<string, { readonly says: string; readonly flags: readonly string[] }>> = {
  s3: { says: "secret", flags: ["--port", "0"] },
  console: { says: "Ctrl-C ends it", flags: ["--port", "0"] },
  watch: { says: "Ctrl-C ends it", flags: [] },
};
