// Two refuted designs of a chain that forgets: one checks its win against a listing, the other
// against a floor file.
import { slotName, findSlotNumber } from "../../../src/format/name.ts";
import { hasErrno } from "../../../src/ports/disk-error.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { actor, mustHold, valuesOf, type Actor, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import type { Mutant } from "../mutant.ts";

const slots = "/slots";
const floorPath = "/floor";

/** Wins the number after `known` or a later one. `isValid` is the check after the link. */
async function win(
  disk: Disk,
  name: string,
  known: number,
  isValid: (number: number) => Promise<boolean>,
): Promise<number> {
  const temp = `/temp/${name}/record`;
  await disk.createFile(temp, Buffer.from(name), { sync: false });
  for (let number = known + 1; ; number++) {
    try {
      await disk.link(temp, `${slots}/${slotName(number)}`);
    } catch (error) {
      if (hasErrno(error, "EEXIST")) continue;
      throw error;
    }
    if (await isValid(number)) return number;
  }
}

async function highest(disk: Disk): Promise<number> {
  return Math.max(0, ...(await disk.list(slots)).map((name) => findSlotNumber(name) ?? 0));
}

async function deleteBelow(disk: Disk, floor: number): Promise<void> {
  for (let number = 1; number < floor; number++)
    await disk.unlink(`${slots}/${slotName(number)}`).catch(() => undefined);
}

function appender(times: number, check: (disk: Disk) => (number: number) => Promise<boolean>): Actor {
  return actor({
    // What the actor knows when the scenario begins. The listing is then also in its machine's
    // cache.
    prepare: ({ ports }) => highest(ports.disk),
    run: async ({ name, ports, note }, known) => {
      for (let time = 0, last = known; time < times; time++) {
        last = await win(ports.disk, name, last, check(ports.disk));
        note("won", last);
        if (time + 1 < times) await ports.disk.unlink(`/temp/${name}/record`);
      }
    },
  });
}

async function prepareSlots({ disk }: Ports): Promise<void> {
  for (const path of ["/temp", "/temp/ada", "/temp/bob", slots]) await disk.mkdir(path);
  await disk.createFile(`${slots}/${slotName(1)}`, new Uint8Array(), { sync: false });
  await disk.createFile(floorPath, Buffer.from("0"), { sync: false });
}

const byListing: Scenario = {
  name: "chain that checks its win by a listing",
  about: "The winner's listing comes from its machine's cache.",
  setup: prepareSlots,
  quirks: { staleListings: true },
  check: (facts) => {
    const numbers = valuesOf<number>(facts, "won");
    mustHold(new Set(numbers).size === numbers.length, `a number was won twice: ${numbers.join(", ")}`);
  },
  actors: {
    ada: { ...appender(1, (disk) => async (number) => number >= (await highest(disk))), machine: "m1" },
    bob: { ...appender(2, (disk) => async (number) => number >= (await highest(disk))), machine: "m2" },
    col: { machine: "m3", run: async ({ ports }) => deleteBelow(ports.disk, await highest(ports.disk)) },
  },
};

const aboveFloor =
  (disk: Disk) =>
  async (number: number): Promise<boolean> =>
    number >= Number(Buffer.from(await disk.readFile(floorPath, 20)).toString());

/** Chooses a floor before the scenario begins, so that it may sleep before it writes the floor. */
const floorCollector: Actor = actor({
  prepare: ({ ports }) => highest(ports.disk),
  run: async ({ name, ports }, floor) => {
    await ports.disk.createFile(`/floor-of-${name}`, Buffer.from(String(floor)), { sync: false });
    await ports.disk.rename(`/floor-of-${name}`, floorPath);
    await deleteBelow(ports.disk, floor);
  },
});

const byFloor: Scenario = {
  name: "chain with a floor file and two collectors",
  about: "One collector sleeps before it writes its floor, which then moves back.",
  setup: prepareSlots,
  meanwhile: async ({ disk }) => {
    for (const number of [2, 3])
      await disk.createFile(`${slots}/${slotName(number)}`, new Uint8Array(), { sync: false });
  },
  actors: { ada: appender(1, aboveFloor), col: { ...floorCollector, isFresh: true }, dan: floorCollector },
  check: (facts) => {
    for (const number of valuesOf<number>(facts, "won")) mustHold(number > 3, `number ${number} was won twice`);
  },
};

export const forgetfulChainMutants: readonly Mutant[] = [
  {
    name: "chain checked by listing (C1b)",
    about: "A cached listing does not show that the number was won and deleted before.",
    scenario: byListing,
    breaks: /won twice/,
  },
  {
    name: "chain with a floor file (C3b)",
    about: "The floor of a late collector is lower than the numbers that were deleted.",
    scenario: byFloor,
    breaks: /won twice/,
  },
];
