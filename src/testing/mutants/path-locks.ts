// Known-wrong variants of the lock table and of what is done to a hold in it: upgrade, transfer, and dropping what others hold.
import type { Waiting } from "../../common.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { unlinkIfThere } from "../../durable/publish/directory.ts";
import { canLinkFrom } from "../../durable/publish/publish.ts";
import { holdfastError } from "../../errors.ts";
import { blockersOf } from "../../locks/table/conflict.ts";
import type { Grant } from "../../locks/path/grant.ts";
import { Releaser } from "../../locks/path/release.ts";
import { Acquirer } from "../../locks/path/acquire.ts";
import { LockTable } from "../../locks/table/lock-table.ts";
import type { LockRequestRecord, Table } from "../../locks/table/request.ts";
import { TablePathLocks } from "../../locks/path/service.ts";
import { changed, findOwn, loseIt, type LockChange } from "../../locks/path/upgrade.ts";
import { brokenHolderScenarios } from "../scenarios/locks/broken-holders.ts";
import { changingHandsScenarios } from "../scenarios/locks/changing-hands.ts";
import { pathLockScenarios } from "../scenarios/locks/path-locks.ts";
import { familyMutants } from "./families.ts";
import { scenarioNamed, type Mutant } from "./mutant.ts";

type Judging = Parameters<LockTable["judge"]>[1];

/** L3m: what it has judged dead is over for it, and the list need not say so. */
class JudgementWithoutRecord extends LockTable {
  readonly #buried = new Set<string>();

  override async judge<R extends LockRequestRecord>(requests: readonly R[], options: Judging): Promise<R[]> {
    const left: R[] = [];
    for (const request of await this.standing(requests))
      if ((await this.ground.stateOf(request.holder, options)) === "dead") await this.#bury(request.id);
      else left.push(request);
    return left;
  }

  /** What it has committed so far is done. What it commits from now on comes too late, but nobody tells it so. */
  async #bury(id: string): Promise<void> {
    const { redos } = (await this.read()).state;
    for (const redo of redos) if (redo.request === id) await this.complete(redo);
    this.#buried.add(id);
  }

  override async isOver(id: string): Promise<boolean> {
    return this.#buried.has(id) || (await super.isOver(id));
  }

  override async drop(): Promise<void> {
    // Nobody is told.
  }
}

/** A waiter looks at one of those in its way at a time: the next one's silence counts from when that one is over. */
class JudgingOneByOne extends LockTable {
  override async judge<R extends LockRequestRecord>(requests: readonly R[], options: Judging): Promise<R[]> {
    if (options.once) return await super.judge(requests, options);
    return [...requests.slice(0, -1), ...(await super.judge(requests.slice(-1), options))];
  }
}

/** Waits for nobody: what others hold is over, as far as it is concerned. */
class NobodyBlocks extends LockTable {
  override async isOver(id: string): Promise<boolean> {
    return !id.startsWith((await this.ground.session()).holder.id);
  }
}

/** Asks for a hold file by a link alone, also on a share: the client links from the file that it remembers, which is a slot by now. */
class AskingByLinkAlone extends LockTable {
  override async isOver(id: string): Promise<boolean> {
    return !(await canLinkFrom(this.ground.staging, this.holdFile(id))) && (await super.isOver(id));
  }
}

/** Passes a hold on without a look whether it still stands. */
class BlindEntrance extends Acquirer {
  protected override async stands(): Promise<boolean> {
    return true;
  }
}

/** Releases whatever now has the request of a hold that was released before. */
class ReleaseByRequest extends TablePathLocks {
  override async release(grant: Grant): Promise<void> {
    if (grant.isGivenUp) await this.table.release(grant.id);
    else await super.release(grant);
  }
}

/** Gives a hold up while something is being appended under it. */
class HastyEnding extends Releaser {
  protected override async untilQuiet(): Promise<void> {
    // Waits for nothing.
  }
}

/** Condemns a request for ever, also when it has changed hands since it was judged. */
class VerdictOnTheId extends LockTable {
  protected override judgedIn({ id }: LockRequestRecord): string {
    return id;
  }
}

