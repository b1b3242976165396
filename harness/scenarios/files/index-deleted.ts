// Scenarios of an index that a person deletes at any moment: the next process makes one that gives the same answers.
import { removeTree } from "../../../src/durable/publish/directory.ts";
import { isHoldfastError } from "../../../src/errors.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import { actor, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import { ground } from "./file-actors.ts";
import { followAndWork, indexer, indexScenario, mustAgree, nextProcess } from "./index-actors.ts";
import { handle } from "./index-work.ts";
import type { IndexProcess, IndexScenarioOptions } from "./index-world.ts";

const documents = `${ground}/files/documents`;
const record = "index.json";

export interface DeletionOptions extends IndexScenarioOptions {
  /** The order in which a person deletes the entries of the directory. */
  readonly orderOf?: ((names: readonly string[]) => readonly string[]) | undefined;
}

export function indexDeletedScenarios(options: DeletionOptions = {}): Scenario[] {
  const { orderOf = recordLast } = options;
  const deleted = (name: string, about: string, remove: (disk: Disk) => Promise<void>): Scenario =>
    indexScenario({
      name,
      size: "medium",
      about,
      isDeleted: true,
      files: { a: "a" },
      begin: ({ tree }) => tree.changes.append({ kind: "written", path: "a" }),
      actors: {
        ada: indexer(
          { ...options, isTicketless: true },
          (_context, process) => workAndFollow(process),
          ({ follower }) => follower.refresh(),
        ),
        bob: actor({ run: ({ ports }) => remove(ports.disk) }),
      },
      audit: async (ports) => {
        const next = await nextProcess(ports, options);
        await followAndWork(next);
        await mustAgree(next);
      },
    });
  return [
    deleted(
      "files index: an index that is moved away",
      "A person moves the index away in one step, while a process works on a change, follows, and begins a new index.",
      (disk) => disk.rename(documents, "/taken-away"),
    ),
    deleted(
      "files index: an index that is deleted, its record last",
      "A person deletes the index file by file, its record last, while a process works and follows.",
      async (disk) => {
        for (const name of orderOf(await disk.list(documents)))
          // A new file in the directory prevents its removal, and the person gets an error.
          await removeTree(disk, `${documents}/${name}`).catch(() => undefined);
      },
    ),
  ];
}

function recordLast(names: readonly string[]): readonly string[] {
  return [...names.filter((name) => name !== record), record];
}

export function recordFirst(names: readonly string[]): readonly string[] {
  return [record, ...names.filter((name) => name !== record)];
}

/** Works on the change, checks for another index, and works on the change that this one begins with. */
async function workAndFollow(process: IndexProcess): Promise<void> {
  await attempt(process, 1);
  await process.follower.refresh();
  const last = await process.tree.changes.last();
  if (last > 1) await attempt(process, last);
}

/** A failed attempt is repeated: its ticket returns to the queue. */
async function attempt(process: IndexProcess, change: number): Promise<void> {
  await handle(process, change).catch((error: unknown) => {
    if (!isHoldfastError(error, "IO_ERROR", "OUTCOME_UNKNOWN")) throw error;
  });
}
