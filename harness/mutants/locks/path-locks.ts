// Known-wrong variants of the lock table and of holds.
import { unlinkIfThere } from "../../../src/durable/publish/directory.ts";
import { canLinkFrom } from "../../../src/durable/publish/publish.ts";
import { holdfastError } from "../../../src/errors.ts";
import { handToCaller } from "../../../src/locks/path/acquire.ts";
import { CallArguments } from "../../../src/locks/path/arguments.ts";
import type { Grant } from "../../../src/locks/path/grant.ts";
import type { PathHold } from "../../../src/locks/path/path-hold.ts";
import { receivedGrant } from "../../../src/locks/path/receive.ts";
import type { TablePathLocks } from "../../../src/locks/path/table-path-locks.ts";
import { widen } from "../../../src/locks/path/upgrade.ts";
import { withExtent, blockersOf, holdingOf } from "../../../src/locks/table/conflict.ts";
import { LockTable } from "../../../src/locks/table/lock-table.ts";
import { replaceRequest, type TableRequest, type TableState } from "../../../src/locks/table/request.ts";
import { brokenHolderScenarios } from "../../scenarios/locks/broken-holders.ts";
import { changingHandsScenarios } from "../../scenarios/locks/changing-hands.ts";
import { tornSlotScenarios } from "../../scenarios/locks/torn-slot.ts";
import { pathLockScenarios } from "../../scenarios/locks/path-locks.ts";
import { familyMutants } from "./families.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

type Judging = Parameters<LockTable["judge"]>[1];

/** L3m: ignores a request that it judged dead, without an append. */
class JudgementWithoutRecord extends LockTable {
  readonly #buried = new Set<string>();

  override async judge<R extends TableRequest>(requests: readonly R[], options: Judging): Promise<R[]> {
    const left: R[] = [];
    for (const request of await this.standing(requests))
      if ((await this.ground.stateOf(request.holder, options)) === "dead") await this.#bury(request.id);
      else left.push(request);
    return left;
  }

  /** Completes what was committed so far. A later commit comes too late, but nothing refuses it. */
  async #bury(id: string): Promise<void> {
    const { redos } = (await this.read()).state;
    for (const redo of redos) if (redo.request === id) await this.complete(redo);
    this.#buried.add(id);
  }

  override async isOver(id: string): Promise<boolean> {
    return this.#buried.has(id) || (await super.isOver(id));
  }

  override async drop(): Promise<void> {
    // Appends nothing.
  }
}

/** Counts a holder as alive if its death is not proven at the first check. */
class LookingOnceForTheLiving extends LockTable {
  protected override async hasLiveHolds(): Promise<boolean> {
    const { disk } = this.ground.ports;
    for (const name of await disk.list(`${this.ground.layout.directory}/holds`))
      if ((await this.ground.stateOf(name.split(".")[0] ?? "")) !== "dead") return true;
    return false;
  }
}

/** Writes no receipt for a hold that it receives. */
class ReceiversForgotten extends LockTable {
  override async createReceipt(): Promise<void> {
    // Creates nothing.
  }
}

/** Skips a torn slot, even if its holder is alive. */
class LivingHolderForgotten extends LockTable {
  protected override async hasLiveHolds(): Promise<boolean> {
    return false;
  }
}

/**
 * A waiter judges one blocker at a time: the silence of the next one counts from when that one is
 * over.
 */
class JudgingOneByOne extends LockTable {
  override async judge<R extends TableRequest>(requests: readonly R[], options: Judging): Promise<R[]> {
    if (options.once) return await super.judge(requests, options);
    return [...requests.slice(0, -1), ...(await super.judge(requests.slice(-1), options))];
  }
}

/** Waits for no other process: takes all requests of others for over. */
class NobodyBlocks extends LockTable {
  override async isOver(id: string): Promise<boolean> {
    return !id.startsWith((await this.ground.session()).holder.id);
  }
}

/**
 * Checks a hold file only by a link, even on a share: the client links the cached file, which is a
 * slot by now.
 */
