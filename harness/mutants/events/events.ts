// Known-wrong event logs: designs that were proposed, that other projects shipped, or that Holdfast
// had before.
import type { Waiting } from "../../../src/common.ts";
import { RollingChain } from "../../../src/durable/chain/rolling-chain.ts";
import { Appender } from "../../../src/events/append/appender.ts";
import { encodeHeader, listSegments, segmentPath } from "../../../src/events/log/format/segment.ts";
import { emptyTip, type Tip } from "../../../src/events/log/format/tip.ts";
import type { LogFiles } from "../../../src/events/log/log-files.ts";
import type { Head } from "../../../src/events/log/publish/head-file.ts";
import { LocalPublisher, type LocalPublisherClasses } from "../../../src/events/log/publish/local-publisher.ts";
import { LogTail } from "../../../src/events/log/publish/log-tail.ts";
import { linesAfter, parsedEndOf, PublishedEnd } from "../../../src/events/log/publish/published-end.ts";
import { WriteSessionLost, type WriterGate, type WriteSession } from "../../../src/events/log/publish/publisher.ts";
import { Recovery } from "../../../src/events/log/publish/recovery.ts";
import { SharePublisher } from "../../../src/events/log/publish/share-publisher.ts";
import type { StateChain, Tenures, TenureOptions } from "../../../src/events/log/publish/tenure-chain.ts";
import { createStoreLock, type StoreHold, type StoreLock } from "../../../src/locks/store/store-lock.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { local, openDoor, share, type EventScenarioOptions } from "../../scenarios/events/event-actors.ts";
import { localEventScenarios, shareEventScenarios } from "../../scenarios/events/events.ts";
import {
  comesBackScenarios,
  mixedDurabilityScenarios,
  shareOnLocalDiskScenarios,
} from "../../scenarios/events/unsynced-events.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Finds the end of all valid lines, durable or not. */
async function parsedTip(files: LogFiles): Promise<Tip> {
  const segment = (await listSegments(files.disk, files.directory)).at(-1);
  return segment === undefined ? emptyTip : await parsedEndOf(files, segment);
}

/** Trusts the lines of a dead writer, which may be only in the page cache. */
class AdoptsInPlace extends Recovery {
  override async rescue(): Promise<Tip> {
    const tip = await parsedTip(this.files);
    await this.tail.publishHead(tip);
    return tip;
  }
}

/**
 * Continues in the same segment after a failed write or sync, so the next writer finds whole lines
 * of failed appends.
 */
class GoesOnAfterFailure extends LogTail {
  protected override async abandon(): Promise<void> {
    // Abandons no segment.
  }
}

/** Shows readers every line that parses, durable or not. */
class ShowsWhatParses extends LocalPublisher {
  readonly #files: LogFiles;

  constructor(files: LogFiles) {
    super(files);
    this.#files = files;
  }