/** Removes the hold file of what it drops, and then says so in the list. */
class FileBeforeRecord extends LockTable {
  override async drop(requests: readonly LockRequestRecord[]): Promise<void> {
    for (const { id } of requests) await unlinkIfThere(this.ground.ports.disk, this.holdFile(id));
    await super.drop(requests);
  }
}

/** Removes the hold file of what was dropped, and then completes what was committed under it. */
class FileBeforeRedo extends LockTable {
  override async finishDropped(request: LockRequestRecord, table: Table): Promise<void> {
    await unlinkIfThere(this.ground.ports.disk, this.holdFile(request.id));
    await super.finishDropped(request, table);
  }
}

/** U1: widens the request where it stands, if those who hold now allow it. Who only waits is not asked. */
class UpgradeInPlace extends TablePathLocks {
  override async upgrade(grant: Grant, to: LockChange): Promise<void> {
    for (;;) {
      let blockers: LockRequestRecord[] = [];
      const entry = await this.table.append(({ requests, redos }, { fence, change }) => {
        const mine = findOwn(requests, grant);
        if (mine === undefined) return undefined;
        const wider: LockRequestRecord = { ...mine, claims: changed(mine.claims, to), fence, change };
        const holding = requests.filter((request) => blockersOf(requests, request).length === 0);
        blockers = blockersOf([...holding.filter((request) => request !== mine), wider], wider);
        if (blockers.length > 0) return undefined;
        return { requests: requests.map((request) => (request === mine ? wider : request)), redos };
      });
      const mine = findOwn(entry?.state.requests ?? [], grant);
      if (mine !== undefined) {
        grant.claims = mine.claims;
        grant.asked = changed(grant.asked, to);
        grant.fence = mine.fence;
        return;
      }
      if (blockers.length === 0) throw loseIt(grant);
      if ((await this.table.judge(blockers, { once: true })).length > 0) throw refused(grant);
    }
  }
}

/** The hold goes on with the fence that it had, though others have come in between. */
class UpgradeWithOldFence extends TablePathLocks {
  override async upgrade(grant: Grant, to: LockChange, options: Waiting): Promise<void> {
    const { fence } = grant;
    await super.upgrade(grant, to, options);
    grant.fence = fence;
  }
}

/** A downgrade that failed changes nothing about the hold, also when its answer was lost. */
class DowngradeWithoutDoubt extends TablePathLocks {
  override async downgrade(grant: Grant, to: LockChange): Promise<void> {
    const { claims, asked } = grant;
    try {
      await super.downgrade(grant, to);
    } catch (error) {
      [grant.claims, grant.asked, grant.isWidthInDoubt] = [claims, asked, false];
      throw error;
    }
  }

  override async check(grant: Grant): Promise<void> {
    grant.mustHold();
    if (findOwn((await this.table.read()).state.requests, grant) === undefined) throw loseIt(grant);
  }
}

/** Closes without a word to those that work under a hold. */
class ClosingInSilence extends TablePathLocks {
  protected override tell(): void {
    // Nobody is told.
  }
}

