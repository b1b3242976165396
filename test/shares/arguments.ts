// What the command line of the bed says.
import { parseArgs } from "node:util";

export const serverKinds = ["nfs", "knfsd", "smb"] as const;
export type ServerKind = (typeof serverKinds)[number];

export interface BedArguments {
  readonly servers: readonly ServerKind[];
  /** Only scenarios whose name contains it. */
  readonly only: string;
  /** Only faults whose name contains it. */
  readonly fault: string;
  /** For each scenario with load. */
  readonly minutes: number;
  /** How often each fault comes, at least. */
  readonly repeat: number;
  /** Run the known-wrong variants, and expect that each scenario with load finds them out. */
  readonly sabotage: boolean;
  /** "advised", "plain" (the system's defaults), or options in the syntax of mount(8). */
  readonly mount: string;
  readonly keep: boolean;
}

/** Throws an error for the person at the keyboard. */
export function parseBedArguments(words: readonly string[]): BedArguments {
  const { values, positionals } = parseArgs({
    args: [...words],
    allowPositionals: true,
    options: {
      only: { type: "string", default: "" },
      fault: { type: "string", default: "" },
      minutes: { type: "string", default: "0.25" },
      repeat: { type: "string", default: "1" },
      sabotage: { type: "boolean", default: false },
      mount: { type: "string", default: "advised" },
      keep: { type: "boolean", default: false },
    },
  });
  const servers = serverKinds.filter((kind) => positionals.length === 0 || positionals.includes(kind));
  const strange = positionals.filter((word) => !(serverKinds as readonly string[]).includes(word));
  if (strange.length > 0) throw new RangeError(`There is no server ${strange.join(", ")}: ${serverKinds.join(", ")}.`);
  const minutes = Number(values.minutes);
  if (!(minutes > 0 && minutes <= 24 * 60)) throw new RangeError(`--minutes must be above 0, not ${values.minutes}.`);
  const repeat = Number(values.repeat);
  if (!(Number.isSafeInteger(repeat) && repeat >= 1 && repeat <= 1000))
    throw new RangeError(`--repeat must be a whole number from 1, not ${values.repeat}.`);
  const { only, fault, mount, keep, sabotage } = values;
  return { servers, only, fault, minutes, repeat, mount, keep, sabotage };
}
