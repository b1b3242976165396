// The torture of the rolling chain: appends, collections and sweeps, on epochs so small that old ones are constantly
// deleted.
import { RollingChain } from "../../src/durable/chain/rolling-chain.ts";
import { isHoldfastError } from "../../src/errors.ts";
import { addOne, countId, counterOptions, type Counter } from "../scenarios/durable/counter.ts";
import { sweeper, type TortureTask, type TortureTools } from "./task.ts";

const slotsPerEpoch = 8;
/** Not more often: many collectors at once finish so fast that no appender meets one at work. */
const collectEvery = 12;

/** Trusts its link without checking that the epoch is still open, so a vacated number is won again. */
class ChainWithoutCheck<T> extends RollingChain<T> {
  protected override async isOpen(): Promise<boolean> {
    return true;
  }
}

export const chainTask: TortureTask = {
  promise: "loses no append and gives out no number twice",
  longRuns: [{ seed: 1, seconds: 10, atLeast: { appends: 200, kills: 10, stops: 50, livesOver: 1 }, epochsMin: 11 }],
  sabotage: { about: "believes a link without a second look", seed: 2 },
  tellsInside: false,

  async work(tools, signal) {
    const { life, name, sabotage, report } = tools;
    const chain = await openChain(sabotage ? ChainWithoutCheck : RollingChain, tools);
    const sweep = sweeper(tools);
    let count = await countOf(chain, name);
    for (let round = 1; !signal.aborted; round++) {
      life.throwIfOver();
      const entry = await appendOne(chain, tools, count);
      if (entry === undefined) {
        count = await countOf(chain, name);
        continue;
      }
      report({ kind: "won", count: ++count, number: entry.number });
      if (round % collectEvery === 0) await chain.collect();
      await sweep();
    }
  },

  async find(tools) {
    const { ground, directory } = tools;
    const { state } = await (await openChain(RollingChain, tools)).read();
    return { state, epochs: (await ground.ports.disk.list(`${directory}/chain/epochs`)).length };
  },
};

async function openChain(
  ChainClass: typeof RollingChain,
  { ground, directory, sync }: TortureTools,
): Promise<RollingChain<Counter>> {
  const { bootId } = ground.ports.host;
  const options = { ...counterOptions, slotsPerEpoch, sync, bootId };
  return await ChainClass.open<Counter>(ground.staging, `${directory}/chain`, options);
}

async function countOf(chain: RollingChain<Counter>, name: string): Promise<number> {
  return (await chain.read()).state[name] ?? 0;
}

/** Returns undefined if the outcome is unknown, or if the chain says that the append was made before. */
async function appendOne(chain: RollingChain<Counter>, { name, report }: TortureTools, count: number) {
  try {
    // The id and the state must carry the same count. Otherwise the check whether it is counted asks about another
    // append.
    return await chain.append(countId(name, count + 1), (state) =>
      (state[name] ?? 0) === count ? addOne(state, name) : undefined,
    );
  } catch (error) {
    if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) throw error;
    report({ kind: "unknown" });
    return undefined;
  }
}
