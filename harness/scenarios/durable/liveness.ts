// Scenarios of liveness: a holder sleeps, beats or dies, and a judge on another machine decides whether it is alive.
import { GroundLayout, type HolderRecord } from "../../../src/durable/liveness/holder-record.ts";
import { HolderRecords } from "../../../src/durable/liveness/holder-records.ts";
import { HolderSession } from "../../../src/durable/liveness/holder-session.ts";
import { LivenessJudge, type HolderState } from "../../../src/durable/liveness/liveness-judge.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { actor, mustHold, type Actor, type Fact, type Scenario } from "../../../src/testing/explorer/scenario.ts";

const layout = new GroundLayout("/ground");
const leaseMs = 8000;

/** The parts under test: the real ones, or known-wrong variants. */
export interface Judging {
  /** Changes the holder's ports. Default: no change. */
  readonly adapt?: (ports: Ports) => Ports;
  /** Returns whether this holder may still act. */
  readonly goesOn: (session: HolderSession, ports: Ports) => Promise<boolean>;
  readonly makeJudge: (ports: Ports, layout: GroundLayout) => Pick<LivenessJudge, "observe">;
  /** Returns what the judge knows about the holder. Default: its record, or its heartbeat if there is no record. */
  readonly find?: (ports: Ports, layout: GroundLayout, id: string) => Promise<HolderRecord | undefined>;
}

const judging: Judging = {
  goesOn: async (session) => !session.isOver,
  makeJudge: (ports, ground) => new LivenessJudge(ports, ground),
};

/** Acts now and then, for as long as it believes that it may. */
function holder({ goesOn, adapt = (ports) => ports }: Judging, times: number): Actor {
  return actor({
    prepare: ({ ports }) => HolderSession.begin(adapt(ports), layout, { leaseMs, name: "" }),
    run: async ({ ports, note }, session) => {
      for (let time = 0; time < times; time++) {
        await ports.clock.sleep(leaseMs / 4);
        if (!(await goesOn(session, ports))) return note("gave up");
        note("acted");
      }
    },
  });
}

/** Checks the holder at most `looks` times, until it is judged dead. */
function judge({ makeJudge: makeWitness, find = findHolder }: Judging, looks: number, everyMs = leaseMs / 4): Actor {
  return actor({
    isFresh: true,
    prepare: async ({ ports }) => makeWitness(ports, layout),
    run: async ({ ports, note }, judge) => {
      const id = await onlyHolderId(ports);
      for (let look = 0; look < looks; look++) {
        note("looks");
        const other = await find(ports, layout, id);
        const state: HolderState = other === undefined ? "dead" : await judge.observe(other);
        if (state === "dead") return note("judged dead");
        await ports.clock.sleep(everyMs);
      }
      note("judged alive");
    },
  });
}

/** The same judge, but the holder's record is torn, and it checks more often than the holder beats. */
function judgeOfTornRecord(how: Judging, looks: number): Actor {
  const { run } = judge(how, looks, leaseMs / 16);
  return actor({
    isFresh: true,
    prepare: async ({ ports }) => {
      await tearRecord(ports);
      return how.makeJudge(ports, layout);
    },
    run,
  });
}

async function findHolder(ports: Ports, ground: GroundLayout, id: string): Promise<HolderRecord | undefined> {
  return await new HolderRecords(ports.disk, ground).find(id);
}

async function onlyHolderId(ports: Ports): Promise<string> {
  const name = (await ports.disk.list(layout.holders)).find((each) => each.endsWith(".json")) ?? "";
  return name.slice(0, -".json".length);
}

/** Cuts the only record to its first half, as a damaged disk would leave it. */
async function tearRecord(ports: Ports): Promise<void> {
  const path = layout.record(await onlyHolderId(ports));
  const whole = await ports.disk.readFile(path, 4096);
  await ports.disk.unlink(path);
  await ports.disk.createFile(path, whole.subarray(0, whole.length / 2), { sync: true });
}

