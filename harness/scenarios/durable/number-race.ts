// Scenarios of the number race: each file is larger than its proof, is staged once, and is tried under one number after
// the other.
import { NumberRace, type Contender } from "../../../src/durable/chain/number-race.ts";
import { isHoldfastError } from "../../../src/errors.ts";
import { slotName } from "../../../src/format/name.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";

const directory = "/versions";
const numbersMax = 3;

export interface RaceScenarioOptions {
  /** The disk that the racers use: the real one, or one that makes a known-wrong race. */
  readonly adapt?: ((disk: Disk) => Disk) | undefined;
  /** Changes what the racers accept as proof that a file is theirs. */
  readonly contend?: ((contender: Contender) => Contender) | undefined;
}

const pathOf = (number: number): string => `${directory}/${slotName(number)}`;
const recordOf = (name: string): string => `version of ${name}\n`;
const contentOf = (name: string): string => `${recordOf(name)}${"body ".repeat(4)}`;

interface Won {
  readonly number: number;
  readonly name: string;
}

function racer({ adapt = (disk) => disk, contend = (same) => same }: RaceScenarioOptions): Actor {
  return actor({
    prepare: async ({ ports, name }) => {
      const temp = `/temp/${name}/version`;
      await ports.disk.createFile(temp, Buffer.from(contentOf(name)), { sync: true });
      return contend({ temp, proof: Buffer.from(recordOf(name)), isPrefix: true });
    },
    run: async ({ ports, name, note }, contender) => {
      const race = new NumberRace(adapt(ports.disk), pathOf);
      try {
        for (let number = 1; number <= numbersMax; number++)
          if (await race.win(number, contender)) return note("won", { number, name } satisfies Won);
      } catch (error) {
        if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) throw error;
      }
    },
  });
}

/** Every winner's file is whole under its number. No number is missing, and no file has two numbers. */
async function numbersAreWhole({ disk }: Ports, facts: readonly Fact[]): Promise<void> {
  const names = (await disk.list(directory)).sort();
  mustHold(
    names.every((name, index) => name === slotName(index + 1)),
    `the numbers have a gap: ${names.join(", ")}`,
  );
  const contents: string[] = [];
  for (const name of names) contents.push(Buffer.from(await disk.readFile(`${directory}/${name}`, 1000)).toString());
  mustHold(new Set(contents).size === contents.length, "a file is there twice");
  for (const { number, name } of valuesOf<Won>(facts, "won"))
    mustHold(contents[number - 1] === contentOf(name), `${name} won number ${number}, and it is another file's`);
}

export function numberRaceScenarios(options: RaceScenarioOptions = {}): Scenario[] {
  return [
    {
      name: "number race: two files, lost replies and power cuts",
      about: "Each file is staged once. A reply may be lost, and the power fails at every moment.",
      profile: "weak",
      powerCuts: true,
      troubles: { lostReply: 1, retransmit: 1 },
      setup: async ({ disk }) => {
        for (const path of ["/temp", "/temp/ada", "/temp/bob", directory]) await disk.mkdir(path);
      },
      isPermanent: (path) => `${path}/`.startsWith(`${directory}/`),
      actors: { ada: racer(options), bob: racer(options) },
      audit: numbersAreWhole,
    },
  ];
}
