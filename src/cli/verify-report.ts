// A verification on the command line: its progress, its report for people, and its exit code.
import { Option, type Command } from "commander";
import type { Problem, VerifyReport } from "../index.ts";
import { exitCodes } from "./exit-codes.ts";
import { printable, wrap, type Page, type Style } from "./output.ts";
import { explainPart, findPartDirectory, partVerb, type PartFlags, type PartNoun, type Verb } from "./part-verb.ts";
import { Progress } from "./progress.ts";
import type { Run } from "./run.ts";

interface VerifyFlags extends PartFlags {
  readonly repair?: boolean;
}

/** Registers the verb `verify` of a kind of part. */
export function registerPartVerify(parent: Command, noun: PartNoun, verb: Verb, run: Run): void {
  const command = partVerb(parent, noun, "verify", verb);
  command.action(async (directory: string, flags: VerifyFlags) => {
    const path = await findPartDirectory(noun, directory, flags, command, run);
    if (path === undefined) return;
    const report = await verifyPart(noun, path, flags, run);
    run.output.result({ part: noun.what, directory: path, ...report }, (page) => formatReport(noun, report, page));
  });
}

export function repairOption(description: string): Option {
  return new Option("--repair", description);
}

/** Sets the exit code for damage. */
export async function verifyPart(
  noun: PartNoun,
  path: string,
  { repair }: { readonly repair?: boolean },
  run: Run,
): Promise<VerifyReport> {
  using progress = new Progress(run, noun.progress ?? "verified bytes");
  const verify = (): Promise<VerifyReport> =>
    noun.verify(path, { repair, signal: run.signal, onProgress: progress.tell });
  const report = repair === true ? await explainPart(noun, path, run, verify) : await verify();
  if (!report.ok) run.exitCode = exitCodes.verificationFailed;
  return spelled(report, run);
}

/** Rewrites the paths to the user's spelling. */
export function spelled(report: VerifyReport, { output: { spell } }: Run): VerifyReport {
  const problems = report.problems.map((problem) => ({
    ...problem,
    path: spell(problem.path),
    what: spell(problem.what),
    remedy: spell(problem.remedy),
  }));
  return { ...report, problems };
}

const styleOf: Readonly<Record<Problem["severity"], Style>> = { damage: "red", leftover: "yellow", note: "dim" };
const indent = 10;

/** The thing that was verified, as the report names it. */
export type ReportNoun = Pick<PartNoun, "what" | "unit">;

export function formatReport({ unit }: ReportNoun, { ok, checked, problems }: VerifyReport, page: Page): string {
  const count = `${checked} ${unit} checked`;
  const damages = problems.filter(({ severity }) => severity === "damage");
  const isRepaired = damages.length > 0 && damages.every(({ repaired }) => repaired);
  const last = isRepaired
    ? page.style("yellow", `repaired: ${count}. Verify it again.`)
    : page.style(ok ? "green" : "red", `${ok ? "ok" : "damaged"}: ${count}.`);
  return [...problems.map((problem) => formatProblem(problem, page)), last].join("\n");
}

function formatProblem({ severity, path, line, byte, what, remedy, repaired }: Problem, page: Page): string {
  const where = [path, line === undefined ? "" : `line ${line}`, byte === undefined ? "" : `byte ${byte}`];
  const text = [where.filter((part) => part !== "").join(", "), what, repaired ? `Repaired: ${remedy}` : remedy];
  const label = page.style(styleOf[severity], severity.padEnd(indent));
  return label + text.map((part) => wrap(printable(part), page.columns, indent)).join(`\n${" ".repeat(indent)}`);
}
