// A process links a record late, into an epoch that is being collected. A reader must not act on it.
import { RollingChain } from "../../../src/durable/chain/rolling-chain.ts";
import { actor, mustHold, valuesOf, type Actor, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import type { Counter } from "./counter.ts";
import {
  appendOne,
  appender,
  collector,
  everyWinCounts,
  openChain,
  reader,
  rollingScenario,
  type RollingScenarioOptions,
} from "./rolling-chain.ts";

/** Appends once, and dies after it has linked the record but before it checks the epoch. */
function dyingAppender(options: RollingScenarioOptions): Actor {
  return actor({
    prepare: async ({ name, ports }) => {
      let end = (): void => undefined;
      const linked = new Promise<void>((resolve) => (end = resolve));
      const link = async (from: string, to: string): Promise<void> => {
        await ports.disk.link(from, to);
        end();
        await new Promise<never>(() => undefined);
      };
      const disk = new Proxy(ports.disk, {
        get: (target, key) => {
          if (key === "link") return link;
          const value: unknown = Reflect.get(target, key, target);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
      const chain = await openChain({ ...ports, disk }, name, options);
      await chain.read();
      return { chain, linked };
    },
    run: async (context, { chain, linked }) => await Promise.race([linked, appendOne(context, chain, 1)]),
  });
}

interface LateRecordOptions extends RollingScenarioOptions {
  /** The reader's chain: the real one or a known-wrong variant. */
  readonly ReaderClass?: typeof RollingChain;
  /** The sleeper dies only at the one moment that matters. */
  readonly diesAtTheLink?: boolean;
}

export function lateRecord({ ReaderClass = RollingChain, diesAtTheLink, ...options }: LateRecordOptions): Scenario {
  const two = { ...options, slotsPerEpoch: 2 };
  return rollingScenario(
    {
      name: "chain: a reader in an epoch that is collected",
      size: "medium",
      about:
        "A sleeper links into a collected epoch and dies before it checks. A reader still remembers the same epoch.",
      actors: {
        ada: diesAtTheLink ? dyingAppender(two) : appender(1, two),
        col: collector(1, two),
        eve: reader({ ...two, ChainClass: ReaderClass }),
      },
      ...(diesAtTheLink ? {} : { killsMax: 1, mortal: ["ada"] }),
      audit: async (ports, facts) => {
        const { state } = await (await openChain(ports, "auditor", two)).read();
        everyWinCounts(state, facts);
        for (const seen of valuesOf<Counter>(facts, "acted on"))
          for (const [name, count] of Object.entries(seen))
            mustHold(count <= (state[name] ?? 0), `a reader acted on append ${count} of ${name}, which never counted`);
      },
    },
    { ...two, collected: true, entriesMeanwhile: 5 },
  );
}

export function lateRecordScenarios(): Scenario[] {
  return [lateRecord({})];
}
