// A truth about a share: a question that two machines are asked, and what the answer must be.
import type { Bed } from "../bed.ts";
import { Hand } from "../hand.ts";
import type { Report, Scenario } from "../scenario.ts";

/** Two hands on two machines, and a directory of their own. */
export interface Pair {
  readonly bed: Bed;
  readonly here: Hand;
  readonly there: Hand;
  readonly directory: string;
}

export const rounds = 12;
/** What a path that is gone may answer. */
export const gone: readonly string[] = ["ENOENT", "ESTALE"];

export function truth(name: string, about: string, ask: (pair: Pair, report: Report) => Promise<void>): Scenario {
  return {
    name: `disk-${name}`,
    about,
    async run(bed, report) {
      const directory = await bed.directory(name);
      const [here, there] = await Promise.all([Hand.open(bed, bed.guest(1)), Hand.open(bed, bed.guest(2))]);
      try {
        await ask({ bed, here, there, directory }, report);
      } finally {
        await Promise.all([here.close(), there.close()]);
      }
    },
  };
}

/** How often each answer came. */
export function textOf(answers: ReadonlyMap<string, number>): string {
  return [...answers].map(([answer, count]) => `${answer} ${count}`).join(", ");
}
