// Mutants of consumers and read models: each lacks one of the rules that make a late checkpoint or
// document harmless.
import { unlinkIfThere } from "../../../src/durable/publish/directory.ts";
import { findRecord } from "../../../src/durable/publish/record-file.ts";
import { Checkpoints } from "../../../src/part/progress/checkpoints.ts";
import {
  documentKind,
  documentName,
  isNewer,
  type Document,
  type DocumentName,
} from "../../../src/events/projection/document.ts";
import { DocumentWriter, listShard } from "../../../src/events/projection/document-writer.ts";
import { encodeRecord } from "../../../src/format/record.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import { eventConsumerScenarios, shard, type FollowScenarioOptions } from "../../scenarios/events/consumers.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Accepts a checkpoint with any fence. */
class UnfencedCheckpoints extends Checkpoints {
  protected override isSuperseded(): boolean {
    return false;
  }
}

const plainName = `${shard}/plain`;

/** One file per document, replaced by a rename. */
class PlainNames extends DocumentWriter {
  override async find(): Promise<Document | undefined> {
    return await findPlain(this.disk);
  }

  override async commit([document]: readonly Document[], position: number): Promise<boolean> {
    if (document !== undefined) await this.#replace(document);
    return await this.leased.save(position);
  }

  async #replace(document: Document): Promise<void> {
    const { fence } = this.leased;
    // Only the first document creates the shard.
    await this.disk.mkdir(shard).catch(() => undefined);
    await this.disk.createFile(`${shard}/new-${fence}`, encodeRecord(documentKind, document), { sync: true });
    await this.disk.rename(`${shard}/new-${fence}`, plainName);
    await this.disk.syncDirectory(shard);
  }
}

async function findPlain(disk: Disk): Promise<Document | undefined> {
  return await findRecord(disk, documentKind, plainName);
}

/** Saves the checkpoint before the documents. */
class CheckpointFirst extends DocumentWriter {
  override async commit(documents: readonly Document[], position: number): Promise<boolean> {
    const saved = await this.leased.save(position);
    if (saved) await this.write(documents);
    return saved;
  }
}

/** Takes the highest document, even if its worker had lost the lease before it wrote it. */
async function findHighest(disk: Disk): Promise<Document | undefined> {
  const [highest] = (await listShard(disk, shard)).sort((one, other) => (isNewer(one, other) ? -1 : 1));
  return highest === undefined || highest.isDeletion
    ? undefined
    : await findRecord(disk, documentKind, `${shard}/${documentName(highest)}`);
}

/** Removes a tombstone together with the files that it supersedes. */
class TombstoneNotLast extends DocumentWriter {
  protected override async remove(old: readonly DocumentName[], deleted: readonly DocumentName[]): Promise<void> {
    for (const name of [...deleted, ...old]) await unlinkIfThere(this.disk, this.pathOf(name));
  }
}

function inScenario(options: FollowScenarioOptions, name: string): Mutant["scenario"] {
  return scenarioNamed(eventConsumerScenarios(options), name);
}

const sleeper = "consumers: a sleeper and its successor";
const deleter = "consumers: a sleeper and a successor that deletes";
const powerCuts = "consumers: a worker that adds and deletes, power cuts (weak)";

export const eventConsumerMutants: readonly Mutant[] = [
  {
    name: "document under a plain name (E9)",
    about: "The late document of a sleeper replaces the new state, or an event is applied twice.",
    // Runs without kills: after a kill, documents ahead of the checkpoint would be another fault.
    scenario: { ...inScenario({ WriterClass: PlainNames, find: findPlain }, sleeper), killsMax: 0 },
    breaks: /at 3 the document is/,
  },
  {
    name: "checkpoint without a check of the fence",
    about: "The late checkpoint of a sleeper moves that of its successor back.",
    scenario: inScenario({ CheckpointsClass: UnfencedCheckpoints }, sleeper),
    breaks: /and the checkpoint is|the document is/,
  },
  {
    name: "checkpoint before the documents",
    about: "After a power cut between the two, the events are never applied.",
    scenario: inScenario({ WriterClass: CheckpointFirst }, powerCuts),
    breaks: /the document is/,
  },
  {
    name: "no comparison of the mark at resume (E8)",
    about: "After a restore, the new events up to the old checkpoint are skipped.",
    scenario: inScenario({ markOf: (_log, position) => String(position) }, "consumers: a log that was restored"),
    breaks: /resumed in another log/,
  },
  {
    name: "highest document counts, whatever its fence",
    about: "The late document of a sleeper brings back what was deleted.",
    scenario: inScenario({ find: findHighest }, deleter),
    breaks: /at 3 the document is "12"/,
  },
  {
    name: "tombstone not removed last",
    about: "A power cut loses the tombstone and keeps the document.",
    scenario: inScenario({ WriterClass: TombstoneNotLast }, powerCuts),
    breaks: /at 3 the document is/,
  },
];