/** No process acts after it has been judged dead. */
function deathIsFinal(facts: readonly Fact[]): void {
  const judged = facts.findIndex(({ what }) => what === "judged dead");
  mustHold(
    judged < 0 || !facts.slice(judged).some(({ what }) => what === "acted"),
    "a holder acted after it was judged dead",
  );
}

function livenessScenario(scenario: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>): Scenario {
  return {
    setup: async (ports) => {
      for (const path of [layout.directory, layout.holders, layout.temps]) await ports.disk.mkdir(path);
    },
    check: deathIsFinal,
    ...scenario,
  };
}

export function livenessScenarios(how: Judging = judging): Scenario[] {
  return [
    livenessScenario({
      name: "liveness: a sleeping holder is evicted",
      size: "medium",
      about: "The holder may sleep longer than its lease at any moment, while another machine watches it.",
      beatsMax: 3,
      pauses: { ms: 2 * leaseMs, count: 1, actors: ["ada"] },
      actors: { ada: { ...holder(how, 6), machine: "m1" }, wit: { ...judge(how, 8), machine: "m2" } },
    }),
    livenessScenario({
      name: "liveness: clocks that jump kill no holder",
      about: "A wall clock may jump ahead by an hour. A holder that beats is not judged dead because of it.",
      beatsMax: 10,
      clockJumps: { ms: 3_600_000, count: 1 },
      actors: { ada: { ...holder(how, 2), machine: "m1" }, wit: { ...judge(how, 3), machine: "m2" } },
    }),
    livenessScenario({
      name: "liveness: a living holder whose record is torn",
      about: "The holder's record is unreadable, but the holder beats: no judge may declare it dead.",
      beatsMax: 10,
      actors: {
        ada: { ...holder(how, 3), machine: "m1" },
        wit: { ...judgeOfTornRecord(how, 7), machine: "m2" },
      },
    }),
    livenessScenario({
      name: "liveness: a killed process of this kernel is dead at once",
      about: "In containers every process has pid 1. The kernel lock shows which one is dead.",
      ...killable,
      actors: {
        ada: { ...holder(how, 2), pid: 1, container: "a" },
        wit: { ...judge(how, 3), pid: 1, container: "b" },
      },
    }),
    livenessScenario({
      name: "liveness: a pid of another container",
      about: "The holder lives in another container, so its pid does not exist in the judge's container.",
      ...killable,
      killsMax: 0,
      actors: {
        ada: { ...holder(how, 2), pid: 7, container: "a" },
        wit: { ...judge(how, 3), pid: 1, container: "b" },
      },
    }),
    livenessScenario({
      name: "liveness: a pid that is used again",
      about: "After the holder has died, another process gets its pid.",
      ...killable,
      actors: {
        ada: { ...holder(how, 2), pid: 7 },
        wit: judge(how, 3),
        zoe: { pid: 7, run: async ({ ports }) => ports.clock.sleep(10 * leaseMs) },
      },
    }),
  ];
}

/** The holder may be killed; the judge must be right either way. */
const killable: Partial<Scenario> = {
  beatsMax: 3,
  killsMax: 1,
  mortal: ["ada"],
  check: (facts) => {
    deathIsFinal(facts);
    const killed = facts.findIndex(({ what }) => what === "killed");
    const judgedDead = facts.findIndex(({ what }) => what === "judged dead");
    const judgedAlive = facts.findIndex(({ what }) => what === "judged alive");
    mustHold(judgedDead < 0 || (killed >= 0 && killed < judgedDead), "a living holder was judged dead");
    // The last checks came a quarter of a lease apart. If the holder was killed before all of them, the judge has
    // observed its death.
    mustHold(
      judgedAlive < 0 || killed < 0 || !facts.slice(killed, judgedAlive).some(({ what }) => what === "looks"),
      "a dead holder was judged alive",
    );
  },
};
