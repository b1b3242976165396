// The command `console`: a console stays open beside processes that work and are killed, and its cost is reported.
import type { Command } from "commander";
import { parseAtLeastOne } from "../command-line.ts";
import { endure, type EnduranceResult } from "./endurance.ts";

interface ConsoleFlags {
  readonly minutes: number;
  readonly quiet: number;
  readonly processes: number;
  readonly dir?: string;
}

/** The memory of the last tenth may be larger than that of the fifth by this factor. */
export const growthMax = 1.3;
export const idleCoresMax = 0.02;

export function registerConsole(program: Command): void {
  program
    .command("console")
    .description(
      "A console stays open beside processes that work on all parts of a store and are killed and stopped; then nothing happens for a while. Reports its memory, its processor time, and every trace that it left. Linux only.",
    )
    .option("--minutes <n>", "how long the processes work", parseAtLeastOne, 60)
    .option("--quiet <seconds>", "how long nothing happens afterwards", parseAtLeastOne, 60)
    .option("--processes <n>", "how many work at the same time", parseAtLeastOne, 6)
    .option("--dir <path>", "make the store in there (default: where temporary files are)")
    .action(async ({ minutes, quiet, processes, dir }: ConsoleFlags) => {
      const onSecond = (second: number, memoryMb: number): void => {
        if (second % 60 === 0) console.error(`${second / 60} min: ${memoryMb.toFixed(0)} MB`);
      };
      const seed = Math.floor(Math.random() * 2 ** 31);
      const found = await endure({ stormSeconds: 60 * minutes, quietSeconds: quiet, processes, seed, parent: dir, onSecond }); // prettier-ignore
      const findings = findingsOf(found);
      const { operations, kills, stops, samples, answers, idleCores, memoryMb } = found;
      const tenths = tenthsOf(memoryMb).map((each) => each.toFixed(0));
      console.log(`${operations} operations, ${kills} kills, ${stops} stops; ${samples} samples, ${answers} views`);
      console.log(`memory by tenths of the time, median, MB: ${tenths.join(" ")}`);
      console.log(`of one core when nothing happens: ${(100 * idleCores).toFixed(2)} %`);
      console.log(findings.length === 0 ? "no trace in the store" : findings.join("\n"));
      process.exitCode = findings.length === 0 ? 0 : 1;
    });
}

/** Returns every broken promise. */
export function findingsOf(found: EnduranceResult): string[] {
  const { openForWriting, osLocks, asHolder, complaints, changed, endedWith, idleCores, memoryMb } = found;
  const tenths = tenthsOf(memoryMb);
  const [middle = 0, last = 0] = [tenths[4], tenths[9]];
  return [
    ...openForWriting.map((path) => `open for writing: ${path}`),
    ...osLocks.map((line) => `holds a lock: ${line}`),
    ...asHolder.map((holder) => `is a holder: ${holder}`),
    ...complaints,
    ...changed.map((name) => `changed while nothing happened: ${name}`),
    ...(endedWith === undefined ? [] : [`the console ended with ${endedWith}`]),
    ...(idleCores <= idleCoresMax ? [] : [`${(100 * idleCores).toFixed(2)} % of a core when nothing happens`]),
    ...(last <= growthMax * middle ? [] : [`memory grew from ${middle.toFixed(0)} to ${last.toFixed(0)} MB`]),
  ];
}

/** The median of each tenth. */
export function tenthsOf(values: readonly number[]): number[] {
  return Array.from({ length: 10 }, (_, tenth) => {
    const part = values.slice(Math.floor((tenth * values.length) / 10), Math.floor(((tenth + 1) * values.length) / 10));
    return part.toSorted((one, other) => one - other)[Math.floor(part.length / 2)] ?? 0;
  });
}
