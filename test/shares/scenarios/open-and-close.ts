// Whether a file can be opened while another process of the same machine, or this one, closes it.
import type { Bed } from "../bed.ts";
import { Hand } from "../hand.ts";
import type { Scenario } from "../scenario.ts";

const callers = 4;
/** All callers together. */
const times = 6000;

interface Opens {
  readonly opened: number;
  /** Of these, those that took about 5 s. */
  readonly slow: number;
  /** That were begun and had not come back when the minute was over. */
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
      const { opened, slow, missing } = await openAndCloseBy(bed, processes, how, path);
      report.note(`${who}: of ${opened} opens ${slow} took 5 s; ${missing} did not come back`);
      if (processes === 1 && how === "disk") report.must(slow === 0, `${who}: an open waits for a close`);
    }
  },
};

/** Processes of their own each time: what hangs keeps threads. */
async function openAndCloseBy(bed: Bed, processes: number, how: string, path: string): Promise<Opens> {
  const hands = await Promise.all(Array.from({ length: processes }, () => Hand.open(bed, bed.guest(1))));
  try {
    const each = await Promise.all(
      hands.map((hand) => hand.do<Opens>("openAndClose", how, path, callers / processes, times / processes)),
    );
    const sum = (of: (opens: Opens) => number): number => each.reduce((total, opens) => total + of(opens), 0);
    return {
      opened: sum(({ opened }) => opened),
      slow: sum(({ slow }) => slow),
      missing: sum((opens) => opens.missing),
    };
  } finally {
    await Promise.all(hands.map((hand) => hand.close()));
  }
}
