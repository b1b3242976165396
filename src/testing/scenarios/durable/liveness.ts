// Scenarios of liveness: a holder that sleeps, beats or dies, and a judge on another machine that
// judges it.
import { GroundLayout, holderKind, type HolderRecord } from "../../../durable/liveness/holder-record.ts";
import { HolderSession } from "../../../durable/liveness/holder-session.ts";
import { getRecord } from "../../../durable/publish/record-file.ts";
import { LivenessJudge, type HolderState } from "../../../durable/liveness/liveness-judge.ts";
import type { Ports } from "../../../ports/ports.ts";
import { actor, mustHold, type Actor, type Fact, type Scenario } from "../../explorer/scenario.ts";

const layout = new GroundLayout("/ground");
const leaseMs = 8000;

/** What the scenarios run on: the real ones, or known-wrong variants. */
export interface Judging {
  /** What the holder runs on. Default: what it is given. */
  readonly adapt?: (ports: Ports) => Ports;
  /** Whether this holder may still act. */
  readonly goesOn: (session: HolderSession, ports: Ports) => Promise<boolean>;
  readonly makeJudge: (ports: Ports, layout: GroundLayout) => Pick<LivenessJudge, "observe">;
}

const judging: Judging = {
  goesOn: async (session) => !session.isOver,
  makeJudge: (ports, ground) => new LivenessJudge(ports, ground),
};

/** Acts now and then for as long as it believes that it may. */
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

/** Looks at the holder until it is judged dead, but no longer than `looks`. */
function judge({ makeJudge: makeWitness }: Judging, looks: number): Actor {
  return actor({
    isFresh: true,
    prepare: async ({ ports }) => makeWitness(ports, layout),
    run: async ({ ports, note }, judge) => {
      const other = await onlyHolder(ports);
      for (let look = 0; look < looks; look++) {
        note("looks");
        const state: HolderState = await judge.observe(other);
        if (state === "dead") return note("judged dead");
        await ports.clock.sleep(leaseMs / 4);
      }
      note("judged alive");
    },
  });
}

async function onlyHolder(ports: Ports): Promise<HolderRecord> {
  const name = (await ports.disk.list(layout.holders)).find((each) => each.endsWith(".json")) ?? "";
  return await getRecord(ports.disk, holderKind, `${layout.holders}/${name}`);
}

/** No process acts after it was judged dead. */
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
      about: "The holder may sleep for more than its lease at any moment, while another machine watches it.",
      beatsMax: 3,
      pauses: { ms: 2 * leaseMs, count: 1, actors: ["ada"] },
      actors: { ada: { ...holder(how, 6), machine: "m1" }, wit: { ...judge(how, 8), machine: "m2" } },
    }),
    livenessScenario({
      name: "liveness: clocks that jump kill no holder",
      about: "A wall clock may be set ahead by an hour; a holder that beats is not judged dead for it.",
      beatsMax: 10,
      clockJumps: { ms: 3_600_000, count: 1 },
      actors: { ada: { ...holder(how, 2), machine: "m1" }, wit: { ...judge(how, 3), machine: "m2" } },
    }),
    livenessScenario({
      name: "liveness: a killed process of this kernel is dead at once",
      about: "In containers every process has pid 1; the kernel's lock tells which one is dead.",
      ...killable,
      actors: {
        ada: { ...holder(how, 2), pid: 1, container: "a" },
        wit: { ...judge(how, 3), pid: 1, container: "b" },
      },
    }),
    livenessScenario({
      name: "liveness: a pid of another container",
      about: "The judge has no process with the pid of the holder, which lives in another container.",
      ...killable,
      killsMax: 0,
      actors: {
        ada: { ...holder(how, 2), pid: 7, container: "a" },
        wit: { ...judge(how, 3), pid: 1, container: "b" },
      },
    }),
    livenessScenario({
      name: "liveness: a pid that is used again",
      about: "After the holder is dead another process has its pid.",
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
    // The last looks came a quarter of a lease apart, so a holder that was killed before any of
    // them was observed dead.
    mustHold(
      judgedAlive < 0 || killed < 0 || !facts.slice(killed, judgedAlive).some(({ what }) => what === "looks"),
      "a dead holder was judged alive",
    );
  },
};
