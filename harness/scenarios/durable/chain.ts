// Scenarios of the plain chain: appenders, a kill, lost replies, a failing disk and power cuts.
import { Chain } from "../../../src/durable/chain/chain.ts";
import type { Staging } from "../../../src/durable/publish/staging.ts";
import { isHoldfastError } from "../../../src/errors.ts";
import { textOf } from "../../../src/format/decoding.ts";
import type { RecordKind } from "../../../src/format/record.ts";
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
import type { CrashProfile } from "../../../src/testing/sim/persistence.ts";

const directory = "/chain";
const textKind: RecordKind<string> = { kind: "text", decode: textOf };

/** The disk that the chain uses: the real one, or one that turns it into a known-wrong chain. */
type Adapt = (disk: Disk) => Disk;
const asItIs: Adapt = (disk) => disk;

function openChain({ disk, random }: Ports, name: string, adapt: Adapt = asItIs): Chain<string> {
  const staging: Staging = { disk: adapt(disk), random, directory: async () => `/temp/${name}` };
  return new Chain(staging, directory, textKind);
}

interface Won {
  readonly number: number;
  readonly text: string;
}

function appenderOn(adapt: Adapt, times: number): Actor {
  return actor({
    prepare: async ({ ports, name }) => openChain(ports, name, adapt),
    run: async ({ name, note }, chain) => {
      for (let time = 1; time <= times; time++) {
        const text = `${name}:${time}`;
        try {
          const entry = await chain.append(text, () => text);
          if (entry !== undefined) note("won", { number: entry.number, text } satisfies Won);
        } catch (error) {
          if (!isHoldfastError(error, "OUTCOME_UNKNOWN", "IO_ERROR", "DISK_FULL")) throw error;
          note("unknown", text);
        }
      }
    },
  });
}

function noNumberTwice(facts: readonly Fact[]): void {
  const numbers = valuesOf<Won>(facts, "won").map(({ number }) => number);
  mustHold(new Set(numbers).size === numbers.length, `a number was won twice: ${numbers.join(", ")}`);
}

/** Every acknowledged append is in the chain under its number. The chain has no gap and no duplicate. */
async function chainIsWhole(ports: Ports, facts: readonly Fact[]): Promise<void> {
  const chain = openChain(ports, "auditor");
  const texts: string[] = [];
  for (let entry = await chain.find(1); entry !== undefined; entry = await chain.find(entry.number + 1))
    texts.push(entry.body);
  mustHold((await chain.last())?.number === (texts.length || undefined), "the chain has a gap");
  mustHold(new Set(texts).size === texts.length, `an append is there twice: ${texts.join(", ")}`);
  for (const { number, text } of valuesOf<Won>(facts, "won"))
    mustHold(
      texts[number - 1] === text,
      `${text} was acknowledged as number ${number}, but the chain is ${texts.join(", ")}`,
    );
}

function chainScenario(scenario: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>): Scenario {
  return {
    setup: async ({ disk }) => {
      for (const path of ["/temp", directory, "/temp/auditor"]) await disk.mkdir(path);
      for (const name of Object.keys(scenario.actors)) await disk.mkdir(`/temp/${name}`);
    },
    isPermanent: (path) => `${path}/`.startsWith(`${directory}/`),
    check: noNumberTwice,
    audit: chainIsWhole,
    ...scenario,
  };
}

export function chainScenarios(adapt: Adapt = asItIs): Scenario[] {
  const appender = (times: number): Actor => appenderOn(adapt, times);
  const profiles: readonly CrashProfile[] = ["ext4-ordered", "weak"];
  return [
    chainScenario({
      name: "plain chain: three appenders, a kill and a lost reply",
      size: "medium",
      about: "Each process appends once. One may be killed, and one reply may be lost.",
      actors: { ada: appender(1), bob: appender(1), cleo: appender(1) },
      alike: ["ada", "bob", "cleo"],
      killsMax: 1,
      troubles: { lostReply: 1 },
    }),
    chainScenario({
      name: "plain chain: failing disk",
      size: "medium",
      about: "Any operation may fail with a full disk, an I/O error or a stale handle.",
      actors: { ada: appender(2), bob: appender(1) },
      errors: { errnos: ["ENOSPC", "EIO", "ESTALE"] },
      troubles: { error: 1 },
    }),
    ...profiles.map((profile) =>
      chainScenario({
        name: `plain chain: two appenders, power cuts (${profile})`,
        size: "medium",
        about: "The power fails at every moment. Acknowledged appends survive, and no earlier entry is missing.",
        profile,
        powerCuts: true,
        actors: { ada: appender(1), bob: appender(2) },
      }),
    ),
  ];
}
