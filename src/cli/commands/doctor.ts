// The command `holdfast doctor`: what Holdfast can rely on in the file system of a folder.
import { Option, type Command } from "commander";
import { doctor, type DoctorReport } from "../../index.ts";
import { formatReport } from "./doctor-report.ts";
import { parseDuration } from "../duration.ts";
import { exitCodes } from "../exit-codes.ts";
import { endHelp } from "../help.ts";
import { mustBeFolder } from "./location.ts";
import type { Run } from "../run.ts";

interface DoctorFlags {
  readonly withPeer?: boolean;
  readonly timeout: number;
}

export function registerDoctor(command: Command, run: Run): void {
  command
    .description(
      "Checks links, renames, exclusive creates, OS locks, syncs, clocks and mount options of DIR's file system.",
    )
    .argument("<DIR>", "the folder to share")
    .option("--with-peer", "also test together with another machine that runs the same command on the same folder")
    .addOption(
      new Option("--timeout <duration>", "how long to wait for the peer: 30s, 500ms, 2m")
        .argParser(parseDuration)
        .default(60_000, "60s"),
    )
    .action(async (directory: string, flags: DoctorFlags) => {
      mustBeFolder(directory, "doctor");
      const found = await doctor(directory, {
        withPeer: flags.withPeer,
        timeoutMs: flags.timeout,
        signal: run.signal,
        onPeer: (news) =>
          run.output.note(
            news === "waiting"
              ? "Waiting for a peer: run the same command on another machine now."
              : "A peer is here: examining together.",
          ),
      });
      const report = { ...found, directory };
      run.output.result(report, (page) => formatReport(report, page));
      run.exitCode = exitCodeFor(report);
    });
  endHelp(command, {
    examples: ["holdfast doctor /mnt/shop", "holdfast doctor /mnt/shop --with-peer --timeout 2m"],
    exits: {
      done: "Holdfast can be used here (ok or limited)",
      failed: "could not test: no permission, disk full",
      wrongUsage: "wrong usage, or DIR is not a directory",
      missing: "DIR is missing: is the share mounted?",
      verificationFailed: "Holdfast must not be used here",
      tryAgain: "no peer joined, or it left: try again",
    },
  });
}

function exitCodeFor({ verdict, peer }: DoctorReport): number {
  if (verdict === "unusable") return exitCodes.verificationFailed;
  return peer === undefined || peer.state === "met" ? exitCodes.done : exitCodes.tryAgain;
}
