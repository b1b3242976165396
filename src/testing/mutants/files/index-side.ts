// Known-wrong variants of the index of a tree: of its tickets, workers, documents, followers and searches.
import { ensureDirectory, parentOf } from "../../../durable/publish/directory.ts";
import { putIfAbsent } from "../../../durable/publish/publish.ts";
import type { Staging } from "../../../durable/publish/staging.ts";
import { documentKind, type Document } from "../../../files/documents/document.ts";
import { Documents } from "../../../files/documents/documents.ts";
import type { DocumentsLayout } from "../../../files/documents/layout.ts";
import type { IndexedText } from "../../../files/engine/text-index.ts";
import type { Change } from "../../../files/model/file-tree.ts";
import { Dispatcher, type DispatcherParts } from "../../../files/queue/dispatcher.ts";
import { LastingWork } from "../../../files/queue/lasting-work.ts";
import type { IndexingOptions } from "../../../files/queue/indexer.ts";
import { TaskQueue } from "../../../files/queue/task-queue.ts";
import { Worker, type WorkerParts } from "../../../files/queue/worker.ts";
import { GivenEngine } from "../../../files/search/engine.ts";
import { Follower } from "../../../files/search/follower.ts";
import { Searcher, type SearcherParts } from "../../../files/search/searcher.ts";
import { stampOf } from "../../../files/tree/stamps.ts";
import { SnapshotKeeper, type SnapshotKeeperParts } from "../../../files/search/snapshot-keeper.ts";
import { encodeRecord } from "../../../format/record.ts";
import { randomName } from "../../../format/id.ts";
import type { LeasedWork } from "../../../part/progress/checkpoints.ts";
import { indexDeletedScenarios, recordFirst } from "../../scenarios/files/index-deleted.ts";
import { fullDiskScenarios } from "../../scenarios/files/full-disk.ts";
import { indexFollowScenarios } from "../../scenarios/files/index-follow.ts";
import { indexWorkScenarios } from "../../scenarios/files/index-work.ts";
import { snapshotScenarios } from "../../scenarios/files/snapshots.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Ends with the first failure, of whatever kind. */
class EndingWork extends LastingWork {
  override async run(run: () => Promise<void>): Promise<void> {
    await run();
  }
}

/** Takes the text that comes last for the newest. */
class TrustingEngine extends GivenEngine {
  override async put(files: readonly IndexedText[]): Promise<void> {
    for (const { path } of files) await this.drop(path, Infinity);
    await super.put(files);
  }
}

/** Does not remember what a later change has taken away. */
class ForgetfulFollower extends Follower {
  protected override isTakenAway(): boolean {
    return false;
  }
}

/** Publishes what came of a change before it has made the documents. */
class EarlyOutcome extends Worker {
  readonly #early: WorkerParts;

  constructor(parts: WorkerParts) {
    super(parts);
    this.#early = parts;
  }

  override async index(change: Change, options: IndexingOptions = {}): Promise<number> {
    const documents = [change.path];
    await this.#early.outcomes.publish({ change: change.number, paths: documents, documents });
    return await super.index(change, options);
  }
}

/** Leaves it to the disk when a document is written. */
class UnsyncedDocuments extends Documents {
  readonly #unsynced: Staging;

  constructor(staging: Staging, layout: DocumentsLayout) {
    super(staging, layout);
    this.#unsynced = staging;
  }

