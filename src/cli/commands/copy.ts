// The command `holdfast copy`: a store, or a part of one, from one location to another.
import type { Command } from "commander";
import { copyStore, type CopiedPart } from "../../index.ts";
import { exitCodes } from "../exit-codes.ts";
import { endHelp } from "../help.ts";
import { asGiven } from "../own-words.ts";
import { failed } from "../part-verb.ts";
import { Progress } from "../progress.ts";
import type { Run } from "../run.ts";

interface CopyFlags {
  readonly verify?: boolean;
}

export function registerCopy(command: Command, run: Run): void {
  command
    .description(
      "Copies a store, or a log, box or object store, to a folder or a database. Ids, times and order stay. A further run copies what is missing. End all programs that use FROM first.",
    )
    .argument("<FROM>", "a store or a part: a directory, or postgres://USER@HOST/DATABASE?store=NAME[#events/LOG]")
    .argument("<TO>", "where the copy goes; created if missing")
    .option("--verify", "then read both sides again, and compare them")
    .action(async (from: string, to: string, { verify }: CopyFlags) => {
      const copied = (await copyAll(from, to, verify, run)).map((part) => ({
        ...part,
        from: asGiven(from, part.from),
        to: asGiven(to, part.to),
      }));
      if (copied.some(({ equal }) => equal === false)) run.exitCode = exitCodes.verificationFailed;
      run.output.list(copied, () =>
        copied.length === 0 ? "There was nothing to copy." : copied.map(inWords).join("\n"),
      );
    });
  endHelp(command, {
    examples: [
      "holdfast copy /mnt/shop postgres://shop@db/shop?store=main --verify",
      "holdfast copy postgres://shop@db/shop?store=main#events/orders /var/lib/orders",
    ],
    exits: {
      done: "all copied, now or before",
      failed,
      wrongUsage: "wrong usage, or FROM has something that cannot be copied",
      missing: "there is no store and no part in FROM: is the share mounted?",
      notHeld: "another process took over the writing in TO: try again",
      verificationFailed: "TO has other events, tickets or objects, the copies differ, or a side is damaged",
      tryAgain: "FROM is in use, or TO is busy: end the programs, then try again",
    },
  });
}

async function copyAll(from: string, to: string, verify: boolean | undefined, run: Run): Promise<CopiedPart[]> {
  using progress = new Progress(run, "copied");
  const { signal } = run;
  return await copyStore(from, to, { verify, signal, onProgress: (_, done, total) => progress.tell(done, total) });
}

const things = { log: "event", box: "ticket", objects: "object" } as const;

function inWords({ part, from, to, added, total, consumers, equal }: CopiedPart): string {
  const verdict = equal === undefined ? "" : equal ? "; both are equal" : "; they DIFFER";
  const more = consumers === undefined ? "" : `, ${consumers} consumer(s)`;
  return `${from} to ${to}: ${added} ${things[part]}(s) added, ${total} in all${more}${verdict}.`;
}
