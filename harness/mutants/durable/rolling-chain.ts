// Known-wrong variants of the rolling chain: each leaves out one of the steps that its proof needs.
import { removeDirectory, unlinkIfThere } from "../../../src/durable/publish/directory.ts";
import type { View } from "../../../src/durable/chain/epoch.ts";
import { RollingChain, type RollingChainOptions } from "../../../src/durable/chain/rolling-chain.ts";
import type { Staging } from "../../../src/durable/publish/staging.ts";
import { hasErrno } from "../../../src/ports/disk-error.ts";
import { lateRecord } from "../../scenarios/durable/late-record.ts";
import {
  appender,
  collector,
  rollingChainScenarios,
  rollingScenario,
  type RollingScenarioOptions,
} from "../../scenarios/durable/rolling-chain.ts";
import { comesBackScenarios, twoBootsScenarios } from "../../scenarios/durable/two-boots.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

type Opening<T> = [staging: Staging, directory: string, options: RollingChainOptions<T>];

/** Trusts a link or a read without checking that the epoch is still open. */
class ChainWithoutCheck<T> extends RollingChain<T> {
  protected override async isOpen(): Promise<boolean> {
    return true;
  }
}

/**
 * Checks by an open even on a share, where a client may answer from an open handle of another
 * process.
 */
class ChainAskingByOpen<T> extends RollingChain<T> {
  protected override async isOpen(view: View<T>): Promise<boolean> {
    return await this.staging.disk.canOpen(`/table/${view.epoch.body.directory}/open`);
  }
}

/** Deletes the slots of an old epoch before its `open` file. */
class ChainDeletingSlotsFirst<T> extends RollingChain<T> {
  protected constructor(...[staging, directory, options]: Opening<T>) {
    super(staging, directory, options);
    const { disk } = staging;
    const remove = this.collector.remove.bind(this.collector);
    this.collector.remove = async (epoch) => {
      try {
        for (const name of await disk.list(epoch)) if (name !== "open") await unlinkIfThere(disk, `${epoch}/${name}`);
      } catch (error) {
        if (!hasErrno(error, "ENOENT")) throw error;
      }
      return await remove(epoch);
    };
  }
}

/** Takes an ESTALE for proof that `open` is gone. */
class ChainTrustingStaleHandles<T> extends RollingChain<T> {
  protected constructor(...[staging, directory, options]: Opening<T>) {
    super(staging, directory, options);
    const { disk } = staging;
    this.collector.remove = async (epoch) => {
      await disk.unlink(`${epoch}/open`).catch((error: unknown) => {
        if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
      });
      return await removeDirectory(disk, epoch);
    };
  }
}

/** Rolls over an epoch of another boot as if all of its holders were dead. */
class ChainBelievingInRestarts<T> extends RollingChain<T> {
  protected constructor(...[staging, directory, options]: Opening<T>) {
    super(staging, directory, options);
    // Assumes that after another boot id no process lives.
    this.rollover.seal = async () => undefined;
  }
}

/** Takes a share's listing of an epoch for complete. */
class ChainBelievingListings<T> extends RollingChain<T> {
  protected constructor(...[staging, directory, options]: Opening<T>) {
    super(staging, directory, options);
    this.rollover.isFree = async () => true;
  }
}

/** Assumes that a visible epoch has a durable name. */
class ChainTrustingEpochNames<T> extends RollingChain<T> {
  protected override async makeDurable(view: View<T>): Promise<void> {
    await this.staging.disk.syncDirectory(`/table/${view.epoch.body.directory}`);
  }
}

const one = { slotsPerEpoch: 1 };
const world = { ...one, collected: true, entriesMeanwhile: 3 };

function sleeperAndCollector(name: string, options: RollingScenarioOptions): Mutant["scenario"] {
  const about = "A sleeper wakes while the epoch that it has in mind is collected.";
  return rollingScenario(
    { name, about, actors: { ada: appender(1, options), col: collector(1, options) } },
    { ...world, ...options },
  );
}

export const rollingChainMutants: readonly Mutant[] = [
  {
    name: "append in an epoch whose name is not durable",
    about: "A power cut loses the name of the epoch, and with it everything that was won in it.",
    scenario: scenarioNamed(
      rollingChainScenarios({ ChainClass: ChainTrustingEpochNames }),
      "chain: an epoch that is named but not durable, power cuts (weak)",
    ),
    breaks: /is lost/,
  },
  {
    name: "another boot id taken for a restart",
    about: "A container has its own boot id, and the previous container is alive and continues in its epoch.",
    scenario: scenarioNamed(
      twoBootsScenarios({ ChainClass: ChainBelievingInRestarts }),
      "chain: two boot ids that are alive at once",
    ),
    breaks: /is lost/,
  },
  {
    name: "chain: a slot that is torn stops every process for good",
    about: "The file system disappeared and came back in the same boot, without the data that was not on the disk yet.",
    scenario: scenarioNamed(
      comesBackScenarios({ mayGiveUp: async () => false }),
      "chain: the file system comes back under the same boot id (ext4-ordered)",
    ),
    breaks: /is not a valid .* slot record/,
  },
  {
    name: "listing of a share believed when an epoch is rolled over",
    about: "The client's cache does not show yet what a process on the server has won.",
    scenario: scenarioNamed(
      twoBootsScenarios({ ChainClass: ChainBelievingListings }),
      "chain: on the server itself, and on another machine with old caches",
    ),
    breaks: /is lost/,
  },
  {
    name: "reader that walks on from a cached number (C2)",
    about: "The reader finds a record that was linked late and does not count.",
    scenario: lateRecord({ ReaderClass: ChainWithoutCheck, diesAtTheLink: true }),
    breaks: /never counted/,
  },
  {
    name: "slots deleted before `open` (C4m)",
    about: "A vacated number is won again while the epoch still seems open.",
    scenario: sleeperAndCollector("chain: slots deleted before open", { ...one, ChainClass: ChainDeletingSlotsFirst }),
    breaks: /is lost|won twice/,
  },
  {
    name: "collector that takes a stale handle for a removed file",
    about: "Slots are deleted while `open` still exists.",
    scenario: {
      ...scenarioNamed(
        rollingChainScenarios({ ChainClass: ChainTrustingStaleHandles }),
        "chain: sleeper and collector, failing disk",
      ),
      errors: { errnos: ["ESTALE"], operations: ["unlink"] },
    },
    breaks: /is lost|won twice/,
  },
  {
    name: "asking by an open on a share",
    about:
      "The client reports that the file exists because another local process has it open, although the server removed it.",
    scenario: scenarioNamed(
      rollingChainScenarios({ ChainClass: ChainAskingByOpen }),
      "chain: a sleeper whose client believes in what is gone",
    ),
    breaks: /is lost|won twice/,
  },
  {
    name: "no check after the link (C4n)",
    about: "A vacated number is won again.",
    scenario: sleeperAndCollector("chain: no check after the link", { ...one, ChainClass: ChainWithoutCheck }),
    breaks: /is lost|won twice/,
  },
];
