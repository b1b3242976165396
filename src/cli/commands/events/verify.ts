// The commands `holdfast events verify` and `rebuild`: is the log what it should be, and its indexes made anew.
import { Option, type Command } from "commander";
import { rebuildEventIndexes, verifyEvents, type Problem, type VerifyReport } from "../../../events/index.ts";
import { exitCodes } from "../../exit-codes.ts";
import { printable, wrap, type Page, type Style } from "../../output.ts";
import type { Run } from "../../run.ts";
import { damaged, failed, findLogDirectory, nothingThere, verb, wrongUsage, type LogFlags } from "./log.ts";
import { Progress } from "../../progress.ts";

interface VerifyFlags extends LogFlags {
  readonly repair?: boolean;
}

const exits = { failed, wrongUsage, nothingToDo: nothingThere };

export function registerVerify(events: Command, run: Run): void {
  const command = verb(events, "verify", {
    summary: "check every line, and judge every condition again",
    description:
      "Reads the whole log and checks every checksum, every position, every id, and every condition that an append was made under. Names file, line and byte of what is wrong. Takes no lock; needs about 200 bytes of memory for each event.",
    options: [
      new Option(
        "--repair",
        "keep all that is whole, at its position, and move aside what is damaged or of no use (into aside/ of the log); nothing is ever deleted",
      ),
    ],
    examples: ["holdfast events verify /mnt/shop/events", "holdfast events verify /mnt/shop/events --repair --json"],
    exits: {
      done: "no damage, or none any more; there may be leftovers of crashes, which are harmless",
      ...exits,
      verificationFailed: "the log is damaged, or its file system cannot be used",
    },
  });
  command.action(async (directory: string, flags: VerifyFlags) => {
    const path = await findLogDirectory(directory, flags, command, run);
    if (path === undefined) return;
    const report = await verified(path, flags, run);
    if (!report.ok) run.exitCode = exitCodes.verificationFailed;
    run.output.result({ directory: path, ...report }, (page) => formatReport(report, page));
  });
}

async function verified(path: string, { repair }: VerifyFlags, run: Run): Promise<VerifyReport> {
  using progress = new Progress(run, "verified bytes");
  return await verifyEvents(path, { repair, signal: run.signal, onProgress: progress.tell });
}

export function registerRebuild(events: Command, run: Run): void {
  const command = verb(events, "rebuild", {
    summary: "make the indexes anew",
    description:
      "Moves the indexes of the log aside (into aside/) and makes them anew. Others may read and append meanwhile. Read models are made by the program that defines them, and so is their rebuilding.",
    examples: ["holdfast events rebuild /mnt/shop/events"],
    exits: { done: "made anew", ...exits, verificationFailed: damaged },
  });
  command.action(async (directory: string, flags: LogFlags) => {
    const path = await findLogDirectory(directory, flags, command, run);
    if (path === undefined) return;
    const rebuilt = await rebuild(path, run);
    run.output.result({ directory: path, ...rebuilt }, () =>
      rebuilt.segments === 0
        ? "There is nothing to index yet: the segment that is written to is indexed in memory."
        : `Indexed ${rebuilt.segments} segment(s), ${rebuilt.events} event(s).`,
    );
  });
}

async function rebuild(path: string, run: Run): ReturnType<typeof rebuildEventIndexes> {
  using progress = new Progress(run, "indexed segments");
  return await rebuildEventIndexes(path, { signal: run.signal, onProgress: progress.tell });
}

const styleOf: Readonly<Record<Problem["severity"], Style>> = { damage: "red", leftover: "yellow", note: "dim" };
const indent = 10;

function formatReport({ ok, checked, problems }: VerifyReport, page: Page): string {
  const count = `${checked} event(s) checked`;
  const last = ok ? page.style("green", `ok: ${count}.`) : page.style("red", `damaged: ${count}.`);
  return [...problems.map((problem) => formatProblem(problem, page)), last].join("\n");
}

function formatProblem({ severity, path, line, byte, what, remedy, repaired }: Problem, page: Page): string {
  const where = [path, line === undefined ? "" : `line ${line}`, byte === undefined ? "" : `byte ${byte}`];
  const text = [where.filter((part) => part !== "").join(", "), what, repaired ? `Repaired: ${remedy}` : remedy];
  const label = page.style(styleOf[severity], severity.padEnd(indent));
  return label + text.map((part) => wrap(printable(part), page.columns, indent)).join(`\n${" ".repeat(indent)}`);
}
