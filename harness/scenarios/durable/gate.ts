// Scenarios of the gate: several processes in one critical section, one of them killed.
import { Gate } from "../../../src/durable/gate/gate.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import {
  actor,
  mustHold,
  type Actor,
  type ActorContext,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";

/** Opens the gate: the real one, or a known-wrong variant. */
export type OpenGate = (ports: Ports) => Promise<Pick<Gate, "acquire">>;

export const gatePaths = { lockPath: "/store/.lock", turnstilePath: "/store/.next" };
const openGate: OpenGate = (ports) => Gate.open(ports, gatePaths);

function worker(open: OpenGate, times: number): Actor {
  return actor({
    prepare: ({ ports }) => open(ports),
    run: (context, gate) => work(context, gate, times),
  });
}

/** Pauses inside, and carries on only if no other process has entered meanwhile. */
function pauser(open: OpenGate): Actor {
  return actor({
    prepare: ({ ports }) => open(ports),
    run: async ({ ports, note }, gate) => {
      const hold = await gate.acquire();
      note("enter");
      await ports.disk.canOpen("/store");
      note("leave");
      await hold.pause();
      if (await hold.resume()) {
        note("enter");
        await ports.disk.canOpen("/store");
        note("leave");
      }
      await hold.release();
    },
  });
}

/** Opens the gate only after the others have started. */
function newcomer(open: OpenGate): Actor {
  return actor({ run: async (context) => work(context, await open(context.ports), 1) });
}

async function work({ ports, note }: ActorContext, gate: Pick<Gate, "acquire">, times: number): Promise<void> {
  for (let time = 0; time < times; time++) {
    const hold = await gate.acquire();
    note("enter");
    // One step inside, during which another process can enter if nothing excludes it.
    await ports.disk.canOpen("/store");
    note("leave");
    await hold.release();
  }
}

/**
 * Deletes the lock files while it holds the gate, as a clean-up or a restore might. No other process is inside then.
 */
function cleaner(open: OpenGate): Actor {
  return actor({
    prepare: ({ ports }) => open(ports),
    run: async ({ ports }, gate) => {
      const hold = await gate.acquire();
      for (const path of Object.values(gatePaths)) await ports.disk.unlink(path);
      await hold.release();
    },
  });
}

/** Returns the processes that have entered and have neither left nor died. */
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
      about: "Each process enters twice. One may be killed at any moment, even while inside.",
      ...shared,
      actors: { ada: worker(open, 2), bob: worker(open, 2) },
      killsMax: 1,
    },
    {
      name: "gate: three processes, one killed",
      size: "medium",
      about: "Each process enters once. One may be killed at any moment, even in the turnstile.",
      ...shared,
      actors: { ada: worker(open, 1), bob: worker(open, 1), cleo: worker(open, 1) },
      killsMax: 1,
    },
    {
      name: "gate: a holder that pauses, one killed",
      about:
        "One process pauses inside and the other may enter meanwhile. One may be killed at any moment, even during the pause.",
      ...shared,
      actors: { ada: pauser(open), bob: worker(open, 1) },
      killsMax: 1,
    },
    {
      name: "gate: a holder that pauses while its lock files are deleted",
      size: "medium",
      about: "The paused process must not carry on under the old file beside a process that entered under the new one.",
      ...shared,
      actors: { ada: pauser(open), bob: newcomer(open), cleaner: cleaner(open) },
    },
    {
      name: "gate: lock files that are deleted while no other process is inside",
      size: "medium",
      about: "One process opened the lock files before they are deleted. The other opens them before, during or after.",
      ...shared,
      actors: { ada: worker(open, 1), bob: newcomer(open), cleaner: cleaner(open) },
    },
  ];
}
