// The command `holdfast doctor`: what the file system of a folder can be trusted with.
import { Option, type Command } from "commander";
import { doctor, type DoctorReport } from "../../index.ts";
import { formatReport } from "../doctor-report.ts";
import { parseDuration } from "../duration.ts";
import { exitCodes } from "../exit-codes.ts";
import { endHelp } from "../help.ts";
import type { Run } from "../run.ts";

interface DoctorFlags {
  readonly withPeer?: boolean;
  readonly timeout: number;
}

export function registerDoctor(command: Command, run: Run): void {
  command
    .description(
      "Says what the file system of DIR can be trusted with: links, renames, exclusive creates, OS locks, syncs, clocks, hints and mount options. Works in a directory of its own inside DIR, and removes it.",
    )
    .argument("<DIR>", "the folder that is to be shared")
    .option("--with-peer", "also examine together with another machine that runs the same command on the same folder")
    .addOption(
      new Option("--timeout <duration>", "how long to wait for the peer: 30s, 500ms, 2m")
        .argParser(parseDuration)
        .default(60_000, "60s"),
    )
    .action(async (directory: string, flags: DoctorFlags) => {
      const report = await doctor(directory, {
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
      run.output.result(report, (page) => formatReport(report, page));
      run.exitCode = exitCodeFor(report);
    });
  endHelp(command, {
    examples: ["holdfast doctor /mnt/shop", "holdfast doctor /mnt/shop --with-peer --timeout 2m"],
    exits: {
      done: "Holdfast can be used here (ok or limited)",
      failed: "nothing could be examined: no permission, disk full",
      wrongUsage: "wrong usage, or DIR is no directory",
      verificationFailed: "Holdfast must not be used here",
      tryAgain: "no peer came, or it went away: try again",
    },
  });
}

function exitCodeFor({ verdict, peer }: DoctorReport): number {
  if (verdict === "unusable") return exitCodes.verificationFailed;
  return peer === undefined || peer.state === "met" ? exitCodes.done : exitCodes.tryAgain;
}