class AskingByLinkAlone extends LockTable {
  override async isOver(id: string): Promise<boolean> {
    return !(await canLinkFrom(this.ground.staging, this.markOf(id))) && (await super.isOver(id));
  }
}

/** Never checks its own hold files: passes a hold on without checking that it was not broken. */
class BlindToItsOwn extends LockTable {
  override async isOver(id: string): Promise<boolean> {
    return !id.startsWith((await this.ground.session()).holder.id) && (await super.isOver(id));
  }
}

/** Returns holds that `spoil` has changed. */
function spoiledHolds(spoil: (hold: PathHold, grant: Grant) => void): (locks: TablePathLocks) => void {
  return ({ monitor }) => {
    const begin = monitor.begin.bind(monitor);
    monitor.begin = (grant, hold, idleMs) => {
      spoil(hold, grant);
      begin(grant, hold, idleMs);
    };
  };
}

/** Releases the request of a hold that was released before, whichever caller has it now. */
const releaseByRequest = spoiledHolds((hold, grant) => {
  const release = hold.release.bind(hold);
  hold.release = async () => {
    if (grant.isGivenUp) await grant.locks.table.release(grant.id);
    else await release();
  };
});

/** Releases a hold while an append under it is in progress. */
const hastyRelease = spoiledHolds((_hold, grant) => {
  grant.untilQuiet = async () => undefined;
});

/** Drops a judged request in any state, even if another process has received it since. */
class VerdictOnTheId extends LockTable {
  protected override judgedState({ id }: TableRequest): string {
    return id;
  }
}

/** Removes the hold file of a request before the append that drops it. */
class FileBeforeRecord extends LockTable {
  override async drop(requests: readonly TableRequest[]): Promise<void> {
    for (const { id } of requests) await unlinkIfThere(this.ground.ports.disk, this.markOf(id));
    await super.drop(requests);
  }
}

/** Removes the hold file of a dropped request before it completes what was committed under it. */
class FileBeforeRedo extends LockTable {
  override async finishDropped(request: TableRequest, state: TableState): Promise<void> {
    await unlinkIfThere(this.ground.ports.disk, this.markOf(request.id));
    await super.finishDropped(request, state);
  }
}

/**
 * U1: widens the request at its position in the table. Compares it only with requests that hold,
 * not with those that wait.
 */
const upgradeInPlace = spoiledHolds((hold, grant) => {
  const { table } = grant.locks;
  hold.upgrade = async (change) => {
    const to = new CallArguments("upgrade").change("to", change);
    for (;;) {
      let blockers: TableRequest[] = [];
      const entry = await table.append((state, stamp) => {
        const { requests } = state;
        const mine = grant.findRequest(requests);
        if (mine === undefined) return undefined;
        const wider: TableRequest = { ...mine, ...stamp, claims: withExtent(mine.claims, to) };
        const holding = holdingOf(requests).filter((request) => request !== mine);
        blockers = blockersOf([...holding, wider], wider);
        return blockers.length > 0 ? undefined : replaceRequest(state, mine, wider);
      });
      const mine = grant.findRequest(entry?.state.requests ?? []);
      if (mine !== undefined) return widen(grant, mine, to);
      if (blockers.length === 0) throw grant.loseAsDropped();
      if ((await table.judge(blockers, { once: true })).length > 0) throw refused(grant);
    }
  };
});

/** The hold keeps its fence although others held the lock in between. */
const upgradeWithOldFence = spoiledHolds((hold, grant) => {
  const upgrade = hold.upgrade.bind(hold);
  hold.upgrade = async (to, options) => {
    const { fence } = grant;
    await upgrade(to, options);
    Object.defineProperty(grant, "fence", { value: fence });
  };
});

