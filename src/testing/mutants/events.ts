// Event logs that are wrong in ways that were proposed, shipped by others, or built by ourselves first.
import { RollingChain } from "../../durable/chain/rolling-chain.ts";
import { Appender } from "../../events/append/appender.ts";
import type { Head } from "../../events/log/publish/head-file.ts";
import { LocalPublisher } from "../../events/log/publish/local-publisher.ts";
import { linesBehind } from "../../events/log/read/parsed-end.ts";
import { TenureLost, type Tenure, type WriterGate } from "../../events/log/publish/publisher.ts";
import { SharePublisher, type Tenures } from "../../events/log/publish/share-publisher.ts";
import { encodeHeader, segmentPath } from "../../events/log/format/segment.ts";
import type { Tip } from "../../events/log/format/tip.ts";
import { local, openDoor, share, type EventScenarioOptions } from "../scenarios/events/event-actors.ts";
import { localEventScenarios, shareEventScenarios } from "../scenarios/events/events.ts";
import {
  comesBackScenarios,
  mixedDurabilityScenarios,
  shareOnLocalDiskScenarios,
} from "../scenarios/events/unsynced-events.ts";
import { scenarioNamed, type Mutant } from "./mutant.ts";

/** Believes what a dead writer has left where it stands: perhaps only the page cache has it. */
class AdoptsInPlace extends LocalPublisher {
  protected override async rescue(): Promise<Tip> {
    const tip = await this.parsedTip();
    await this.publishHead(tip);
    return tip;
  }
}

/** Goes on in the same segment after a write or a sync has failed. */
class GoesOnAfterFailure extends LocalPublisher {
  protected override async abandon(): Promise<void> {
    // Whoever comes next finds whole lines of those who were told that theirs had failed.
  }
}

/** Readers are shown what parses, durable or not. */
class ShowsWhatParses extends LocalPublisher {
  override async tip(): Promise<Tip> {
    return await this.parsedTip();
  }
}

/** A new segment is simply created: its name is not durable when its first line is acknowledged. */
class CreatesSegments extends LocalPublisher {
  protected override async startSegment(after: Tip): Promise<Tip> {
    if (after.segment === 0) return await super.startSegment(after, []);
    const segment = after.segment + 1;
    const header = encodeHeader(this.place.newHeader(segment, after));
    await this.place.disk.createFile(segmentPath(this.place.directory, segment), header.bytes, { sync: true });
    const tip = { ...after, segment, length: header.bytes.length, crc: header.crc };
    await this.publishHead(tip);
    return tip;
  }
}

/** Copies what stands beyond the head into a new segment, by whatever lock file it has come in. */
class CopiesInDoubt extends LocalPublisher {
  protected override get isAlone(): boolean {
    return false;
  }
}

/** Writes again in its place what a writer has left that may still be at work there. */
class RewritesBesideAnother extends LocalPublisher {
  protected override async rescue(tip: Tip): Promise<Tip> {
    const { lines, end } = await linesBehind(this.place, tip);
    if (lines.length > 0) await this.writeAgain(tip, lines, end);
    return await this.startSegment(end, []);
  }
}

/** Says that the disk was full without a look at its lock file. */
class TrustsItsVoid extends LocalPublisher {
  protected override async makeVoid(tip: Tip): Promise<boolean> {
    await super.makeVoid(tip).catch(() => undefined);
    return true;
  }
}

/** Says that the disk was full, and leaves whole lines behind. */
class LeavesWhatDidNotFit extends LocalPublisher {
  protected override async makeVoid(): Promise<boolean> {
    return true;
  }
}

/** Leaves behind what stands beyond the head, as if nobody could have been told of it. */
class DropsInDoubt extends LocalPublisher {
  protected override async rescue(tip: Tip): Promise<Tip> {
    return await this.startSegment(tip, []);
  }
}

/** Goes on in a new segment after lines that nobody has synced. */
class LeavesUnsynced extends LocalPublisher {
  protected override async leaveBehind(): Promise<void> {
    // The kernel will get to it, unless the power fails before.
  }
}

/** Shows, and repeats, what another process has appended without a sync. */
class ShowsUnsynced extends LocalPublisher {
  protected override async shown({ tip }: Head): Promise<Tip> {
    return tip;
  }
}

/** A reader takes a slot for durable as soon as it has a name. */
class ShowsBareSlots<T> extends RollingChain<T> {
  protected override async settleShown(): Promise<void> {
    // Its writer syncs it a moment later.
  }
}

/** Goes on in the segment of a writer whose lock file was deleted, and who may still be writing there. */
class GoesOnBesideAnother extends LocalPublisher {
  override async begin(gate: WriterGate): Promise<Tenure> {
    return await super.begin({ lockId: "", assertHeld: () => gate.assertHeld() });
  }
}

