// The torture of the gate: many processes count in one file, one at a time.
import { openGate } from "../../src/durable/gate/gate-record.ts";
import { countOne, readCounts } from "./counts.ts";
import { sweeper, type TortureTask } from "./task.ts";

export const gateTask: TortureTask = {
  promise: "loses no update, though its holders are killed inside",
  longRuns: [{ seed: 3, seconds: 8, atLeast: { appends: 20, kills: 5, killsInside: 1, stops: 20 } }],
  sabotage: { about: "has no gate", seed: 4 },
  isForOneMachine: true,

  async work(tools, signal) {
    const { ground, life, directory, sabotage, report } = tools;
    const gate = await openGate(ground.ports, ground.staging, directory);
    const sweep = sweeper(tools);
    try {
      while (!signal.aborted) {
        life.throwIfOver();
        const hold = sabotage ? undefined : await gate.acquire({ signal });
        report({ kind: "entered" });
        try {
          await countOne(tools);
        } finally {
          report({ kind: "left" });
          await hold?.release();
        }
        await sweep();
      }
    } catch (error) {
      if (error !== signal.reason) throw error;
    } finally {
      await gate.close();
    }
  },

  async find({ ground, directory }) {
    return { state: await readCounts(ground.ports.disk, directory), epochs: 0 };
  },
};
