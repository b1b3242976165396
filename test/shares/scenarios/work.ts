// Three machines that work on one folder: in peace, and while machines die, sleep and are cut off.
// One pair of scenarios for each part of the torture.
import { setTimeout as sleep } from "node:timers/promises";
import { getTortureTask, tortureParts } from "../../../harness/torture/parts.ts";
import type { Bed } from "../bed.ts";
import { Crews } from "../crews.ts";
import { faultsOf, type Fault } from "../faults.ts";
import type { Report, Scenario } from "../scenario.ts";
import { WorkCrew } from "../work-crew.ts";

const leaseMs = 5000;
/** What the guests may take beyond the lease until all machines that are well get on. */
const graceMs = 10_000;
const firstWinMsMax = 60_000;
const shownMax = 10;

/** Two: what one machine remembers of the share is then asked by a second process, too. */
const oneAlone = { workersPerGuest: 2, restMs: 0 };
/** With several parts at once all workers would wait for the processors. */
const manyTogether = { workersPerGuest: 1, restMs: 400 };

const parts = tortureParts.filter((part) => !getTortureTask(part).isForOneMachine);
/** What all else is made of. With the capabilities among them the processors of one machine are not enough. */
const mechanisms = parts.filter((part) => !["handoff", "objects", "files"].includes(part));

export const workScenarios: readonly Scenario[] = [
  ...parts.flatMap((part) => [inPeace(part), underFaults(part, [part])]),
  // At once, because each fault takes its time: so each part can suffer each of them many times
  // within an hour.
  underFaults("all", mechanisms),
];

function inPeace(part: string): Scenario {
  return {
    name: `${part}-in-peace`,
    about: "three machines work on one folder: no number is won twice, nothing acknowledged is missing",
    isLoad: true,
    async run(bed, report) {
      await withCrews(bed, [part], report, async (crew) => {
        const before = crew.wins;
        await sleep(bed.secondsOfLoad * 1000);
        report.note(`${Math.round((crew.wins - before) / bed.secondsOfLoad)} a second, all machines together`);
      });
    },
  };
}

function underFaults(name: string, parts: readonly string[]): Scenario {
  return {
    name: `${name}-under-faults`,
    about:
      "the same while machines are killed, paused, cut off past every lease, lose packets, and the server restarts",
    isLoad: true,
    async run(bed, report) {
      await withCrews(bed, parts, report, async (crew) => {
        const untilMs = performance.now() + bed.secondsOfLoad * 1000;
        const faults = faultsOf(bed, leaseMs);
        const took = new Map<string, number>();
        // Each as often as was asked for, and each time with another victim.
        for (let round = 0; round < faults.length * bed.repeat || performance.now() < untilMs; round++) {
          const fault = faults[round % faults.length];
          if (fault === undefined) break;
          const seconds = await suffer(bed, crew, fault, round, report);
          took.set(fault.name, Math.max(seconds, took.get(fault.name) ?? 0));
          if (crew.isOver) break;
        }
        const longest = [...took].map(([fault, seconds]) => `${fault} ${seconds} s`).join(", ");
        report.note(`the longest that others were held up: ${longest}`);
      });
    },
  };
}

/**
 * One fault to one machine, from its beginning until all get on again; gives how long the spared
 * machines were held up.
 */
async function suffer(bed: Bed, crew: Crews, fault: Fault, round: number, report: Report): Promise<number> {
  // Not the same victim for the same fault each time, though there are as many guests as divide the
  // number of faults.
  const victim = bed.guest(((round + Math.floor(round / bed.guests.length)) % bed.guests.length) + 1);
  const what = `${fault.name} ${victim.name}`;
  const startMs = performance.now();
  const during = fault.run(victim, crew);
  // Its failure is told when it is awaited.
  during.catch(() => undefined);
  // Machines that are well may be held up by the server and by the lease of the victim, but by
  // nothing else.
  const others = bed.guests.filter((guest) => guest !== victim);
  const survivors = fault.sparesOthers ? await crew.waitForWins(others, leaseMs + graceMs) : undefined;
  await during;
  const seconds = Math.round((performance.now() - startMs) / 100) / 10;
  const back = await crew.waitForWins(bed.guests, bed.server.leaseMs + leaseMs + graceMs);
  report.note(
    `${what}: others after ${survivors?.tookSeconds ?? "–"} s; mended after ${seconds} s; all ${back.tookSeconds} s later`,
  );
  if (back.stuck.length > 0 || (survivors?.stuck.length ?? 0) > 0) await bed.collect(what);
  // Otherwise the wait was given up, and the reason is told at the end.
  const heldUp = survivors?.tookSeconds ?? back.tookSeconds;
  if (crew.isOver) return heldUp;
  for (const name of survivors?.stuck ?? []) report.violate(`${what}: ${name} did not get on within lease + 10 s`);
  for (const name of back.stuck) report.violate(`${what}: ${name} does not get on afterwards`);
  return heldUp;
}

export async function withCrews(
  bed: Bed,
  parts: readonly string[],
  report: Report,
  action: (crew: Crews) => Promise<void>,
): Promise<void> {
  const { sabotage } = bed;
  const crews: WorkCrew[] = [];
  for (const part of parts)
    crews.push(
      new WorkCrew(bed, {
        part,
        directory: await bed.directory(part),
        leaseMs,
        sabotage,
        ...(parts.length > 1 ? manyTogether : oneAlone),
      }),
    );
  const crew = new Crews(crews);
  try {
    crew.startAll(bed);
    const { stuck } = await crew.waitForWins(bed.guests, firstWinMsMax);
    if (stuck.length === 0) await action(crew);
    else if (!crew.isOver) report.violate(`nothing was done in ${firstWinMsMax} ms by ${stuck.join(", ")}`);
    await crew.finish();
  } finally {
    await crew.kill();
  }
  await crew.audit();
  report.note(crew.summary);
  for (const violation of crew.violations.slice(0, shownMax)) report.violate(violation);
  for (const failure of crew.failures.slice(0, shownMax)) report.fail(failure);
}
