// Scenarios of the ground: a publisher that may sleep past its lease, and a sweeper that removes the files of dead
// holders.
import { Ground } from "../../../src/durable/liveness/ground.ts";
import { GroundLayout } from "../../../src/durable/liveness/holder-record.ts";
import { isStillThere, putIfAbsent } from "../../../src/durable/publish/publish.ts";
import type { Staging } from "../../../src/durable/publish/staging.ts";
import { isHoldfastError } from "../../../src/errors.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";
import { hasErrno } from "../../../src/ports/disk-error.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { share } from "../volumes.ts";

const directory = "/ground";
const target = "/order.json";
const leaseMs = 8000;
const content = Buffer.from("the order of ada");

const publisher: Actor = actor({
  prepare: ({ ports }) => Ground.open(ports, directory, { leaseMs }),
  run: async ({ note }, ground) => {
    try {
      note((await putIfAbsent(ground.staging, target, content)) ? "published" : "refused");
    } catch (error) {
      // It slept: a sweeper removed its temp files, or its session ended.
      if (!isHoldfastError(error)) throw error;
      note("failed", error.code);
    }
  },
});

export interface GroundScenarioOptions {
  readonly GroundClass?: typeof Ground;
  readonly isStillThere?: (staging: Staging, path: string) => Promise<boolean>;
}

/** Asks whether an existing file is still there. Nothing removes that file. */
function asker({ isStillThere: ask = isStillThere }: GroundScenarioOptions): Actor {
  return actor({
    prepare: ({ ports }) => Ground.open(ports, directory, { leaseMs }),
    run: async ({ note }, ground) => {
      try {
        note((await ask(ground.staging, target)) ? "there" : "gone");
      } catch (error) {
        if (!isHoldfastError(error, "LOCK_LOST")) throw error;
        note("failed", error.code);
      }
    },
  });
}

/** Opens its ground while another process sweeps. */
const joiner: Actor = actor({
  run: async (context) => await publisher.run(context, await publisher.prepare?.(context)),
});

/** Uses its ground until its session reports the loss, and notes whether it learned that it was declared dead. */
const unaware: Actor = actor({
  prepare: async ({ ports }) => {
    const ground = await Ground.open(ports, directory, { leaseMs });
    return { ground, session: await ground.session() };
  },
  run: async ({ ports, note }, { ground, session }) => {
    await ports.clock.sleep(leaseMs / 4);
    await ground.session();
    // The check is in progress, and its own deadline has not passed.
    await ports.clock.sleep(leaseMs / 4);
    note(session.signal.aborted ? "found out" : "went on");
  },
});

/** Declares all holders dead, although only their clocks stood still. */
async function declareAllDead({ disk }: Ports): Promise<void> {
  const { holders } = new GroundLayout(directory);
  for (const name of await disk.list(holders))
    if (name.endsWith(".json")) await disk.rename(`${holders}/${name}`, `${holders}/${name.replace(/json$/, "dead")}`);
}

/** Sweeps once, or for longer than a lease. */
function sweeper({ GroundClass = Ground, rounds = 6 }: GroundScenarioOptions & { readonly rounds?: number }): Actor {
  return actor({
    prepare: ({ ports }) => GroundClass.open(ports, directory, { leaseMs: 10 * leaseMs }),
    run: async ({ ports, note }, ground) => {
      for (let round = 0; round < rounds; round++) {
        if ((await ground.sweep()).length > 0) return note("swept");
        if (round + 1 < rounds) await ports.clock.sleep(leaseMs / 4);
      }
    },
  });
}

/** Keeps using its temp directory whatever its clocks say, and notes each file that it published from there. */
const sleeper: Actor = actor({
  prepare: async ({ ports }) => (await (await Ground.open(ports, directory, { leaseMs })).session()).temp,
  run: async ({ ports: { disk }, note }, temp) => {
    try {
      await disk.createFile(`${temp}/staged`, content, { sync: false });
      await disk.rename(`${temp}/staged`, target);
      note("published");
    } catch (error) {
      if (!hasErrno(error, "ENOENT")) throw error;
      note("failed");
    }
  },
});

/** Watches the other holder for longer than a lease, and settles it as soon as the rules allow. */
function settler({ GroundClass = Ground }: GroundScenarioOptions): Actor {
  return actor({
    prepare: async ({ ports }) => {
      const ground = await GroundClass.open(ports, directory, { leaseMs: 10 * leaseMs });
      const own = (await ground.session()).holder.id;
      const [other = ""] = (await ground.judgeHolders()).map(({ holder }) => holder.id).filter((id) => id !== own);
      return { ground, other };
    },
    run: async ({ ports, note }, { ground, other }) => {
      for (let round = 0; round < 6; round++) {
        if (await ground.settle(other)) return note("settled");
        await ports.clock.sleep(leaseMs / 4);
      }
    },
  });
}

