// Scenarios of the gate: several processes in one critical section, one of them killed.
import { Gate } from "../../../durable/gate/gate.ts";
import type { Ports } from "../../../ports/ports.ts";
import { actor, mustHold, type Actor, type ActorContext, type Fact, type Scenario } from "../../explorer/scenario.ts";

/** What the scenarios run on: the real gate, or a known-wrong variant. */
export type OpenGate = (ports: Ports) => Promise<Pick<Gate, "acquire">>;

const paths = { lockPath: "/store/.lock", turnstilePath: "/store/.next" };
const openGate: OpenGate = (ports) => Gate.open(ports, paths);

function worker(open: OpenGate, times: number): Actor {
  return actor({
    prepare: ({ ports }) => open(ports),
    run: (context, gate) => work(context, gate, times),
  });
}

/** Opens the gate only when the others are at work. */
function newcomer(open: OpenGate): Actor {
  return actor({ run: async (context) => work(context, await open(context.ports), 1) });
}

async function work({ ports, note }: ActorContext, gate: Pick<Gate, "acquire">, times: number): Promise<void> {
  for (let time = 0; time < times; time++) {
    const hold = await gate.acquire();
    note("enter");
    // Something that takes a step, so that the others can come in if nothing keeps them out.
    await ports.disk.canOpen("/store");
    note("leave");
    await hold.release();
  }
}

/**
 * Deletes the lock files while it is inside itself, so that no other process is: a clean-up, a
 * restore.
 */
function cleaner(open: OpenGate): Actor {
  return actor({
    prepare: ({ ports }) => open(ports),
    run: async ({ ports }, gate) => {
      const hold = await gate.acquire();
      for (const path of Object.values(paths)) await ports.disk.unlink(path);
      await hold.release();
    },
  });
}

/** The processes that have entered and neither left nor died. */
function inside(facts: readonly Fact[]): string[] {
  const names = new Set<string>();
  for (const { actor: name, what } of facts) {
    if (what === "enter") names.add(name);
    else names.delete(name);
  }
  return [...names];
}

export function gateScenarios(open: OpenGate = openGate): Scenario[] {
  const shared = {
    setup: async (ports: Ports) => ports.disk.mkdir("/store"),
    check: (facts: readonly Fact[]) =>
      mustHold(inside(facts).length <= 1, `${inside(facts).join(" and ")} are inside together`),
  };
  return [
    {
      name: "gate: two processes, one killed",
      size: "medium",
      about: "Each enters twice; one may be killed at any moment, also inside.",
      ...shared,
      actors: { ada: worker(open, 2), bob: worker(open, 2) },
      killsMax: 1,
    },
    {
      name: "gate: three processes, one killed",
      size: "medium",
      about: "Each enters once; one may be killed at any moment, also in the turnstile.",
      ...shared,
      actors: { ada: worker(open, 1), bob: worker(open, 1), cleo: worker(open, 1) },
      killsMax: 1,
    },
    {
      name: "gate: lock files that are deleted while no other process is inside",
      size: "medium",
      about: "One process has them open by then and one opens them before, meanwhile or after.",
      ...shared,
      actors: { ada: worker(open, 1), bob: newcomer(open), cleaner: cleaner(open) },
    },
  ];
}