/** A failed downgrade leaves the hold unchanged, even if only the reply was lost. */
const downgradeWithoutDoubt = spoiledHolds((hold, grant) => {
  const downgrade = hold.downgrade.bind(hold);
  hold.downgrade = async (to) => {
    const { claims, asked } = grant;
    try {
      await downgrade(to);
    } catch (error) {
      Object.assign(grant, { claims, asked });
      grant.noteInTable();
      throw error;
    }
  };
  hold.assertHeld = async () => {
    grant.mustHold();
    const { state } = await grant.locks.table.read();
    if (grant.findRequest(state.requests) === undefined) throw grant.loseAsDropped();
  };
});

/** Closes without aborting the signals of the holds. */
const closingInSilence = spoiledHolds((_hold, grant) => {
  grant.warn = () => undefined;
});

/**
 * Checks once that the hold is offered, then takes it, even if another process received it
 * meanwhile.
 */
function receiveWithoutLookingAgain(locks: TablePathLocks): void {
  const { table } = locks;
  locks.receive = async (token) => {
    const session = await table.ground.session();
    const id = token.slice(0, token.lastIndexOf("."));
    const offered = (await table.read()).state.requests.find((request) => request.id === id);
    if (offered?.transfer === undefined) throw holdfastError("NO_SUCH_TRANSFER", "It was taken.", { token });
    const { transfer: _transfer, ...taken } = { ...offered, holder: session.holder.id };
    await table.append(({ requests, redos }, { change }) => ({
      requests: [...requests.filter((request) => request.id !== id), { ...taken, change }],
      redos,
    }));
    return await handToCaller(receivedGrant(locks, taken, session), { startMs: 0 });
  };
}

function refused({ asked, fence }: Grant): Error {
  const path = asked.map((claim) => claim.path).join(", ");
  return holdfastError("LOCK_TIMEOUT", `${path} with fence ${fence} cannot be upgraded now.`, {
    path,
    waitedMs: 0,
    blockedBy: [],
  });
}

const third = "broken: a commit that is not carried out, a breaker and a third";
const together = /are inside together/;
/** A hold was granted beside or after a conflicting one that has a higher fence. */
const togetherOrLate = /are inside together|fence \d+ came after fence \d+/;
const lost = /was acknowledged, and the log is|was refused, and happened all the same/;