/** Acknowledges without a look at its lock file. */
class TrustsItsLock extends LocalPublisher {
  override async begin({ lockId }: WriterGate): Promise<Tenure> {
    return await super.begin({ lockId, assertHeld: async () => undefined });
  }
}

/** Takes over where the other one wrote. */
class SameSegment extends SharePublisher {
  protected override segmentFor({ tip, segments }: Tenures): number {
    return tip.segment === 0 ? segments + 1 : tip.segment;
  }
}

/** Publishes without asking whether it is still named. */
class PublishesUnnamed extends SharePublisher {
  protected override isNamed(): boolean {
    return true;
  }
}

/** Writes on after it has said that it is done: only then it asks. */
class WritesAfterItsLast extends SharePublisher {
  override async begin(): Promise<Tenure> {
    const tenure = await super.begin();
    let isDone = false;
    return {
      get published() {
        return tenure.published;
      },
      get end() {
        return tenure.end;
      },
      get isFull() {
        return tenure.isFull;
      },
      publish: async (lines, next, isLast) => {
        await (isDone ? this.#writeAnyway(tenure.end, lines) : tenure.publish(lines, next, isLast));
        isDone = isLast;
      },
      close: () => tenure.close(),
    };
  }

  async #writeAnyway({ segment, length }: Tip, lines: Uint8Array): Promise<void> {
    const file = await this.place.disk.open(segmentPath(this.place.directory, segment), "write");
    await file.write(length, lines);
    await file.sync();
    throw new TenureLost("found out too late");
  }
}

/** Tells at once who was refused because of what the batch was to write, also when it was not written. */
class RefusesForPending extends Appender {
  protected override restsOnBatch(): boolean {
    return false;
  }
}

const withLocal = (Publisher: typeof LocalPublisher): EventScenarioOptions => ({
  ...local,
  openPublisher: async (place) => new Publisher(place),
});
const withShare = (Publisher: typeof SharePublisher): EventScenarioOptions => ({
  ...share,
  openPublisher: (place) => Publisher.open(place),
});

const lost = /was acknowledged or shown as|are both said to be at/;
/** What a wrong writer has left is refused by the next one, before it could be told apart by what is missing. */
const refused = "does not continue this log|has more in it than counts";

