// Known-wrong variants of the lock table and of the verbs of holds.
import { unlinkIfThere } from "../../../durable/publish/directory.ts";
import { canLinkFrom } from "../../../durable/publish/publish.ts";
import { holdfastError } from "../../../errors.ts";
import { acquire, giveOut } from "../../../locks/path/acquire.ts";
import { CallArguments } from "../../../locks/path/arguments.ts";
import { downgrade } from "../../../locks/path/downgrade.ts";
import type { Grant } from "../../../locks/path/grant.ts";
import { PathHoldHandle, type HoldVerbs } from "../../../locks/path/hold-verbs.ts";
import { release } from "../../../locks/path/release.ts";
import { receivedGrant } from "../../../locks/path/transfer.ts";
import { upgrade } from "../../../locks/path/upgrade.ts";
import { withExtent } from "../../../locks/table/claim.ts";
import { blockersOf, holdingOf } from "../../../locks/table/conflict.ts";
import { HoldFiles } from "../../../locks/table/hold-files.ts";
import { LockTable } from "../../../locks/table/lock-table.ts";
import { replaceRequest, type TableRequest, type TableState } from "../../../locks/table/request.ts";
import { brokenHolderScenarios } from "../../scenarios/locks/broken-holders.ts";
import { changingHandsScenarios } from "../../scenarios/locks/changing-hands.ts";
import { tornSlotScenarios } from "../../scenarios/locks/torn-slot.ts";
import { pathLockScenarios } from "../../scenarios/locks/path-locks.ts";
import { familyMutants } from "./families.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

type Judging = Parameters<LockTable["judge"]>[1];

/** L3m: a request that it has judged dead is over for it, without an append. */
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
    // Nothing is appended.
  }
}

/** A holder whose death is not proven at the first look counts as alive. */
class LookingOnceForTheLiving extends LockTable {
  protected override async hasLiveHolds(): Promise<boolean> {
    const { disk } = this.ground.ports;
    for (const name of await disk.list(`${this.ground.layout.directory}/holds`))
      if ((await this.ground.stateOf(name.split(".")[0] ?? "")) !== "dead") return true;
    return false;
  }
}

/** Makes no receipt of a hold that it receives. */
class ReceiversForgotten extends LockTable {
  override readonly holds: HoldFiles = new (class extends HoldFiles {
    override async createReceipt(): Promise<void> {
      // Nothing is made.
    }
  })(this.ground);
}

/** Passes over a torn slot, whatever its holder does. */
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
 * Asks for a hold file by a link alone, also on a share: the client links from the remembered file,
 * which is a slot by now.
 */
class AskingByLinkAlone extends LockTable {
  override async isOver(id: string): Promise<boolean> {
    return !(await canLinkFrom(this.ground.staging, this.holds.pathOf(id))) && (await super.isOver(id));
  }
}

/**
 * Never looks at the hold files of its own requests: it passes a hold on without a look whether it
 * still stands.
 */
class BlindToItsOwn extends LockTable {
  override async isOver(id: string): Promise<boolean> {
    return !id.startsWith((await this.ground.session()).holder.id) && (await super.isOver(id));
  }
}

/** Gives out holds whose grant `spoil` has changed. */
function spoiledGrants(spoil: (grant: Grant) => void): Partial<HoldVerbs> {
  return {
    acquire: async (locks, requests, options) => {
      const hold = await acquire(locks, requests, options);
      spoil(PathHoldHandle.grantOf(hold, locks));
      return hold;
    },
  };
}

/** Releases the request of a hold that was released before, whichever caller has it now. */
const releaseByRequest: Partial<HoldVerbs> = {
  release: async (locks, grant) => {
    if (grant.isGivenUp) await locks.table.release(grant.id);
    else await release(locks, grant);
  },
};

/** Gives a hold up while something is being appended under it. */
const hastyRelease = spoiledGrants((grant) => {
  grant.work.untilQuiet = async () => undefined;
});

/** Condemns a request in every state, also when it was received since it was judged. */
class VerdictOnTheId extends LockTable {
  protected override judgedState({ id }: TableRequest): string {
    return id;
  }
}

/** Removes the hold file of a request before the append that drops it. */
class FileBeforeRecord extends LockTable {
  override async drop(requests: readonly TableRequest[]): Promise<void> {
    for (const { id } of requests) await unlinkIfThere(this.ground.ports.disk, this.holds.pathOf(id));
    await super.drop(requests);
  }
}

