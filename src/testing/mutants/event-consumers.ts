// Known-wrong variants of what follows a log: each leaves out one of the rules that make a late checkpoint or document harmless.
import { unlinkIfThere } from "../../durable/publish/directory.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import { Checkpoints } from "../../events/follow/checkpoints.ts";
import {
  documentKind,
  documentName,
  isNewer,
  type Document,
  type DocumentName,
} from "../../events/projection/document.ts";
import { DocumentWriter, listShard } from "../../events/projection/document-writer.ts";
import { encodeRecord } from "../../format/record.ts";
import type { Disk } from "../../ports/disk.ts";
import { eventConsumerScenarios, shard, type FollowScenarioOptions } from "../scenarios/events/consumers.ts";
import { scenarioNamed, type Mutant } from "./mutant.ts";

/** Takes every checkpoint, whoever it is of. */
class CheckpointsOfAnybody extends Checkpoints {
  protected override isSuperseded(): boolean {
    return false;
  }
}

/** Believes that a position means the same for ever. */
class CheckpointsOfAnyLog extends Checkpoints {
  protected override async verify(): Promise<void> {
    // As if no log were ever restored.
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
    return await this.tenure.save(position);
  }

  async #replace(document: Document): Promise<void> {
    const { fence } = this.tenure;
    // It is there already, except for the first.
    await this.disk.mkdir(shard).catch(() => undefined);
    await this.disk.createFile(`${shard}/new-${fence}`, encodeRecord(documentKind, document), { sync: true });
    await this.disk.rename(`${shard}/new-${fence}`, plainName);
    await this.disk.syncDirectory(shard);
  }
}

async function findPlain(disk: Disk): Promise<Document | undefined> {
  return await findRecord(disk, documentKind, plainName);
}

/** Moves the checkpoint, and then writes what was to be there before. */
class CheckpointFirst extends DocumentWriter {
  override async commit(documents: readonly Document[], position: number): Promise<boolean> {
    const saved = await this.tenure.save(position);
    if (saved) await this.write(documents);
    return saved;
  }
}

/** Takes the highest document that there is, without asking whether its author was cut off before. */
async function findHighest(disk: Disk): Promise<Document | undefined> {
  const [highest] = (await listShard(disk, shard)).sort((one, other) => (isNewer(one, other) ? -1 : 1));
  return highest === undefined || highest.isDeletion
    ? undefined
    : await findRecord(disk, documentKind, `${shard}/${documentName(highest)}`);
}

/** Removes the mark of a deletion together with what it stands against. */
class MarkNotLast extends DocumentWriter {
  protected override async remove(old: readonly DocumentName[], deleted: readonly DocumentName[]): Promise<void> {
    for (const name of [...deleted, ...old]) await unlinkIfThere(this.disk, this.pathOf(name));
  }
}

function inScenario(options: FollowScenarioOptions, name: string): Mutant["scenario"] {
  return scenarioNamed(eventConsumerScenarios(options), name);
}

const sleeper = "followers: a sleeper and its successor";
const deleter = "followers: a sleeper and a successor that deletes";
const powerCuts = "followers: one that adds and deletes, power cuts (weak)";

export const eventConsumerMutants: readonly Mutant[] = [
  {
    name: "document under a plain name (E9)",
    about: "What a sleeper writes late is put over the new state, or folded once more.",
    // Nobody is killed: that its documents are ahead of the checkpoint then is another fault.
    scenario: { ...inScenario({ WriterClass: PlainNames, find: findPlain }, sleeper), killsMax: 0 },
    breaks: /at 3 the document is/,
  },
  {
    name: "checkpoint without a look at the fence",
    about: "A sleeper's late checkpoint goes back behind that of its successor.",
    scenario: inScenario({ CheckpointsClass: CheckpointsOfAnybody }, sleeper),
    breaks: /and the checkpoint is|the document is/,
  },
  {
    name: "checkpoint before the documents",
    about: "A power cut between the two: the events are never folded.",
    scenario: inScenario({ WriterClass: CheckpointFirst }, powerCuts),
    breaks: /the document is/,
  },
  {
    name: "no look at the checksum at resume (E8)",
    about: "Another log is at the same position, and what it had before is skipped.",
    scenario: inScenario({ CheckpointsClass: CheckpointsOfAnyLog }, "followers: a log that was restored"),
    breaks: /another log was taken/,
  },
  {
    name: "highest document counts, whoever wrote it",
    about: "What a sleeper writes late comes back after the document was deleted.",
    scenario: inScenario({ find: findHighest }, deleter),
    breaks: /at 3 the document is "12"/,
  },
  {
    name: "mark of a deletion not removed last",
    about: "A power cut keeps the document and takes the mark.",
    scenario: inScenario({ WriterClass: MarkNotLast }, powerCuts),
    breaks: /at 3 the document is/,
  },
];
