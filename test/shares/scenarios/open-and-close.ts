// Whether a file can be opened while another process of the same machine, or this one, closes it.
import type { Bed } from "../bed.ts";
import { Hand } from "../hand.ts";
import type { Scenario } from "../scenario.ts";

const [callers, times] = [4, 1500];

interface Delays {
  /** That took over a second. */
  readonly slow: number;
  /** That had not come back after a minute. */
  readonly missing: number;
}

export const openAndClose: Scenario = {
  name: "disk-open-and-close",
  about: "a file can be opened at once, also while it is closed; with our disk by several callers of one process",
  async run(bed, report) {
    const path = `${await bed.directory("opened")}/file`;
    const hand = await Hand.open(bed, bed.guest(1));
    await hand.do("make", path, "x");
    await hand.close();
    for (const [who, how, processes] of [
      ["one process, by our disk", "disk", 1],
      ["one process, by Node", "node", 1],
      ["two processes, by our disk", "disk", 2],
    ] as const) {
      const { slow, missing } = await openAndCloseBy(bed, processes, how, path);
      report.note(`${who}: of ${callers * times} opens ${slow} took over a second, ${missing} no end`);
      if (processes === 1 && how === "disk") report.must(slow + missing === 0, `${who}: an open waits for a close`);
    }
  },
};

/** Processes of their own each time: what hangs keeps threads. */
async function openAndCloseBy(bed: Bed, processes: number, how: string, path: string): Promise<Delays> {
  const hands = await Promise.all(Array.from({ length: processes }, () => Hand.open(bed, bed.guest(1))));
  try {
    const each = await Promise.all(
      hands.map((hand) => hand.do<Delays>("openAndClose", how, path, callers / processes, times)),
    );
    return {
      slow: each.reduce((sum, { slow }) => sum + slow, 0),
      missing: each.reduce((sum, { missing }) => sum + missing, 0),
    };
  } finally {
    await Promise.all(hands.map((hand) => hand.close()));
  }
}
