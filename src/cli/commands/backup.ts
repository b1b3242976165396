// The commands `holdfast backup`, `restore` and `backups`.
import type { Command } from "commander";
import {
  backup,
  isHoldfastError,
  listBackups,
  pruneBackups,
  restore,
  verifyBackups,
  type BackupInfo,
  type BackupProgress,
  type PruneOptions,
  type PruneReport,
  type S3Options,
} from "../../index.ts";
import { exitCodes } from "../exit-codes.ts";
import { endHelp } from "../help.ts";
import { printable, type Page } from "../output.ts";
import { failed, wrongUsage } from "../part-verb.ts";
import { Progress } from "../progress.ts";
import type { Run } from "../run.ts";
import { formatTable } from "../table.ts";
import { formatReport, spelled } from "../verify-report.ts";
import { mustBeFolder } from "./location.ts";

interface TargetFlags {
  readonly endpoint?: string;
  readonly region?: string;
}

interface BackupFlags extends TargetFlags {
  readonly full?: boolean;
  readonly keep?: number;
}

interface RestoreFlags extends TargetFlags {
  readonly backup?: string;
}

interface BackupsFlags extends TargetFlags {
  readonly verify?: boolean;
  readonly keep?: number;
}

const targetHelp = "a folder, or s3://BUCKET/PREFIX";

export function registerBackup(command: Command, run: Run): void {
  withTarget(command)
    .description(
      "Backs up a store, with all of its parts, while programs use it. Everything that was acknowledged before the start is in the backup. A further run copies only what is new, and continues a run that was interrupted.",
    )
    .argument("<STORE>", "the directory of the store")
    .argument("<TARGET>", `where the backups of this store are: ${targetHelp}; created if missing`)
    .option("--full", "read and write everything again, for example after damage in TARGET")
    .option("--keep <N>", "then remove all backups but the newest N", parseKeep)
    .action(async (directory: string, target: string, { full, keep, ...flags }: BackupFlags) => {
      const options = { s3: s3Of(flags), signal: run.signal };
      using progress = new Progress(run, "backed up files");
      const made = await backup(directory, target, { ...options, full, onProgress: tellOf(progress) });
      if (made.problems.length > 0) run.exitCode = exitCodes.verificationFailed;
      const pruned = keep === undefined ? undefined : await pruneIfFree(target, { ...options, keep }, run);
      run.output.result({ ...made, ...(pruned === undefined ? {} : { removed: pruned.removed }) }, () =>
        [
          `The backup ${made.id} is complete: ${made.files} file(s), ${made.bytes} bytes. It added ${made.added} bytes to ${printable(target)}.`,
          ...made.problems.map((problem) => printable(problem)),
          ...(pruned === undefined
            ? []
            : [`${pruned.removed.length} older backup(s) removed, ${pruned.freed} bytes freed.`]),
        ].join("\n"),
      );
    });
  endHelp(command, {
    examples: ["holdfast backup /mnt/shop /backup/shop --keep 30", "holdfast backup /mnt/shop s3://backups/shop"],
    exits: {
      done: "the backup is complete",
      failed,
      wrongUsage: "wrong usage, or TARGET has other files",
      missing: "there is no store in STORE: is the share mounted?",
      verificationFailed:
        "the backup is complete except for the files that are named, or a part of the store is damaged",
      tryAgain: "old backups are being removed from TARGET, or a program held a lock on the files for too long",
    },
  });
}

/** The new backup is complete, whether or not older ones can be removed now. */
async function pruneIfFree(target: string, options: PruneOptions, run: Run): Promise<PruneReport | undefined> {
  try {
    return await pruneBackups(target, options);
  } catch (error) {
    if (!isHoldfastError(error, "RESOURCE_BUSY")) throw error;
    run.output.warning({ name: "Backup", message: `No older backup was removed. ${error.message}` });
    if (run.exitCode === exitCodes.done) run.exitCode = exitCodes.tryAgain;
    return undefined;
  }
}