/** Removes the hold file of a dropped request before it completes what was committed under it. */
class FileBeforeRedo extends LockTable {
  override async finishDropped(request: TableRequest, state: TableState): Promise<void> {
    await unlinkIfThere(this.ground.ports.disk, this.holds.pathOf(request.id));
    await super.finishDropped(request, state);
  }
}

/**
 * U1: widens the request where it stands, if the requests that hold allow it. Requests that only
 * wait are not asked.
 */
const upgradeInPlace: Partial<HoldVerbs> = {
  upgrade: async ({ table }, grant, change) => {
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
      if (mine !== undefined) return grant.upgrade(mine, to);
      if (blockers.length === 0) throw grant.loseAsDropped();
      if ((await table.judge(blockers, { once: true })).length > 0) throw refused(grant);
    }
  },
};

/** The hold goes on with the fence that it had, though others have come in between. */
const upgradeWithOldFence: Partial<HoldVerbs> = {
  upgrade: async (locks, grant, to, options) => {
    const { fence } = grant;
    await upgrade(locks, grant, to, options);
    Object.defineProperty(grant, "fence", { value: fence });
  },
};

/** A downgrade that failed changes nothing about the hold, also when its answer was lost. */
const downgradeWithoutDoubt: Partial<HoldVerbs> = {
  downgrade: async (locks, grant, to) => {
    const { claims, asked } = grant;
    try {
      await downgrade(locks, grant, to);
    } catch (error) {
      Object.defineProperties(grant, { claims: { value: claims }, asked: { value: asked } });
      grant.extent.noteInTable();
      throw error;
    }
  },
  check: async ({ table }, grant) => {
    grant.mustHold();
    if (grant.findRequest((await table.read()).state.requests) === undefined) throw grant.loseAsDropped();
  },
};

/** Closes without a warning to callers that work under a hold. */
const closingInSilence = spoiledGrants((grant) => {
  grant.warn = () => undefined;
});

/**
 * Looks once whether the hold is offered, and takes it then, also when another process has received
 * it meanwhile.
 */
const receiveWithoutLookingAgain: Partial<HoldVerbs> = {
  receive: async (locks, token) => {
    const { table } = locks;
    const session = await table.ground.session();
    const id = token.slice(0, token.lastIndexOf("."));
    const offered = (await table.read()).state.requests.find((request) => request.id === id);
    if (offered?.transfer === undefined) throw holdfastError("NO_SUCH_TRANSFER", "It was taken.", { token });
    const { transfer: _transfer, ...taken } = { ...offered, holder: session.holder.id };
    await table.append(({ requests, redos }, { change }) => ({
      requests: [...requests.filter((request) => request.id !== id), { ...taken, change }],
      redos,
    }));
    return await giveOut(locks, receivedGrant(taken, session), { startMs: 0 });
  },
};

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
/**
 * A hold with a lower fence than an earlier one was let in beside or after a holder that excludes
 * it.
 */
const togetherOrLate = /are inside together|fence \d+ came after fence \d+/;
const lost = /was acknowledged, and the log is|was refused, and happened all the same/;

