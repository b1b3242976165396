// A gate that each process has for itself.
import { Fifo } from "../../../durable/wait/fifo.ts";
import type { GateHold } from "../../../durable/gate/gate.ts";
import { gateScenarios, type OpenGate } from "../../scenarios/durable/gate.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/**
 * First come, first served, among the callers of one process; the others have a line of their own.
 */
const gatePerProcess: OpenGate = async () => {
  const turn = new Fifo();
  return {
    acquire: async (): Promise<GateHold> => {
      await turn.take();
      const release = async (): Promise<void> => turn.give();
      const { signal } = new AbortController();
      return {
        signal,
        acquiredAt: new Date(0),
        isContended: async () => false,
        assertHeld: async () => undefined,
        lockId: "",
        release,
        [Symbol.asyncDispose]: release,
      };
    },
  };
};

export const gateMutants: readonly Mutant[] = [
  {
    name: "gate per process",
    about: "What a process does when it has no OS lock and goes on without.",
    scenario: scenarioNamed(gateScenarios(gatePerProcess), "gate: two processes, one killed"),
    breaks: /inside together/,
  },
  {
    name: "gate whose lock file is not compared with its name",
    about: "A process that has the old file open and one that opens the new one do not exclude each other.",
    scenario: {
      ...scenarioNamed(gateScenarios(), "gate: lock files that are deleted while no other process is inside"),
      quirks: { osLocks: "uncompared" },
    },
    breaks: /inside together/,
  },
];
