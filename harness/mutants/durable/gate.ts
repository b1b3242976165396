// A gate that excludes only callers of the same process.
import { Fifo } from "../../../src/durable/wait/fifo.ts";
import { Gate, type GateHold } from "../../../src/durable/gate/gate.ts";
import { gatePaths as paths, gateScenarios, type OpenGate } from "../../scenarios/durable/gate.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Serves the callers of one process in order. Every process has its own queue. */
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
        pause: async () => undefined,
        resume: async () => true,
        [Symbol.asyncDispose]: release,
      };
    },
  };
};

/** A holder that continues after a pause as if it had never released the lock. */
const gateResumedUnasked: OpenGate = async (ports) => {
  const gate = await Gate.open(ports, paths);
  return {
    acquire: async (options) => ({ ...(await gate.acquire(options)), resume: async () => true }),
  };
};

export const gateMutants: readonly Mutant[] = [
  {
    name: "gate per process",
    about: "Each process excludes only its own callers, as a process without an OS lock would.",
    scenario: scenarioNamed(gateScenarios(gatePerProcess), "gate: two processes, one killed"),
    breaks: /inside together/,
  },
  {
    name: "gate that is resumed without asking for the lock",
    about: "Another process may have entered during the pause.",
    scenario: scenarioNamed(gateScenarios(gateResumedUnasked), "gate: a holder that pauses, one killed"),
    breaks: /inside together/,
  },
  {
    name: "gate whose lock file is not compared with its name",
    about: "A process with the old file open and one that opens the new file do not exclude each other.",
    scenario: {
      ...scenarioNamed(gateScenarios(), "gate: lock files that are deleted while no other process is inside"),
      quirks: { osLocks: "uncompared" },
    },
    breaks: /inside together/,
  },
];