function settledIsOver(facts: readonly Fact[]): void {
  const order = facts.map(({ what }) => what);
  const [settled, published] = [order.indexOf("settled"), order.indexOf("published")];
  mustHold(settled < 0 || published < settled, "a holder that was settled published a file");
  mustHold(order.includes("stopped") || settled < 0, "a living holder was settled");
}

function onlySleepersFail(facts: readonly Fact[]): void {
  const stopped = facts.some(({ what }) => what === "stopped");
  mustHold(stopped || !facts.some(({ what }) => what === "swept"), "a living holder was swept");
  mustHold(stopped || !facts.some(({ what }) => what === "failed"), "a living holder lost its temp file");
}

export function groundScenarios(options: GroundScenarioOptions = {}): Scenario[] {
  return [
    {
      name: "ground: a publisher against a sweeper",
      size: "medium",
      about:
        "The publisher may sleep past its lease between any two steps. A sweeper on another machine removes the files of dead holders.",
      tempIsShared: true,
      beatsMax: 8,
      pauses: { ms: 3 * leaseMs, count: 1, actors: ["ada"] },
      actors: { ada: { ...publisher, machine: "m1" }, swe: { ...sweeper(options), machine: "m2" } },
      check: onlySleepersFail,
      audit: async ({ disk }, facts) => {
        if (valuesOf(facts, "published").length === 0) return;
        mustHold(await disk.canOpen(target), "the file was acknowledged and is not there");
      },
    },
    {
      name: "ground: a process that asks for another's file against a sweeper",
      size: "medium",
      about:
        "On a share, the check links the file into the asker's own directory. A sweeper removes that directory if the asker sleeps past its lease.",
      tempIsShared: true,
      volume: share,
      beatsMax: 8,
      pauses: { ms: 3 * leaseMs, count: 1, actors: ["ada"] },
      setup: async ({ disk }) => await disk.createFile(target, content, { sync: true }),
      actors: {
        ada: { ...asker(options), machine: "m1" },
        swe: { ...sweeper(options), machine: "m2" },
      },
      check: (facts) => {
        onlySleepersFail(facts);
        mustHold(!facts.some(({ what }) => what === "gone"), "a file that is there was taken for gone");
      },
    },
    settling("ground: a sleeper is settled", options),
    { ...settling("ground: a sleeper is settled, on a share", options), volume: share },
    deathForgotten(options),
    { ...deathForgotten(options), name: "ground: a holder whose death is forgotten, on a share", volume: share },
    {
      name: "ground: a process that joins against a sweeper, stamps are late",
      size: "medium",
      about: "As on NFS, a new file looks decades old to other machines until its maker writes to it.",
      tempIsShared: true,
      volume: share,
      quirks: { lateStamps: true },
      beatsMax: 2,
      actors: {
        ada: { ...joiner, machine: "m1" },
        swe: { ...sweeper({ ...options, rounds: 1 }), machine: "m2" },
      },
      check: onlySleepersFail,
    },
  ];
}

function settling(name: string, options: GroundScenarioOptions): Scenario {
  return {
    name,
    about:
      "The holder may sleep between any two steps, and wakes at the very moment at which another process declares it dead.",
    tempIsShared: true,
    beatsMax: 8,
    pauses: { ms: leaseMs, count: 1, actors: ["ada"] },
    actors: { ada: { ...sleeper, machine: "m1" }, bob: { ...settler(options), machine: "m2" } },
    check: settledIsOver,
  };
}

function deathForgotten(options: GroundScenarioOptions): Scenario {
  return {
    name: "ground: a holder whose death is forgotten",
    about:
      "Others declared the holder dead while its clocks stood still. A sweeper, which may be killed, removes its files and then its death record. The holder still learns of its death.",
    tempIsShared: true,
    killsMax: 1,
    mortal: ["swe"],
    actors: {
      ada: { ...unaware, machine: "m1" },
      swe: { ...sweeper({ ...options, rounds: 1 }), isFresh: true, machine: "m2" },
    },
    meanwhile: declareAllDead,
    check: (facts) =>
      mustHold(!facts.some(({ what }) => what === "went on"), "a process that was judged dead never found out"),
    audit: async ({ disk }, facts) => {
      mustHold(valuesOf(facts, "found out").length === 1, "a process that was judged dead never found out");
      const names = await disk.list(new GroundLayout(directory).holders);
      const isSwept = !facts.some(({ what }) => what === "killed");
      mustHold(!isSwept || !names.some((name) => name.endsWith(".dead")), "the record of a death stays for ever");
    },
  };
}
