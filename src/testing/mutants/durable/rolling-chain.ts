// Known-wrong variants of the rolling chain: each leaves out one of the steps that its proof needs.
import { removeDirectory, unlinkIfThere } from "../../../durable/publish/directory.ts";
import type { Chain } from "../../../durable/chain/chain.ts";
import { EpochCollector } from "../../../durable/chain/epoch-collector.ts";
import type { Epoch, View } from "../../../durable/chain/epoch.ts";
import { RollingChain } from "../../../durable/chain/rolling-chain.ts";
import { EpochRollover, type EpochRolloverParts } from "../../../durable/chain/epoch-rollover.ts";
import { hasErrno } from "../../../ports/disk-error.ts";
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

/** Believes a link, or what it read, without asking whether the epoch is still open. */
class ChainWithoutCheck<T> extends RollingChain<T> {
  protected override async isOpen(): Promise<boolean> {
    return true;
  }
}

/**
 * Asks by an open also on a share, where a client may answer from an open handle of another
 * process.
 */
class ChainAskingByOpen<T> extends RollingChain<T> {
  protected override async isOpen(view: View<T>): Promise<boolean> {
    return await this.staging.disk.canOpen(`/table/${view.epoch.body.directory}/open`);
  }
}

/** Deletes the slots of an old epoch before its `open` file. */
class CollectorDeletingSlotsFirst<T> extends EpochCollector<T> {
  protected override async remove(directory: string): Promise<boolean> {
    try {
      for (const name of await this.disk.list(directory))
        if (name !== "open") await unlinkIfThere(this.disk, `${directory}/${name}`);
    } catch (error) {
      if (!hasErrno(error, "ENOENT")) throw error;
    }
    return await super.remove(directory);
  }
}

class ChainDeletingSlotsFirst<T> extends RollingChain<T> {
  protected override newCollector(epochs: Chain<Epoch<T>>, directory: string): EpochCollector<T> {
    return new CollectorDeletingSlotsFirst(this.staging.disk, directory, epochs);
  }
}

/** Takes an ESTALE for proof that `open` is gone. */
class CollectorTrustingStaleHandles<T> extends EpochCollector<T> {
  protected override async remove(directory: string): Promise<boolean> {
    await this.disk.unlink(`${directory}/open`).catch((error: unknown) => {
      if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
    });
    return await removeDirectory(this.disk, directory);
  }
}

class ChainTrustingStaleHandles<T> extends RollingChain<T> {
  protected override newCollector(epochs: Chain<Epoch<T>>, directory: string): EpochCollector<T> {
    return new CollectorTrustingStaleHandles(this.staging.disk, directory, epochs);
  }
}

/** Rolls over an epoch of another boot as if all of its holders were dead. */
class ChainBelievingInRestarts<T> extends RollingChain<T> {
  protected override newRollover(parts: EpochRolloverParts<T>): EpochRollover<T> {
    return new RolloverBelievingInRestarts(parts);
  }
}

class RolloverBelievingInRestarts<T> extends EpochRollover<T> {
  protected override async seal(): Promise<void> {
    // As if another boot id meant that no process lives.
  }
}

/** Takes what a share lists for all that was won in an epoch. */
class ChainBelievingListings<T> extends RollingChain<T> {
  protected override newRollover(parts: EpochRolloverParts<T>): EpochRollover<T> {
    return new RolloverBelievingListings(parts);
  }
}

class RolloverBelievingListings<T> extends EpochRollover<T> {
  protected override async isFree(): Promise<boolean> {
    return true;
  }
}

/** Takes the name of an epoch for durable because it can be seen. */
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
    about: "A power cut takes the name of the epoch, and with it what was won in it.",
    scenario: scenarioNamed(
      rollingChainScenarios({ ChainClass: ChainTrustingEpochNames }),
      "chain: an epoch that is named but not durable, power cuts (weak)",
    ),
    breaks: /is lost/,
  },
  {
    name: "another boot id taken for a restart",
    about: "A container has a boot id of its own, and the one before it is alive and goes on in its epoch.",
    scenario: scenarioNamed(
      twoBootsScenarios({ ChainClass: ChainBelievingInRestarts }),
      "chain: two boot ids that are alive at once",
    ),
    breaks: /is lost/,
  },
  {
    name: "chain: a slot that is torn stops every process for good",
    about: "The file system went away and came back in the same boot, without what was not on the disk yet.",
    scenario: scenarioNamed(
      comesBackScenarios({ mayGiveUp: async () => false }),
      "chain: the file system comes back under the same boot id (ext4-ordered)",
    ),
    breaks: /is not a valid .* slot record/,
  },
  {
    name: "listing of a share believed when an epoch is rolled over",
    about: "What a process on the server itself has won is not in the client's cache yet.",
    scenario: scenarioNamed(
      twoBootsScenarios({ ChainClass: ChainBelievingListings }),
      "chain: on the server itself, and on another machine with old caches",
    ),
    breaks: /is lost/,
  },
  {
    name: "reader that walks on from a cached number (C2)",
    about: "It meets a record that was linked late and is void.",
    scenario: lateRecord({ ReaderClass: ChainWithoutCheck, diesAtTheLink: true }),
    breaks: /never counted/,
  },
  {
    name: "slots deleted before `open` (C4m)",
    about: "A vacated number is won again while the epoch still looks open.",
    scenario: sleeperAndCollector("chain: slots deleted before open", { ...one, ChainClass: ChainDeletingSlotsFirst }),
    breaks: /is lost|won twice/,
  },
  {
    name: "collector that takes a stale handle for a removed file",
    about: "Slots are deleted under an `open` that stands.",
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
      "The client says that the file is there, because another process of the machine has it open; the server has removed it.",
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
