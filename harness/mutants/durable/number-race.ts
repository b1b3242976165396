// Known-wrong variants of the race for a number, and of the plain chain, which uses it.
import type { Disk } from "../../../src/ports/disk.ts";
import { chainScenarios } from "../../scenarios/durable/chain.ts";
import { numberRaceScenarios } from "../../scenarios/durable/number-race.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Syncs what this process linked, and assumes that visible links of other processes are durable. */
function trustingNames(disk: Disk): Disk {
  let hasLinked = false;
  const changes: Pick<Disk, "link" | "syncDirectory"> = {
    link: async (from, to) => {
      await disk.link(from, to);
      hasLinked = true;
    },
    syncDirectory: async (path) => {
      if (hasLinked) await disk.syncDirectory(path);
      hasLinked = false;
    },
  };
  return new Proxy(disk, {
    get(target, key): unknown {
      const source = key in changes ? changes : target;
      const value: unknown = Reflect.get(source, key);
      return typeof value === "function" ? value.bind(source) : value;
    },
  });
}

const twoFiles = "number race: two files, lost replies and power cuts";

export const numberRaceMutants: readonly Mutant[] = [
  {
    name: "chain built on an entry that is not durable",
    about: "A power cut loses the entry and keeps the one after it.",
    scenario: scenarioNamed(chainScenarios(trustingNames), "plain chain: two appenders, power cuts (weak)"),
    breaks: /has a gap/,
  },
  {
    name: "number after one that is not durable",
    about: "A power cut loses the number and keeps the one after it.",
    // Runs without lost replies, after which this disk would not know its own links.
    scenario: { ...scenarioNamed(numberRaceScenarios({ adapt: trustingNames }), twoFiles), troubles: {} },
    breaks: /the numbers have a gap/,
  },
  {
    name: "proof compared with the whole of a larger file",
    about: "After a lost reply, the process does not recognize its own file and wins a second number with it.",
    scenario: scenarioNamed(numberRaceScenarios({ contend: (own) => ({ ...own, isPrefix: false }) }), twoFiles),
    breaks: /a file is there twice/,
  },
];
