// The command `holdfast upgrade`: shows the on-disk formats of a store, and upgrades them.
import type { Command } from "commander";
import { upgradeStore, type FormatReport } from "../../index.ts";
import { exitCodes } from "../exit-codes.ts";
import { endHelp } from "../help.ts";
import { printable, type Page } from "../output.ts";
import { failed, wrongUsage } from "../part-verb.ts";
import type { Run } from "../run.ts";
import { formatTable } from "../table.ts";

interface UpgradeFlags {
  readonly dryRun?: boolean;
}

export function registerUpgrade(command: Command, run: Run): void {
  command
    .description("Upgrades each part of a store to the newest format. Stop all programs that use DIR first.")
    .argument("<DIR>", "the store, or the directory of one part")
    .option("--dry-run", "only list the formats and what would change")
    .action(async (directory: string, { dryRun }: UpgradeFlags) => {
      const found = await upgradeStore(directory, { dryRun });
      const { spell } = run.output;
      const reports = found.map((report) => ({ ...report, path: spell(report.path) }));
      run.output.list(reports, (page) => formatReports(reports, page));
      if (reports.some(({ state }) => state === "damaged")) run.exitCode = exitCodes.verificationFailed;
      else if (reports.some(({ state }) => state === "newer")) run.exitCode = exitCodes.failed;
    });
  endHelp(command, {
    examples: ["holdfast upgrade /mnt/shop --dry-run", "holdfast upgrade /mnt/shop"],
    exits: {
      done: "upgraded, or nothing to upgrade",
      failed: `${failed}; or a part has a newer format, which this release refuses`,
      wrongUsage,
      missing: "there is no part in DIR: is it the right one, and is the share mounted?",
      verificationFailed: "a record is damaged: see `holdfast verify`",
      tryAgain: "a live process has DIR open: end it, then try again",
    },
  });
}

function formatReports(reports: readonly FormatReport[], page: Page): string {
  const rows = reports.map((report) => [
    report.part,
    String(report.found ?? "?"),
    String(report.newest),
    outcomeOf(report),
    printable(report.path),
  ]);
  const isCurrent = reports.every(({ state }) => state === "current");
  const last = isCurrent ? ["Every part has the newest format: nothing to upgrade."] : [];
  return [...formatTable(["part", "format", "newest", "", "record"], rows, page), ...last].join("\n");
}

function outcomeOf({ state, change, upgraded, damage, writtenBy }: FormatReport): string {
  switch (state) {
    case "current":
      return "current";
    case "older":
      return `${upgraded ? "upgraded" : "would be upgraded"}: ${change ?? ""}`;
    case "newer":
      return `newer: upgrade this installation to ${writtenBy ?? "the version that wrote it"}`;
    case "damaged":
      return printable(`damaged: ${damage ?? ""}`);
  }
}
