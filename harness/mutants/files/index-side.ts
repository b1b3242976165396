// Known-wrong variants of the index of a tree: of its tickets, workers, documents, followers and searches.
import { ensureDirectory, parentOf } from "../../../src/durable/publish/directory.ts";
import { putIfAbsent } from "../../../src/durable/publish/publish.ts";
import { documentKind } from "../../../src/files/documents/document.ts";
import type { Derived } from "../../../src/files/documents/derived.ts";
import type { IndexedText } from "../../../src/files/engine/text-index.ts";
import type { Change } from "../../../src/files/model/file-tree.ts";
import { LastingWork } from "../../../src/files/queue/lasting-work.ts";
import type { IndexingOptions } from "../../../src/files/queue/indexer.ts";
import { LogWorker, type Tenure } from "../../../src/files/queue/log-worker.ts";
import { TaskQueue } from "../../../src/files/queue/task-queue.ts";
import { Worker } from "../../../src/files/queue/worker.ts";
import { GivenEngine } from "../../../src/files/search/engine.ts";
import { Follower } from "../../../src/files/search/follower.ts";
import { stampOf } from "../../../src/files/tree/stamps.ts";
import { SnapshotKeeper } from "../../../src/files/search/snapshot-keeper.ts";
import { encodeRecord } from "../../../src/format/record.ts";
import { randomName } from "../../../src/format/id.ts";
import { indexDeletedScenarios, recordFirst } from "../../scenarios/files/index-deleted.ts";
import { fullDiskScenarios } from "../../scenarios/files/full-disk.ts";
import { indexFollowScenarios } from "../../scenarios/files/index-follow.ts";
import { indexWorkScenarios } from "../../scenarios/files/index-work.ts";
import { snapshotScenarios } from "../../scenarios/files/snapshots.ts";
import { wrapping } from "../../scenarios/files/wrapped-tree.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Ends with the first failure of any kind. */
class EndingWork extends LastingWork {
  override async run(run: () => Promise<void>): Promise<void> {
    await run();
  }
}

/** Treats the text that arrives last as the newest. */
class TrustingEngine extends GivenEngine {
  override async put(files: readonly IndexedText[]): Promise<void> {
    for (const { path } of files) await this.drop(path, Infinity);
    await super.put(files);
  }
}

/** Does not remember what a later change removed. */
class ForgetfulFollower extends Follower {
  protected override isTakenAway(): boolean {
    return false;
  }
}

/** Publishes the outcome of a change before its documents. */
class EarlyOutcome extends Worker {
  readonly #derived: Derived;

  constructor(...parts: ConstructorParameters<typeof Worker>) {
    super(...parts);
    this.#derived = parts[0].derived;
  }

  override async index(change: Change, options: IndexingOptions = {}): Promise<number> {
    const documents = [change.path];
    await this.#derived.outcomes.publish({ change: change.number, paths: documents, documents });
    return await super.index(change, options);
  }
}

/** Does not sync documents. */
function unsyncedDocuments(derived: Derived): Derived {
  const { documents, tree } = derived;
  const { staging } = tree.ground;
  const publish: typeof documents.publish = async (document) => {
    const target = documents.layout.document(document.path, document.change);
    const bytes = encodeRecord(documentKind, { id: randomName(staging.random.bytes(16)), ...document });
    await ensureDirectory(staging.disk, parentOf(target));
    await putIfAbsent(staging, target, bytes, { sync: false });
  };
  return wrapping(derived, { documents: wrapping(documents, { publish }) });
}

/** Reads the files before it is decided whether the change is committed. */
class ImpatientWorker extends Worker {
  protected override async waitForEnd(): Promise<void> {
    // Does nothing.
  }
}

/** Trusts the index without checking the file. */
function trustedIndex(derived: Derived): Derived {
  return wrapping(derived, { findStamp: async (path) => (await derived.documents.findNewest(path))?.stamp });
}

/** Reads the file by its name, which a share's client may answer from its cache. */
function readByName(derived: Derived): Derived {
  const { tree } = derived;
  const findStamp: Derived["findStamp"] = async (path) => {
    const bytes = await tree.disk.readFile(tree.pathOf(path), 1000).catch(() => undefined);
    return bytes === undefined ? undefined : stampOf(bytes);
  };
  return wrapping(derived, { findStamp });
}

/** Moves its checkpoint to the last change that it has read, and never reads an earlier one again. */
class EarlyCheckpoint extends LogWorker {
  #tenure: Tenure | undefined;

  protected override async readLost(): Promise<void> {
    // Does nothing.
  }

  protected override async findFree(read: readonly Change[]): Promise<(change: Change) => Promise<boolean>> {
    const newest = read.at(-1)?.number;
    if (newest !== undefined) await this.#tenure?.work.save(newest);
    return await super.findFree(read);
  }

  override async begin(tenure: Tenure, concurrency?: number): Promise<void> {
    this.#tenure = tenure;
    await super.begin(tenure, concurrency);
  }
}

/** Treats every change that it reads as committed. */
class ImpatientLogWorker extends LogWorker {
  protected override async findFree(): Promise<() => Promise<boolean>> {
    return async () => true;
  }
}

/** Removes outcomes first, and then publishes the snapshot that has them. */
class EarlyRemoval extends SnapshotKeeper {
  readonly #derived: Derived;

