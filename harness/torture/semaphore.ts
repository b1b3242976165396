// The torture of the semaphore: many processes count in one file under a lock file, and take over the lock file of a
// killed holder.
import { SemaphoreProtocol } from "../../src/locks/semaphore/protocol.ts";
import { InProcessLocks } from "../../src/locks/semaphore/in-process.ts";
import { PortsSemaphore } from "../../src/locks/semaphore/semaphore.ts";
import { RefreshByTruncate } from "../mutants/locks/semaphore.ts";
import { countOne, readCounts } from "./counts.ts";
import { sweeper, type TortureTask, type TortureTools } from "./task.ts";

const lockFile = "counts.lock";

export const semaphoreTask: TortureTask = {
  promise: "loses no update, though its holders are killed inside",
  longRuns: [{ seed: 11, seconds: 8, atLeast: { appends: 20, kills: 5, killsInside: 1 } }],
  lockFileForPerson: lockFile,

  async work(tools, signal) {
    const { life, report } = tools;
    const semaphore = openSemaphore(tools);
    const sweep = sweeper(tools);
    try {
      while (!signal.aborted) {
        life.throwIfOver();
        const hold = await semaphore.acquire({ signal });
        report({ kind: "entered" });
        try {
          await countOne(tools);
        } finally {
          report({ kind: "left" });
          await hold.release();
        }
        await sweep();
      }
    } catch (error) {
      if (error !== signal.reason) throw error;
    }
  },

  async find({ ground, directory }) {
    return { state: await readCounts(ground.ports.disk, directory), epochs: 0 };
  },
};

function openSemaphore({ ground, directory, sync, sabotage }: TortureTools): PortsSemaphore {
  const openPorts = async (): Promise<typeof ground.ports> => ground.ports;
  const world = {
    openPorts,
    inProcess: new InProcessLocks(),
    Protocol: sabotage ? RefreshByTruncate : SemaphoreProtocol,
  };
  return new PortsSemaphore(world, `${directory}/${lockFile}`, { fsync: sync, retryMs: 20 });
}