  override async tip(): Promise<Tip> {
    return await parsedTip(this.#files);
  }
}

/** Creates a new segment in place: its name is not durable when its first line is acknowledged. */
class CreatesSegments extends LogTail {
  override async startSegment(after: Tip): Promise<Tip> {
    if (after.segment === 0) return await super.startSegment(after, []);
    const segment = after.segment + 1;
    const header = encodeHeader(this.files.newHeader(segment, after));
    await this.files.disk.createFile(segmentPath(this.files.directory, segment), header.bytes, { sync: true });
    const tip = { ...after, segment, length: header.bytes.length, crc: header.crc };
    await this.publishHead(tip);
    return tip;
  }
}

/** Copies unpublished lines into a new segment, even under a deleted lock file. */
class CopiesInDoubt extends LogTail {
  override get isAlone(): boolean {
    return false;
  }
}

/** Writes unpublished lines again at their offset, although their writer may still write there. */
class RewritesBesideAnother extends Recovery {
  override async rescue(tip: Tip): Promise<Tip> {
    const { lines, end } = await linesAfter(this.files, tip);
    if (lines.length > 0) await this.tail.writeAgain(tip, lines, end);
    return await this.tail.startSegment(end, []);
  }
}

/** Reports a full disk without checking its lock file. */
class TrustsItsVoid extends LogTail {
  protected override async makeVoid(tip: Tip): Promise<boolean> {
    await super.makeVoid(tip).catch(() => undefined);
    return true;
  }
}

/** Reports a full disk without removing the whole lines of the failed append. */
class LeavesWhatDidNotFit extends LogTail {
  protected override async makeVoid(): Promise<boolean> {
    return true;
  }
}

/** Drops lines after the head, as if none of them could have been acknowledged. */
class DropsInDoubt extends Recovery {
  override async rescue(tip: Tip): Promise<Tip> {
    return await this.tail.startSegment(tip, []);
  }
}

/** Begins a new segment after lines that were never synced. */
class LeavesUnsynced extends LogTail {
  protected override async leaveBehind(): Promise<void> {
    // The kernel writes them at some time, unless the power fails before.
  }
}

/** Shows lines that another process appended without a sync, and reports them as repeated. */
class ShowsUnsynced extends PublishedEnd {
  override async shown({ tip }: Head): Promise<Tip> {
    return tip;
  }
}

/** A reader takes a slot for durable as soon as it has a name. */
class ShowsBareSlots<T> extends RollingChain<T> {
  protected override async settleShown(): Promise<void> {
    // The writer syncs the slot a moment later.
  }
}

/** Continues in the segment of a writer with a deleted lock file, which may still write there. */
class GoesOnBesideAnother extends LocalPublisher {
  override async begin(gate: WriterGate): Promise<WriteSession> {
    return await super.begin({ lockId: "", assertHeld: () => gate.assertHeld() });
  }
}

/** Acknowledges without checking its lock file. */
class TrustsItsLock extends LocalPublisher {
  override async begin({ lockId }: WriterGate): Promise<WriteSession> {
    return await super.begin({ lockId, assertHeld: async () => undefined });
  }
}

type Change = Parameters<StateChain["append"]>[1];

/** A chain of tenures with another rule for each append. */
function withChange(wrong: () => (change: Change) => Change): EventScenarioOptions {
  return withShare({
    openChain: async (...args) => {
      const chain = await RollingChain.open<Tenures>(...args);
      const changed = wrong();
      return {
        read: () => chain.read(),
        isStanding: () => chain.isStanding(),
        settled: () => chain.settled(),
        append: (id, change, options) => chain.append(id, changed(change), options),
      };
    },
  });
}

/** Takes over in the segment of the writer that was named before. */
const sameSegment =
  (change: Change): Change =>
  (state, number) => {
    const next = change(state, number);
    if (next?.writer === undefined || state.tip.segment === 0) return next;
    return { ...next, segments: state.segments, writer: { ...next.writer, segment: state.tip.segment } };
  };

/** Publishes without checking that it still has the tenure. */
const publishesUnnamed = (): ((change: Change) => Change) => {
  let writer: Tenures["writer"];
  return (change) => (state, number) => {
    const next = change(state, number) ?? (writer && change({ ...state, writer }, number));
    writer = next?.writer ?? writer;
    return next;
  };
};

/** Continues to write after its last publish, because it checks its tenure too late. */
class WritesAfterItsLast extends SharePublisher {
  override async begin(): Promise<WriteSession> {
    const session = await super.begin();
    let isDone = false;
    return {
      get published() {
        return session.published;
      },
      get end() {
        return session.end;
      },
      get isFull() {
        return session.isFull;
      },
      publish: async (lines, next, isLast) => {
        await (isDone ? this.#writeAnyway(session.end, lines) : session.publish(lines, next, isLast));
        isDone = isLast;
      },
      close: () => session.close(),
    };
  }

  async #writeAnyway({ segment, length }: Tip, lines: Uint8Array): Promise<void> {
    const file = await this.files.disk.open(segmentPath(this.files.directory, segment), "write");
    await file.write(length, lines);
    await file.sync();
    throw new WriteSessionLost("found out too late");
  }
}

/** Reports a refusal caused by an event of the same batch even if the batch was not written. */
class RefusesForPending extends Appender {
  protected override dependsOnBatch(): boolean {
    return false;
  }
}

function withLocal(Publisher: typeof LocalPublisher): EventScenarioOptions {
  return { ...local, openPublisher: async (files) => new Publisher(files) };
}

function withParts(parts: LocalPublisherClasses): EventScenarioOptions {
  return { ...local, openPublisher: async (files) => new LocalPublisher(files, parts) };
}

function withShare(options: TenureOptions, Publisher: typeof SharePublisher = SharePublisher): EventScenarioOptions {
  return { ...share, openPublisher: (files) => Publisher.open(files, options) };
}

/** Its holds resume as if the gate had never been released. */
async function openUnasked(ports: Ports): Promise<StoreLock> {
  const lock = await createStoreLock(ports, "/log");
  const acquire = async (options?: Waiting): Promise<StoreHold> => ({
    ...(await lock.acquire(options)),
    resume: async () => true,
    assertHeld: async () => undefined,
  });
  return { ...lock, acquire };
}

const lost = /was acknowledged or shown as|are both said to be at/;
/**
 * A refusal is no violation: the next writer may refuse the leftovers of a wrong writer before a
 * missing line is noticed.
 */
const refused = "does not continue this log|has bytes after the published end";

export const eventMutants: readonly Mutant[] = [
  {
    name: "events: a turn that goes on without asking for the gate again",
    about: "Another writer may have come in since the last caller was answered.",
    scenario: scenarioNamed(
      localEventScenarios({ ...local, openLock: openUnasked }),
      "events: a writer that keeps its turn, and another",
    ),
    breaks: new RegExp(`${lost.source}|${refused}|is damaged at byte`),
  },
  {
    name: "events: a gate within each process only (the ADR's race)",
    about: "Two writers read the same end and write at the same offset.",
    scenario: scenarioNamed(
      localEventScenarios({ ...local, openLock: async () => openDoor }),
      "events: two writers, a kill",
    ),
    breaks: new RegExp(`${lost.source}|${refused}`),
  },
  {
    name: "events: acknowledged before the sync",
    about: "The power fails while an acknowledged line is only in the page cache.",
    scenario: scenarioNamed(
      localEventScenarios({ ...local, isSynced: false }),
      "events: a writer and a reader, power cuts (weak)",
    ),
    breaks: lost,
  },
  {
    name: "events: readers see lines that are not durable (E8)",
    about: "After a power cut, another event gets a position that a consumer remembers.",
    scenario: scenarioNamed(
      localEventScenarios(withLocal(ShowsWhatParses)),
      "events: a writer and a reader, power cuts (weak)",
    ),
    breaks: lost,
  },
  {
    name: "events: a dead writer's line is adopted where it stands (E4)",
    about: "The line after it is durable, and this one is not: readers stop before both.",
    scenario: scenarioNamed(
      localEventScenarios(withParts({ RecoveryClass: AdoptsInPlace })),
      "events: a failed sync, a kill, then a power cut",
    ),
    breaks: /was acknowledged or shown as|is damaged at byte/,
  },
  {
    name: "events: going on in a segment whose write failed (E5)",
    about: "The callers were told that the append failed, but the next writer publishes their lines.",
    scenario: scenarioNamed(
      localEventScenarios(withParts({ TailClass: GoesOnAfterFailure })),
      "events: a sync that fails once",
    ),
    breaks: /was said to have failed|was acknowledged or shown as/,
  },
  {
    name: "events: a segment whose name is not durable (E14)",
    about: "The first line is acknowledged, and a power cut loses the whole file.",
    scenario: scenarioNamed(
      localEventScenarios(withParts({ TailClass: CreatesSegments })),
      "events: segments that are full at once",
    ),
    breaks: new RegExp(`${lost.source}|is not a valid segment record|${refused}`),
  },
  {
    name: "events: lines behind an older head are left behind",
    about: "The file system came back with an older head, although the lines after it were acknowledged.",
    scenario: scenarioNamed(
      comesBackScenarios(withParts({ RecoveryClass: DropsInDoubt })),
      "events: the file system comes back under the same boot id",
    ),
    breaks: /was acknowledged or shown as|had read up to/,
  },
  {
    name: "events: lines behind an older head are copied",
    about: "A consumer has read them at their old offset, and finds another checksum at its position.",
    scenario: scenarioNamed(
      comesBackScenarios(withParts({ TailClass: CopiesInDoubt })),
      "events: the file system comes back under the same boot id",
    ),
    breaks: /had read up to/,
  },
  {
    name: "events: lines of a writer that may be at work are written again at their offset",
    about: "That writer holds a deleted lock file, and overwrites the lines that did not fit.",
    scenario: scenarioNamed(
      localEventScenarios(withParts({ RecoveryClass: RewritesBesideAnother })),
      "events: a full disk, and a lock file that is deleted",
    ),
    breaks: /is damaged at byte|does not continue this log|was said to have failed/,
  },
  {
    name: "events: a full disk is reported under a deleted lock file",
    about: "Another writer published the line before it was overwritten.",
    scenario: scenarioNamed(
      localEventScenarios(withParts({ TailClass: TrustsItsVoid })),
      "events: a full disk, and a lock file that is deleted",
    ),
    breaks: /was said to have failed/,
  },
  {
    name: "events: a line that did not fit stays behind",
    about: "The caller was told that the append failed, but the next writer publishes the line.",
    scenario: scenarioNamed(
      localEventScenarios(withParts({ TailClass: LeavesWhatDidNotFit })),
      "events: a full disk, and a lock file that is deleted",
    ),
    breaks: /was said to have failed/,
  },
  {
    name: "events: a segment continues lines that were not synced",
    about: "Lines that were synced and acknowledged follow a hole that no reader passes.",
    scenario: scenarioNamed(
      mixedDurabilityScenarios(withParts({ TailClass: LeavesUnsynced })),
      "events: one does not sync, full segments, power cuts",
    ),
    breaks: /was acknowledged or shown as|is damaged at byte|does not continue this log|is missing/,
  },
  {
    name: "events: an append that was not synced is reported as repeated",
    about: "A process that syncs relies on that answer, and a power cut loses the event.",
    scenario: scenarioNamed(
      mixedDurabilityScenarios(withParts({ EndClass: ShowsUnsynced })),
      "events: one does not sync, the other repeats its append, power cuts",
    ),
    breaks: lost,
  },
  {
    name: "events: in mode share a reader sees a slot that is not durable",
    about: "On a local disk a name is visible before it is synced. After a power cut, another event gets the position.",
    scenario: scenarioNamed(
      shareOnLocalDiskScenarios(withShare({ openChain: (...args) => ShowsBareSlots.open<Tenures>(...args) })),
      "events: mode share on a local disk, a reader, power cuts (weak)",
    ),
    breaks: lost,
  },
  {
    name: "events: going on in the segment of a writer that may be at work",
    about: "The lock file of that writer was deleted, and both write at the same offset.",
    scenario: scenarioNamed(
      localEventScenarios(withLocal(GoesOnBesideAnother)),
      "events: a lock file that is deleted under its holder",
    ),
    breaks: /was acknowledged or shown as|are both said to be at|is damaged at byte|does not continue this log/,
  },
  {
    name: "events: acknowledged under a deleted lock file",
    about: "Another writer began a new segment before the acknowledged line.",
    scenario: scenarioNamed(
      localEventScenarios(withLocal(TrustsItsLock)),
      "events: a lock file that is deleted under its holder",
    ),
    breaks: lost,
  },
  {
    name: "events: refused because of an event that was never written (E6)",
    about: "The batch fails after a caller was refused because of an event of that batch.",
    scenario: scenarioNamed(
      localEventScenarios({ ...local, AppenderClass: RefusesForPending }),
      "events: a disk that runs full",
    ),
    breaks: /a call was refused because of/,
  },
  {
    name: "events: writing on after the last publish",
    about: "Another writer now writes in the same segment, and its acknowledged line is overwritten.",
    scenario: scenarioNamed(
      shareEventScenarios(withShare({}, WritesAfterItsLast)),
      "events: a writer that goes on after it was done",
    ),
    breaks: new RegExp(`${lost.source}|is damaged|${refused}`),
  },
  {
    name: "events: the same segment after an unclean end (E1)",
    about: "A writer that was judged dead overwrites a line that its successor acknowledged.",
    scenario: scenarioNamed(
      shareEventScenarios(withChange(() => sameSegment)),
      "events: a writer that was cut off and comes back",
    ),
    breaks: new RegExp(`${lost.source}|is damaged|${refused}`),
  },
  {
    name: "events: publishing without being named",
    about: "Two writers publish their ends over each other.",
    scenario: scenarioNamed(
      shareEventScenarios(withChange(publishesUnnamed)),
      "events: a writer that was cut off and comes back",
    ),
    breaks: lost,
  },
];