export const eventMutants: readonly Mutant[] = [
  {
    name: "events: a gate within each process only (the ADR's race)",
    about: "Two writers read the same end and write at the same place.",
    scenario: scenarioNamed(
      localEventScenarios({ ...local, openLock: async () => openDoor }),
      "events: two writers, a kill",
    ),
    breaks: new RegExp(`${lost.source}|${refused}`),
  },
  {
    name: "events: acknowledged before the sync",
    about: "The power fails, and what was acknowledged was in the page cache alone.",
    scenario: scenarioNamed(
      localEventScenarios({ ...local, isSynced: false }),
      "events: a writer and a reader, power cuts (weak)",
    ),
    breaks: lost,
  },
  {
    name: "events: readers are shown what is not durable (E8)",
    about: "A consumer remembers a position that a power cut gives to another event.",
    scenario: scenarioNamed(
      localEventScenarios(withLocal(ShowsWhatParses)),
      "events: a writer and a reader, power cuts (weak)",
    ),
    breaks: lost,
  },
  {
    name: "events: a dead writer's line is adopted where it stands (E4)",
    about: "What comes after it is durable, and it is not: readers stop in front of both.",
    scenario: scenarioNamed(
      localEventScenarios(withLocal(AdoptsInPlace)),
      "events: a failed sync, a kill, then a power cut",
    ),
    breaks: /was acknowledged or shown as|is damaged at byte/,
  },
  {
    name: "events: going on in a segment whose write failed (E5)",
    about: "The callers were told that it failed, and the next writer finds their lines.",
    scenario: scenarioNamed(localEventScenarios(withLocal(GoesOnAfterFailure)), "events: a sync that fails once"),
    breaks: /was said to have failed|was acknowledged or shown as/,
  },
  {
    name: "events: a segment whose name is not durable (E14)",
    about: "The first line is acknowledged, and the power cut takes the whole file.",
    scenario: scenarioNamed(localEventScenarios(withLocal(CreatesSegments)), "events: segments that are full at once"),
    breaks: new RegExp(`${lost.source}|is not a valid segment record|${refused}`),
  },
  {
    name: "events: lines behind an older head are left behind",
    about: "The file system came back with a head of before, and what it does not tell of was acknowledged.",
    scenario: scenarioNamed(
      comesBackScenarios(withLocal(DropsInDoubt)),
      "events: the file system comes back under the same boot id",
    ),
    breaks: /was acknowledged or shown as|has come to/,
  },
  {
    name: "events: lines behind an older head are copied",
    about: "A consumer has seen them where they were, and finds another checksum at its position.",
    scenario: scenarioNamed(
      comesBackScenarios(withLocal(CopiesInDoubt)),
      "events: the file system comes back under the same boot id",
    ),
    breaks: /has come to/,
  },
  {
    name: "events: lines of a writer that may be at work are rewritten in their place",
    about: "It has come in by a lock file that was deleted, and makes void what it was told did not fit.",
    scenario: scenarioNamed(
      localEventScenarios(withLocal(RewritesBesideAnother)),
      "events: a full disk, and a lock file that is deleted",
    ),
    breaks: /is damaged at byte|does not continue this log|was said to have failed/,
  },
  {
    name: "events: a full disk is told under a lock file that was deleted",
    about: "Another has copied the line before it was made void.",
    scenario: scenarioNamed(
      localEventScenarios(withLocal(TrustsItsVoid)),
      "events: a full disk, and a lock file that is deleted",
    ),
    breaks: /was said to have failed/,
  },
  {
    name: "events: a line that did not fit stays behind",
    about: "The caller was told that it failed, and the next writer takes it up.",
    scenario: scenarioNamed(
      localEventScenarios(withLocal(LeavesWhatDidNotFit)),
      "events: a full disk, and a lock file that is deleted",
    ),
    breaks: /was said to have failed/,
  },
  {
    name: "events: a segment goes on after lines that were not synced",
    about: "What is acknowledged in it, with a sync, stands behind a hole, and nobody can read so far.",
    scenario: scenarioNamed(
      mixedDurabilityScenarios(withLocal(LeavesUnsynced)),
      "events: one does not sync, full segments, power cuts",
    ),
    breaks: /was acknowledged or shown as|is damaged at byte|does not continue this log|is missing/,
  },
  {
    name: "events: an append that was not synced is said to be there already",
    about: "Whoever syncs is told so, and the power cut takes it.",
    scenario: scenarioNamed(
      mixedDurabilityScenarios(withLocal(ShowsUnsynced)),
      "events: one does not sync, the other repeats its append, power cuts",
    ),
    breaks: lost,
  },
  {
    name: "events: in mode share a reader is shown a slot that is not durable",
    about:
      "On a local disk a name can be seen before it is synced, and a power cut gives its position to another event.",
    scenario: scenarioNamed(
      shareOnLocalDiskScenarios({
        ...share,
        openPublisher: (place) => SharePublisher.open(place, { ChainClass: ShowsBareSlots }),
      }),
      "events: mode share on a local disk, a reader, power cuts (weak)",
    ),
    breaks: lost,
  },
  {
    name: "events: going on in the segment of a writer that may be at work",
    about: "Its lock file was deleted; both write at the same place.",
    scenario: scenarioNamed(
      localEventScenarios(withLocal(GoesOnBesideAnother)),
      "events: a lock file that is deleted under its holder",
    ),
    breaks: /was acknowledged or shown as|are both said to be at|is damaged at byte|does not continue this log/,
  },
  {
    name: "events: acknowledged under a lock file that was deleted",
    about: "Another has begun a new segment before what was acknowledged.",
    scenario: scenarioNamed(
      localEventScenarios(withLocal(TrustsItsLock)),
      "events: a lock file that is deleted under its holder",
    ),
    breaks: lost,
  },
  {
    name: "events: refused because of an event that was never written (E6)",
    about: "The batch fails, and somebody was told of a conflict with what it was to write.",
    scenario: scenarioNamed(
      localEventScenarios({ ...local, AppenderClass: RefusesForPending }),
      "events: a disk that runs full",
    ),
    breaks: /somebody was refused because of/,
  },
  {
    name: "events: writing on after the last publish",
    about: "Another has begun in the same segment, and what it has acknowledged is written over.",
    scenario: scenarioNamed(
      shareEventScenarios(withShare(WritesAfterItsLast)),
      "events: a writer that goes on after it was done",
    ),
    breaks: new RegExp(`${lost.source}|is damaged|${refused}`),
  },
  {
    name: "events: the same segment after an unclean end (E1)",
    about: "The one that was taken for dead writes over what its successor has acknowledged.",
    scenario: scenarioNamed(
      shareEventScenarios(withShare(SameSegment)),
      "events: a writer that was cut off and comes back",
    ),
    breaks: new RegExp(`${lost.source}|is damaged|${refused}`),
  },
  {
    name: "events: publishing without being named",
    about: "Two writers publish their own end over each other's.",
    scenario: scenarioNamed(
      shareEventScenarios(withShare(PublishesUnnamed)),
      "events: a writer that was cut off and comes back",
    ),
    breaks: lost,
  },
];