export const pathLockMutants: readonly Mutant[] = [
  {
    name: "locks: a torn slot stops every process for good",
    about: "The disk came back as another device, and no process observes the holder for its lease.",
    scenario: scenarioNamed(
      tornSlotScenarios({ TableClass: LookingOnceForTheLiving }),
      "locks: the disk comes back in the same boot, its holder unknown to the process table",
    ),
    breaks: /is not a valid .* slot record/,
  },
  {
    name: "locks: a torn slot given up beside the receiver of a hold",
    about: "The hold file has the name of the process that acquired it, which has ended.",
    scenario: scenarioNamed(
      tornSlotScenarios({ TableClass: ReceiversForgotten }),
      "locks: the newest slot is cut off while the receiver of a hold lives",
    ),
    breaks: /are inside together/,
  },
  {
    name: "locks: a torn slot given up beside its living holder",
    about: "Another program truncated the slot, and the next process acquires the lock although it is held.",
    scenario: scenarioNamed(
      tornSlotScenarios({ TableClass: LivingHolderForgotten }),
      "locks: the newest slot is cut off while its holder lives",
    ),
    breaks: /are inside together/,
  },
  ...familyMutants,
  {
    name: "hold passed on without a look",
    about: "The hold was broken, and another process holds the lock.",
    scenario: scenarioNamed(
      changingHandsScenarios({ TableClass: BlindToItsOwn }),
      "hands: two callers of one process, another process, and a breaker",
    ),
    breaks: /inside together|came after a higher one/,
  },
  {
    name: "hold released twice",
    about: "The request was passed on, and the second release ends it under the next caller.",
    scenario: scenarioNamed(
      changingHandsScenarios({ spoil: releaseByRequest }),
      "hands: two callers of one process that release twice, and another process",
    ),
    breaks: /inside together|came after a higher one/,
  },
  {
    name: "hold given up while a commit is under way",
    about: "The commit finds its request, which by now belongs to the next caller.",
    scenario: scenarioNamed(
      changingHandsScenarios({ spoil: hastyRelease }),
      "hands: a commit that its caller does not wait for, and the next caller",
    ),
    breaks: /happened under the next/,
  },
  {
    name: "waiter that waits for no other process",
    about: "The waiter acquires a held lock: the least that the scenarios must detect.",
    scenario: scenarioNamed(pathLockScenarios({ TableClass: NobodyBlocks }), "locks: exact against exact"),
    breaks: /inside together/,
  },
  {
    name: "locks: hold file asked for without its directory",
    about: "The owner released the lock, but the waiter is told that the hold file still exists.",
    scenario: scenarioNamed(
      pathLockScenarios({ TableClass: AskingByLinkAlone }),
      "locks: a waiter whose client remembers the hold file",
    ),
    breaks: /refused for a holder that had released/,
  },
  {
    name: "locks: waiter that judges by itself (L3m)",
    about: "The waiter acquires the lock without an append, so a sleeper's commit may follow its own.",
    scenario: scenarioNamed(
      brokenHolderScenarios({ TableClass: JudgementWithoutRecord }),
      "broken: a committer that sleeps, and a waiter",
    ),
    breaks: lost,
  },
  {
    name: "locks: holders in the way judged one by one",
    about: "If several holders died together, the waiter waits one lease for each of them.",
    scenario: scenarioNamed(
      pathLockScenarios({ TableClass: JudgingOneByOne }),
      "locks: two silent holders and a waiter",
    ),
    breaks: /two silent holders kept a waiter out/,
  },
  {
    name: "locks: upgrade in place (U1)",
    about: "A waiting request below is granted when its own predecessor ends, beside the new tree lock.",
    scenario: scenarioNamed(
      changingHandsScenarios({ spoil: upgradeInPlace }),
      "hands: upgrade against a request that only waits",
    ),
    breaks: together,
  },
  {
    name: "locks: upgrade with the old fence",
    about: "Another process held the lock in between, with a higher fence.",
    scenario: scenarioNamed(pathLockScenarios({ spoil: upgradeWithOldFence }), "locks: upgrade against a waiter"),
    breaks: /fence \d+ came after fence \d+/,
  },
  {
    name: "locks: closed without a warning",
    about: "Another process acquires the lock while a caller still works under the hold, whose signal did not abort.",
    scenario: scenarioNamed(
      changingHandsScenarios({ spoil: closingInSilence }),
      "hands: locks that are closed under a hold, and a waiter",
    ),
    breaks: together,
  },
  {
    name: "locks: downgrade that failed is none",
    about:
      "The table has the narrower request: another process acquires the rest, but the hold still claims everything.",
    scenario: scenarioNamed(
      changingHandsScenarios({ spoil: downgradeWithoutDoubt }),
      "hands: a downgrade whose answer is lost, and another process",
    ),
    breaks: togetherOrLate,
  },
  {
    name: "locks: judgement on the request, not on its state",
    about: "A request that another process received meanwhile is dropped like the judged offer.",
    scenario: scenarioNamed(
      changingHandsScenarios({ TableClass: VerdictOnTheId }),
      "hands: a receiver, and a process that finds the giver dead",
    ),
    breaks: togetherOrLate,
  },
  {
    name: "locks: receive without looking again",
    about: "Two processes read the same offer, and both receive it.",
    scenario: scenarioNamed(
      changingHandsScenarios({ spoil: receiveWithoutLookingAgain }),
      "hands: two receivers of one token",
    ),
    breaks: /have received one hold/,
  },
  {
    name: "locks: hold file removed before the drop is on record",
    about: "A third process takes the missing file for a release while the holder still commits.",
    scenario: scenarioNamed(brokenHolderScenarios({ TableClass: FileBeforeRecord }), third),
    breaks: lost,
  },
  {
    name: "locks: hold file removed before the redo is complete",
    about: "A third process takes the missing file as proof that all changes are applied.",
    scenario: scenarioNamed(brokenHolderScenarios({ TableClass: FileBeforeRedo }), third),
    breaks: lost,
  },
];