export function registerRestore(command: Command, run: Run): void {
  withTarget(command)
    .description("Restores a backup, whole or not at all. A run that was interrupted is continued by the next one.")
    .argument("<TARGET>", `where the backups are: ${targetHelp}`)
    .argument("<STORE>", "the directory of the new store: it must be empty, or not exist")
    .option("--backup <ID>", "the backup to restore; default: the newest one")
    .action(async (target: string, directory: string, { backup: id, ...flags }: RestoreFlags) => {
      mustBeFolder(directory, "restore");
      using progress = new Progress(run, "restored files");
      const options = { s3: s3Of(flags), signal: run.signal, backup: id, onProgress: tellOf(progress) };
      const made = await restore(target, directory, options);
      run.output.result(made, () =>
        [
          `The backup ${made.id} of ${made.startedAt.toISOString()} is restored in ${printable(directory)}: ${made.files} file(s), ${made.bytes} bytes.`,
          `Fences of its locks are above ${made.fencesAbove}. \`holdfast verify\` checks the whole store.`,
        ].join("\n"),
      );
    });
  endHelp(command, {
    examples: ["holdfast restore /backup/shop /mnt/shop", "holdfast restore s3://backups/shop /mnt/shop"],
    exits: {
      done: "the store is restored",
      failed,
      wrongUsage: "wrong usage, or STORE is not empty",
      missing: "there is no such backup in TARGET",
      verificationFailed: "the backup is damaged: nothing was restored",
    },
  });
}

export function registerBackups(command: Command, run: Run): void {
  withTarget(command)
    .description("Lists the backups in TARGET, the oldest first.")
    .argument("<TARGET>", `where the backups are: ${targetHelp}`)
    .option("--verify", "read everything that they need, and report what is missing or damaged")
    .option("--keep <N>", "remove all backups but the newest N, and what only those needed", parseKeep)
    .action(async (target: string, { verify, keep, ...flags }: BackupsFlags) => {
      const options = { s3: s3Of(flags), signal: run.signal };
      if (keep !== undefined) await pruneBackups(target, { ...options, keep });
      if (verify !== true) {
        const found = await listBackups(target, options);
        run.output.list(found, (page) => formatBackups(found, page));
        return;
      }
      using progress = new Progress(run, "verified blobs");
      const report = spelled(await verifyBackups(target, { ...options, onProgress: progress.tell }), run);
      if (!report.ok) run.exitCode = exitCodes.verificationFailed;
      const noun = { what: "backups", unit: "blob(s)" };
      run.output.result({ directory: target, ...report }, (page) => formatReport(noun, report, page));
    });
  endHelp(command, {
    examples: ["holdfast backups /backup/shop", "holdfast backups s3://backups/shop --verify"],
    exits: {
      done: "listed, verified or removed",
      failed,
      wrongUsage,
      verificationFailed: "with --verify: something is missing or damaged",
      tryAgain: "with --keep: a backup is being made in TARGET, or was interrupted within the last hour",
    },
  });
}

function withTarget(command: Command): Command {
  return command
    .option("--endpoint <URL>", "the S3 service; default: AWS_ENDPOINT_URL, or AWS")
    .option("--region <NAME>", "its region; default: AWS_REGION, or us-east-1");
}

/** The key pair comes from the environment only: others can see a command line. */
function s3Of({ endpoint, region }: TargetFlags): S3Options {
  return { endpoint, region };
}

function tellOf(progress: Progress): (at: BackupProgress) => void {
  return ({ files }) => progress.tell(files);
}

function parseKeep(text: string): number {
  return Number(text);
}

function formatBackups(found: readonly BackupInfo[], page: Page): string {
  if (found.length === 0) return "There are no complete backups.";
  const rows = found.map(({ id, startedAt, files, bytes, added, problems }) => [
    id,
    startedAt.toISOString(),
    String(files),
    String(bytes),
    String(added),
    problems.length === 0 ? "" : `${problems.length} problem(s)`,
  ]);
  return formatTable(["id", "began", "files", "bytes", "new bytes", ""], rows, page).join("\n");
}