/** Looks once whether it is offered; takes it then, whoever has it by now. */
class ReceiveWithoutLookingAgain extends TablePathLocks {
  protected override async takeOver(token: string, life: HolderSession): Promise<LockRequestRecord> {
    const id = token.slice(0, token.lastIndexOf("."));
    const offered = (await this.table.read()).state.requests.find((request) => request.id === id);
    if (offered?.transfer === undefined) throw holdfastError("NO_SUCH_TRANSFER", "It was taken.", { token });
    const { transfer: _transfer, ...taken } = { ...offered, holder: life.holder.id };
    await this.table.append(({ requests, redos }, { change }) => ({
      requests: [...requests.filter((request) => request.id !== id), { ...taken, change }],
      redos,
    }));
    return taken;
  }
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
/** Who comes in with an older fence than one who was there before was let in beside or after a holder that excludes it. */
const togetherOrLate = /are inside together|fence \d+ came after fence \d+/;
const lost = /was acknowledged, and the log is|was refused, and happened all the same/;

export const pathLockMutants: readonly Mutant[] = [
  ...familyMutants,
  {
    name: "hold passed on without a look",
    about: "Somebody has broken it, and another is inside.",
    scenario: scenarioNamed(
      changingHandsScenarios({ EntranceClass: BlindEntrance }),
      "hands: two callers of one process, another process, and a breaker",
    ),
    breaks: /inside together|came after a higher one/,
  },
  {
    name: "hold released twice",
    about: "Its request was passed on, and the second release ended it for the next caller.",
    scenario: scenarioNamed(
      changingHandsScenarios({ LocksClass: ReleaseByRequest }),
      "hands: two callers of one process that release twice, and another process",
    ),
    breaks: /inside together|came after a higher one/,
  },
  {
    name: "hold given up while a commit is under way",
    about: "The commit finds the request that it began under, which is the next caller's by now.",
    scenario: scenarioNamed(
      changingHandsScenarios({ EndingClass: HastyEnding }),
      "hands: a commit that its caller does not wait for, and the next caller",
    ),
    breaks: /happened under the next/,
  },
  {
    name: "waiter that waits for nobody",
    about: "It enters beside whoever is inside: the least that the scenarios must find.",
    scenario: scenarioNamed(pathLockScenarios({ TableClass: NobodyBlocks }), "locks: exact against exact"),
    breaks: /inside together/,
  },
  {
    name: "locks: hold file asked for without its directory",
    about: "Its owner has let go, and whoever waits is told that it is still there.",
    scenario: scenarioNamed(
      pathLockScenarios({ TableClass: AskingByLinkAlone }),
      "locks: a waiter whose client remembers the hold file",
    ),
    breaks: /refused for a holder that had let go/,
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
    about: "Of several that died together each one keeps the waiter out for a lease of its own.",
    scenario: scenarioNamed(
      pathLockScenarios({ TableClass: JudgingOneByOne }),
      "locks: two silent holders and a waiter",
    ),
    breaks: /two silent holders kept a waiter out/,
  },
  {
    name: "locks: upgrade in place (U1)",
    about: "Who waits below enters when its own predecessor goes, beside the new tree lock.",
    scenario: scenarioNamed(
      changingHandsScenarios({ LocksClass: UpgradeInPlace }),
      "hands: upgrade against one who only waits",
    ),
    breaks: together,
  },
  {
    name: "locks: upgrade with the old fence",
    about: "Who was inside in between had a higher one.",
    scenario: scenarioNamed(pathLockScenarios({ LocksClass: UpgradeWithOldFence }), "locks: upgrade against a waiter"),
    breaks: /fence \d+ came after fence \d+/,
  },
  {
    name: "locks: closed without a word",
    about: "Another process comes in, while a caller goes on under the hold whose signal it watches.",
    scenario: scenarioNamed(
      changingHandsScenarios({ LocksClass: ClosingInSilence }),
      "hands: locks that are closed under a hold, and a waiter",
    ),
    breaks: together,
  },
  {
    name: "locks: downgrade that failed is none",
    about: "The list says that it was made: another is let in, and the hold says that it stands as before.",
    scenario: scenarioNamed(
      changingHandsScenarios({ LocksClass: DowngradeWithoutDoubt }),
      "hands: a downgrade whose answer is lost, and another process",
    ),
    breaks: togetherOrLate,
  },
  {
    name: "locks: verdict on the request, not on its state",
    about: "What was received meanwhile is dropped like the offer that had lapsed.",
    scenario: scenarioNamed(
      changingHandsScenarios({ TableClass: VerdictOnTheId }),
      "hands: a receiver, and one who finds the giver dead",
    ),
    breaks: togetherOrLate,
  },
  {
    name: "locks: receive without looking again",
    about: "Two read one offer, and both take it.",
    scenario: scenarioNamed(
      changingHandsScenarios({ LocksClass: ReceiveWithoutLookingAgain }),
      "hands: two receivers of one token",
    ),
    breaks: /have received one hold/,
  },
  {
    name: "locks: hold file removed before the drop is on record",
    about: "A third one takes the file's absence for consent, while the holder still commits.",
    scenario: scenarioNamed(brokenHolderScenarios({ TableClass: FileBeforeRecord }), third),
    breaks: lost,
  },
  {
    name: "locks: hold file removed before the redo is complete",
    about: "A third one takes the file's absence for the end of all effects.",
    scenario: scenarioNamed(brokenHolderScenarios({ TableClass: FileBeforeRedo }), third),
    breaks: lost,
  },
];