export const pathLockMutants: readonly Mutant[] = [
  {
    name: "locks: a torn slot stops every process for good",
    about: "The disk came back as another device, and no process watches the holder for its lease.",
    scenario: scenarioNamed(
      tornSlotScenarios({ TableClass: LookingOnceForTheLiving }),
      "locks: the disk comes back in the same boot, its holder unknown to the process table",
    ),
    breaks: /is not a valid .* slot record/,
  },
  {
    name: "locks: a torn slot given up beside the receiver of a hold",
    about: "The hold file has the name of the process that acquired it, and that one has ended.",
    scenario: scenarioNamed(
      tornSlotScenarios({ TableClass: ReceiversForgotten }),
      "locks: the newest slot is cut off while the receiver of a hold lives",
    ),
    breaks: /are inside together/,
  },
  {
    name: "locks: a torn slot given up beside its living holder",
    about: "Another program has cut the slot off, and the next process takes the lock a second time.",
    scenario: scenarioNamed(
      tornSlotScenarios({ TableClass: LivingHolderForgotten }),
      "locks: the newest slot is cut off while its holder lives",
    ),
    breaks: /are inside together/,
  },
  ...familyMutants,
  {
    name: "hold passed on without a look",
    about: "It was broken, and another process is inside.",
    scenario: scenarioNamed(
      changingHandsScenarios({ TableClass: BlindToItsOwn }),
      "hands: two callers of one process, another process, and a breaker",
    ),
    breaks: /inside together|came after a higher one/,
  },
  {
    name: "hold released twice",
    about: "Its request was passed on, and the second release ended it for the next caller.",
    scenario: scenarioNamed(
      changingHandsScenarios({ verbs: releaseByRequest }),
      "hands: two callers of one process that release twice, and another process",
    ),
    breaks: /inside together|came after a higher one/,
  },
  {
    name: "hold given up while a commit is under way",
    about: "The commit finds the request that it began under, which is the next caller's by now.",
    scenario: scenarioNamed(
      changingHandsScenarios({ verbs: hastyRelease }),
      "hands: a commit that its caller does not wait for, and the next caller",
    ),
    breaks: /happened under the next/,
  },
  {
    name: "waiter that waits for no other process",
    about: "It enters beside the holder: the least that the scenarios must find.",
    scenario: scenarioNamed(pathLockScenarios({ TableClass: NobodyBlocks }), "locks: exact against exact"),
    breaks: /inside together/,
  },
  {
    name: "locks: hold file asked for without its directory",
    about: "Its owner has released it, and the waiter is told that it is still there.",
    scenario: scenarioNamed(
      pathLockScenarios({ TableClass: AskingByLinkAlone }),
      "locks: a waiter whose client remembers the hold file",
    ),
    breaks: /refused for a holder that had released/,
  },
  {
    name: "locks: waiter that judges by itself (L3m)",
    about: "It enters without an append, so that a sleeper's commit comes after its own.",
    scenario: scenarioNamed(
      brokenHolderScenarios({ TableClass: JudgementWithoutRecord }),
      "broken: a committer that sleeps, and a waiter",
    ),
    breaks: lost,
  },
  {
    name: "locks: holders in the way judged one by one",
    about: "Of several holders that died together each one keeps the waiter out for a lease of its own.",
    scenario: scenarioNamed(
      pathLockScenarios({ TableClass: JudgingOneByOne }),
      "locks: two silent holders and a waiter",
    ),
    breaks: /two silent holders kept a waiter out/,
  },
  {
    name: "locks: upgrade in place (U1)",
    about: "A request below that only waits enters when its own predecessor ends, beside the new tree lock.",
    scenario: scenarioNamed(
      changingHandsScenarios({ verbs: upgradeInPlace }),
      "hands: upgrade against a request that only waits",
    ),
    breaks: together,
  },
  {
    name: "locks: upgrade with the old fence",
    about: "A holder that was inside in between had a higher one.",
    scenario: scenarioNamed(pathLockScenarios({ verbs: upgradeWithOldFence }), "locks: upgrade against a waiter"),
    breaks: /fence \d+ came after fence \d+/,
  },
  {
    name: "locks: closed without a warning",
    about: "Another process comes in, while a caller goes on under the hold whose signal it watches.",
    scenario: scenarioNamed(
      changingHandsScenarios({ verbs: closingInSilence }),
      "hands: locks that are closed under a hold, and a waiter",
    ),
    breaks: together,
  },
  {
    name: "locks: downgrade that failed is none",
    about: "The table has the narrower claims: another process is let in, and the hold says that it stands as before.",
    scenario: scenarioNamed(
      changingHandsScenarios({ verbs: downgradeWithoutDoubt }),
      "hands: a downgrade whose answer is lost, and another process",
    ),
    breaks: togetherOrLate,
  },
  {
    name: "locks: judgement on the request, not on its state",
    about: "A request that was received meanwhile is dropped like the offer that was judged.",
    scenario: scenarioNamed(
      changingHandsScenarios({ TableClass: VerdictOnTheId }),
      "hands: a receiver, and a process that finds the giver dead",
    ),
    breaks: togetherOrLate,
  },
  {
    name: "locks: receive without looking again",
    about: "Two processes read one offer, and both take it.",
    scenario: scenarioNamed(
      changingHandsScenarios({ verbs: receiveWithoutLookingAgain }),
      "hands: two receivers of one token",
    ),
    breaks: /have received one hold/,
  },
  {
    name: "locks: hold file removed before the drop is on record",
    about: "A third process takes the absence of the file for consent, while the holder still commits.",
    scenario: scenarioNamed(brokenHolderScenarios({ TableClass: FileBeforeRecord }), third),
    breaks: lost,
  },
  {
    name: "locks: hold file removed before the redo is complete",
    about: "A third process takes the absence of the file for the end of all effects.",
    scenario: scenarioNamed(brokenHolderScenarios({ TableClass: FileBeforeRedo }), third),
    breaks: lost,
  },
];
