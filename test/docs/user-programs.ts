// Programs in the pages, run as a user's own would run.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { ModuleKind, ScriptTarget, transpileModule } from "typescript";
import { afterAll } from "vitest";

export const root = resolve(import.meta.dirname, "../..");
export const scratch = mkdtempSync(join(tmpdir(), "holdfast-docs-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** The code blocks of one language in a page. */
export function blocksOf(page: string, language: string): string[] {
  const text = readFileSync(join(root, page), "utf8");
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, "gms"))].map((match) => match[1] ?? "");
}

/** Runs a program as a user's own would run: with the package installed, from what was built. */
export function runAsUser(program: string, ...args: string[]): string {
  mkdirSync(join(scratch, "node_modules"), { recursive: true });
  rmSync(join(scratch, "node_modules/holdfast"), { force: true });
  symlinkSync(root, join(scratch, "node_modules/holdfast"));
  // Guides log and trace with them.
  for (const name of ["pino", "@opentelemetry"]) {
    rmSync(join(scratch, "node_modules", name), { force: true });
    symlinkSync(join(root, "node_modules", name), join(scratch, "node_modules", name));
  }
  writeFileSync(join(scratch, "package.json"), JSON.stringify({ name: "a-user", private: true }));
  const path = join(scratch, "program.mjs");
  const { outputText } = transpileModule(program, {
    compilerOptions: { target: ScriptTarget.ES2022, module: ModuleKind.ESNext },
  });
  writeFileSync(path, outputText);
  return execFileSync(process.execPath, [path, ...args], { encoding: "utf8", timeout: 30_000 });
}