  override async publish(document: Document): Promise<void> {
    const target = this.layout.document(document.path, document.change);
    const bytes = encodeRecord(documentKind, { id: randomName(this.#unsynced.random.bytes(16)), ...document });
    await ensureDirectory(this.#unsynced.disk, parentOf(target));
    await putIfAbsent(this.#unsynced, target, bytes, { sync: false });
  }
}

/** Looks at the files while the change may still be committed. */
class ImpatientWorker extends Worker {
  protected override async waitForEnd(): Promise<void> {
    // Nothing.
  }
}

/** Takes the word of the index for it. */
class TrustingSearcher extends Searcher {
  readonly #trusting: SearcherParts;

  constructor(parts: SearcherParts) {
    super(parts);
    this.#trusting = parts;
  }

  protected override async findStamp(path: string): Promise<string | undefined> {
    return this.#trusting.follower.engine?.find(path)?.stamp;
  }
}

/** Reads the file by its name, which the client of a share may answer from what it remembers. */
class ReadingSearcher extends Searcher {
  readonly #reading: SearcherParts;

  constructor(parts: SearcherParts) {
    super(parts);
    this.#reading = parts;
  }

  protected override async findStamp(path: string): Promise<string | undefined> {
    const { place } = this.#reading;
    const bytes = await place.disk.readFile(place.pathOf(path), 1000).catch(() => undefined);
    return bytes === undefined ? undefined : stampOf(bytes);
  }
}

/** Moves its checkpoint on, and then makes the tickets. */
class EarlyCheckpoint extends Dispatcher {
  readonly #early: DispatcherParts;

  constructor(parts: DispatcherParts) {
    super(parts);
    this.#early = parts;
  }

  override async pass(work: LeasedWork): Promise<boolean> {
    const changes = await this.#early.place.changes.readAfter(work.saved.position);
    const isSaved = await work.save(changes.at(-1)?.number ?? work.saved.position);
    for (const change of changes) await this.#early.enqueue(change);
    return isSaved;
  }
}

/** Removes outcomes first, and then publishes the snapshot that has them. */
class EarlyRemoval extends SnapshotKeeper {
  readonly #early: SnapshotKeeperParts;

  constructor(parts: SnapshotKeeperParts) {
    super(parts);
    this.#early = parts;
  }

  override async keep(changesWanted: number): Promise<void> {
    await this.#early.outcomes.removeUpTo(await this.#early.place.changes.last());
    await super.keep(changesWanted);
  }
}

/** Whichever process makes a ticket, it is one more. */
class KeylessQueue extends TaskQueue {
  protected override keyOf(): string | undefined {
    return undefined;
  }
}

const late = "files index: a worker that is late against a";

export const indexMutants: readonly Mutant[] = [
  {
    name: "documents applied without a look at their changes",
    about: "The document of an earlier write comes last, and the newest text is not found any more.",
    scenario: scenarioNamed(
      indexFollowScenarios({ EngineClass: TrustingEngine, FollowerClass: ForgetfulFollower }),
      `${late} write and its worker`,
    ),
    breaks: /the index has/,
  },
  {
    name: "removals that a follower does not remember",
    about: "The document of an earlier write comes after the outcome of a removal, and brings the file back.",
    scenario: scenarioNamed(
      indexFollowScenarios({ FollowerClass: ForgetfulFollower }),
      `${late} removal and its worker`,
    ),
    breaks: /the index has/,
  },
  {
    name: "outcome that is published before its documents",
    about: "A follower finds no document, and never looks again.",
    scenario: scenarioNamed(
      indexFollowScenarios({ WorkerClass: EarlyOutcome }),
      "files index: a follower against a worker",
    ),
    breaks: /the index has/,
  },
  {
    name: "documents that are not synced",
    about: "After a power cut an outcome names a document that is gone.",
    scenario: scenarioNamed(
      indexFollowScenarios({ DocumentsClass: UnsyncedDocuments }),
      "files index: a worker and power cuts",
    ),
    breaks: /the index has/,
  },
  {
    name: "worker that does not wait for the hold of the change",
    about: "A change is announced before its commit: the worker finds the state before it, and no other comes.",
    scenario: scenarioNamed(
      indexWorkScenarios({ WorkerClass: ImpatientWorker }),
      "files index: a worker that comes before the commit",
    ),
    breaks: /the index has/,
  },
  {
    name: "search that does not look at the files",
    about: "The index of a process knows nothing yet of a removal in another one.",
    scenario: scenarioNamed(
      indexFollowScenarios({ SearcherClass: TrustingSearcher }),
      "files index: a search against a removal in another process",
    ),
    breaks: /acknowledged removal or move/,
  },
  {
    name: "search that reads a file of a share by its name",
    about: "The client of a share may give a file for a while that another machine has moved away.",
    scenario: scenarioNamed(
      indexFollowScenarios({ SearcherClass: ReadingSearcher }),
      "files index: a search against a move on another machine",
    ),
    breaks: /acknowledged removal or move/,
  },
  {
    name: "follower that does not wait for the hold of the change",
    about: "It is told of a change that is announced, and finds what was there before.",
    scenario: scenarioNamed(
      indexFollowScenarios({
        follow: async function* (place, { after }) {
          yield* await place.changes.readAfter(after);
        },
      }),
      "files index: a follower against a writer that dies",
    ),
    breaks: /a follower found/,
  },
  {
    name: "dispatcher that moves on before it has made the tickets",
    about: "One that dies in between leaves changes that no worker is told of.",
    scenario: scenarioNamed(
      indexWorkScenarios({ DispatcherClass: EarlyCheckpoint }),
      "files index: a dispatcher that dies",
    ),
    breaks: /has no outcome/,
  },
  {
    name: "tickets of changes without a key",
    about: "The operation and the dispatcher both make one.",
    scenario: scenarioNamed(
      indexWorkScenarios({ QueueClass: KeylessQueue }),
      "files index: the dispatcher against a process that adds and dies",
    ),
    breaks: /has 2 tickets/,
  },
  {
    name: "outcomes removed before their snapshot is published",
    about: "After a power cut a change is in no snapshot, and is waited for for ever.",
    scenario: scenarioNamed(
      snapshotScenarios({ KeeperClass: EarlyRemoval }),
      "files snapshots: a keeper and power cuts",
    ),
    breaks: /in no snapshot/,
  },
  {
    name: "index whose record is deleted first",
    about: "What the next index has made by then is deleted with the rest of the one before it.",
    scenario: scenarioNamed(
      indexDeletedScenarios({ orderOf: recordFirst }),
      "files index: an index that is deleted, its record last",
    ),
    breaks: /has no outcome|the index has/,
  },
  {
    name: "work that ends with a full disk",
    about: "When there is room again no process works any more, until one is started.",
    scenario: scenarioNamed(
      fullDiskScenarios({ LastingClass: EndingWork }),
      "files index: a dispatcher on a disk that is full for a while",
    ),
    breaks: /has ended because the disk was full/,
  },
];