  constructor(...parts: ConstructorParameters<typeof SnapshotKeeper>) {
    super(...parts);
    this.#derived = parts[0];
  }

  override async keep(changesWanted: number): Promise<void> {
    const { outcomes, tree } = this.#derived;
    await outcomes.removeUpTo(await tree.changes.last());
    await super.keep(changesWanted);
  }
}

/** Every process that makes a ticket for a change adds one. */
class KeylessQueue extends TaskQueue {
  protected override keyOf(): string | undefined {
    return undefined;
  }
}

const late = "files index: a worker that is late against a";

export const indexMutants: readonly Mutant[] = [
  {
    name: "documents applied without a look at their changes",
    about: "The document of an earlier write arrives last, and the newest text is no longer found.",
    scenario: scenarioNamed(
      indexFollowScenarios({ EngineClass: TrustingEngine, FollowerClass: ForgetfulFollower }),
      `${late} write and its worker`,
    ),
    breaks: /the index has/,
  },
  {
    name: "removals that a follower does not remember",
    about:
      "The document of an earlier write arrives after the outcome of a removal, and the index finds the file again.",
    scenario: scenarioNamed(
      indexFollowScenarios({ FollowerClass: ForgetfulFollower }),
      `${late} removal and its worker`,
    ),
    breaks: /the index has/,
  },
  {
    name: "outcome that is published before its documents",
    about: "A follower that finds no document never checks again.",
    scenario: scenarioNamed(
      indexFollowScenarios({ WorkerClass: EarlyOutcome }),
      "files index: a follower against a worker",
    ),
    breaks: /the index has/,
  },
  {
    name: "documents that are not synced",
    about: "After a power cut, an outcome names a document that does not exist.",
    scenario: scenarioNamed(
      indexFollowScenarios({ derivedOf: unsyncedDocuments }),
      "files index: a worker and power cuts",
    ),
    breaks: /the index has/,
  },
  {
    name: "worker that does not wait for the hold of the change",
    about: "A change is announced before its commit: the worker indexes the old state, and no further change follows.",
    scenario: scenarioNamed(
      indexWorkScenarios({ WorkerClass: ImpatientWorker }),
      "files index: a worker that comes before the commit",
    ),
    breaks: /the index has/,
  },
  {
    name: "search that does not look at the files",
    about: "The index of one process does not know yet what another process removed.",
    scenario: scenarioNamed(
      indexFollowScenarios({ derivedOf: trustedIndex }),
      "files index: a search against a removal in another process",
    ),
    breaks: /acknowledged removal or move/,
  },
  {
    name: "search that reads a file of a share by its name",
    about: "The client of a share may still open a file that another machine has moved away.",
    scenario: scenarioNamed(
      indexFollowScenarios({ derivedOf: readByName }),
      "files index: a search against a move on another machine",
    ),
    breaks: /acknowledged removal or move/,
  },
  {
    name: "follower that does not wait for the hold of the change",
    about: "The follower learns of an announced change, and finds the old state.",
    scenario: scenarioNamed(
      indexFollowScenarios({
        follow: async function* (tree, { after }) {
          yield* await tree.changes.readAfter(after);
        },
      }),
      "files index: a follower against a writer that dies",
    ),
    breaks: /a follower found/,
  },
  {
    name: "log worker whose checkpoint comes before the documents",
    about: "If the worker dies in between, no process indexes these changes.",
    scenario: scenarioNamed(indexWorkScenarios({ LogClass: EarlyCheckpoint }), "files index: a log worker that dies"),
    breaks: /has no outcome/,
  },
  {
    name: "log worker that does not wait for the hold of the change",
    about: "A change is announced before its commit: the worker indexes the old state, and no further change follows.",
    scenario: scenarioNamed(
      indexWorkScenarios({ LogClass: ImpatientLogWorker }),
      "files index: a log worker that comes before the commit",
    ),
    breaks: /the index has/,
  },
  {
    name: "tickets of changes without a key",
    about: "The operation and the log worker each make a ticket for one change.",
    scenario: scenarioNamed(
      indexWorkScenarios({ QueueClass: KeylessQueue }),
      "files index: the log worker against a process that adds and dies",
    ),
    breaks: /has \d tickets/,
  },
  {
    name: "outcomes removed before their snapshot is published",
    about: "After a power cut, a change is in no snapshot and has no outcome: followers wait for it forever.",
    scenario: scenarioNamed(
      snapshotScenarios({ KeeperClass: EarlyRemoval }),
      "files snapshots: a keeper and power cuts",
    ),
    breaks: /in no snapshot/,
  },
  {
    name: "index whose record is deleted first",
    about: "What the next index has already made is deleted together with the rest of the old one.",
    scenario: scenarioNamed(
      indexDeletedScenarios({ orderOf: recordFirst }),
      "files index: an index that is deleted, its record last",
    ),
    breaks: /has no outcome|the index has/,
  },
  {
    name: "work that ends with a full disk",
    about: "When the disk has room again, no process works until a new one starts.",
    scenario: scenarioNamed(
      fullDiskScenarios({ LastingClass: EndingWork }),
      "files index: a log worker on a disk that is full for a while",
    ),
    breaks: /has ended because the disk was full/,
  },
];
