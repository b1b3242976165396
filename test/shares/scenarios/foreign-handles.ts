// Machines that work on a share while a program of another client has files of theirs open and does not share them, as
// programs of Windows do: the server refuses renames and removals, and removed names stay for a while.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Bed } from "../bed.ts";
import { Daemon } from "../command.ts";
import type { Report, Scenario } from "../scenario.ts";
import { withCrews } from "./work.ts";

const parts = ["chain", "locks", "redo", "events", "handoff", "objects", "files"];
/** Fewer show nothing. */
const openedMin = 20;

export const foreignHandles: readonly Scenario[] = parts.map((part) => ({
  name: `${part}-beside-foreign-handles`,
  about:
    "three machines work while another client opens their files without sharing them: nothing is lost, and no process ends",
  servers: ["smb"],
  run: async (bed, report) => await workBeside(bed, report, part),
}));

async function workBeside(bed: Bed, report: Report, part: string): Promise<void> {
  const figures = join(bed.work, `${part}-foreign-handles.json`);
  await withCrews(bed, [part], report, async (crew) => {
    const neighbour = new Daemon("/usr/bin/python3", neighbourArgs(bed, figures, part), {
      log: join(bed.work, "neighbour.log"),
    });
    try {
      const before = crew.wins;
      // Time passes: as much as the load is to last.
      await sleep(bed.secondsOfLoad * 1000);
      report.must(!neighbour.isOver, "the neighbour ended by itself: see neighbour.log");
      report.must(crew.wins > before, "nothing was done beside the neighbour");
    } finally {
      await neighbour.kill();
    }
  });
  const { opened, refused, gone } = JSON.parse(readFileSync(figures, "utf8")) as Record<string, number>;
  report.note(`the neighbour opened ${opened} files, was refused ${refused}, and came too late for ${gone}`);
  report.must((opened ?? 0) >= openedMin, `the neighbour opened only ${opened} files`);
}

function neighbourArgs(bed: Bed, figures: string, part: string): string[] {
  return [join(bed.root, "test/shares/servers/neighbour.py"), ...(bed.server.login ?? []), figures, `${part}-`];
}
