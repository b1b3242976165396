// Scenarios of the ground: a publisher that may sleep past its lease, and a sweeper that removes
// what the dead have left.
import { Ground } from "../../../durable/liveness/ground.ts";
import { GroundLayout } from "../../../durable/liveness/holder-record.ts";
import { isStillThere, putIfAbsent } from "../../../durable/publish/publish.ts";
import type { Staging } from "../../../durable/publish/staging.ts";
import { HoldfastError, isHoldfastError } from "../../../errors.ts";
import { actor, mustHold, valuesOf, type Actor, type Fact, type Scenario } from "../../explorer/scenario.ts";
import { hasErrno } from "../../../ports/disk-error.ts";
import type { Ports } from "../../../ports/ports.ts";
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
      // Its temp files were swept, or its session was over: it must have slept.
      if (!(error instanceof HoldfastError)) throw error;
      note("failed", error.code);
    }
  },
});

export interface GroundScenarioOptions {
  readonly GroundClass?: typeof Ground;
  readonly isStillThere?: (staging: Staging, path: string) => Promise<boolean>;
}

/** Asks for a file that stays. */
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

/** Joins while another process sweeps. */
const joiner: Actor = actor({
  run: async (context) => await publisher.run(context, await publisher.prepare?.(context)),
});

/**
 * Uses its ground for as long as it believes in itself, and tells whether it found out that others
 * do not.
 */
const unaware: Actor = actor({
  prepare: async ({ ports }) => {
    const ground = await Ground.open(ports, directory, { leaseMs });
    return { ground, session: await ground.session() };
  },
  run: async ({ ports, note }, { ground, session }) => {
    await ports.clock.sleep(leaseMs / 4);
    await ground.session();
    // The look is on its way, and its own deadline is not reached.
    await ports.clock.sleep(leaseMs / 4);
    note(session.signal.aborted ? "found out" : "went on");
  },
});

/** Declares all holders dead, whose clocks stood still. */
async function declareAllDead({ disk }: Ports): Promise<void> {
  const { holders } = new GroundLayout(directory);
  for (const name of await disk.list(holders))
    if (name.endsWith(".json")) await disk.rename(`${holders}/${name}`, `${holders}/${name.replace(/json$/, "dead")}`);
}

/** Once, or for longer than a lease. */
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

/** Goes on to use its temp directory whatever its clocks say, and tells of each file that it got out of it. */
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

/** Settles the other holder as soon as it may, which it watches for longer than a lease. */
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
        "The publisher may sleep past its lease between any two steps; a sweeper on another machine removes what the dead left.",
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
        "A share is asked by a link into the asker's own directory, which is swept when the asker sleeps past its lease.",
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
      about: "A file that is just being made looks decades old to others, as on NFS, until something is written to it.",
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
    about: "The holder may sleep between any two steps, and wakes at the very moment at which it is taken for dead.",
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
      "Its clocks stood still while others took it for dead. A sweeper takes away what it left and then the record of its death, and may be killed on the way: it finds out all the same.",
    tempIsShared: true,
    killsMax: 1,
    mortal: ["swe"],
    actors: {
      ada: { ...unaware, machine: "m1" },
      swe: { ...sweeper({ ...options, rounds: 1 }), isFresh: true, machine: "m2" },
    },
    meanwhile: declareAllDead,
    check: (facts) =>
      mustHold(!facts.some(({ what }) => what === "went on"), "a process that was taken for dead never found out"),
    audit: async ({ disk }, facts) => {
      mustHold(valuesOf(facts, "found out").length === 1, "a process that was taken for dead never found out");
      const names = await disk.list(new GroundLayout(directory).holders);
      const isSwept = !facts.some(({ what }) => what === "killed");
      mustHold(!isSwept || !names.some((name) => name.endsWith(".dead")), "the record of a death stays for ever");
    },
  };
}
