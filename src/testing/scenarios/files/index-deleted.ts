// Scenarios of an index that a person deletes at any moment: the next process makes one that gives the same answers.
import { removeTree } from "../../../durable/publish/directory.ts";
import { isHoldfastError } from "../../../errors.ts";
import type { Disk } from "../../../ports/disk.ts";
import { actor, type Scenario } from "../../explorer/scenario.ts";
import { ground } from "./file-actors.ts";
import { dispatchAndWork, indexer, indexScenario, mustAgree, nextProcess } from "./index-actors.ts";
import { handle } from "./index-work.ts";
import type { IndexProcess, IndexScenarioOptions } from "./index-world.ts";

const documents = `${ground}/files/documents`;
const record = "index.json";

export interface DeletionOptions extends IndexScenarioOptions {
  /** In which order a person deletes what is in the directory. */
  readonly orderOf?: ((names: readonly string[]) => readonly string[]) | undefined;
}

export function indexDeletedScenarios(options: DeletionOptions = {}): Scenario[] {
  const { orderOf = recordLast } = options;
  const deleted = (name: string, about: string, remove: (disk: Disk) => Promise<void>): Scenario =>
    indexScenario({
      name,
      about,
      isDeleted: true,
      files: { a: "a" },
      begin: ({ place }) => place.changes.append({ kind: "written", path: "a" }),
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
        await dispatchAndWork(next);
        await mustAgree(next);
      },
    });
  return [
    deleted(
      "files index: an index that is moved away",
      "A person takes the index away in one step, while a process works on a change, follows, and begins a new index.",
      (disk) => disk.rename(documents, "/taken-away"),
    ),
    deleted(
      "files index: an index that is deleted, its record last",
      "A person deletes the index file by file, and its record last, while a process works and follows.",
      async (disk) => {
        for (const name of orderOf(await disk.list(documents)))
          // What comes into a directory meanwhile keeps it: the person is told so.
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

/** Works on the change, looks whether there is another index, and works on the change that this one begins with. */
async function workAndFollow(process: IndexProcess): Promise<void> {
  await attempt(process, 1);
  await process.follower.refresh();
  const last = await process.place.changes.last();
  if (last > 1) await attempt(process, last);
}

/** An attempt that fails is made again: its ticket goes back. */
async function attempt(process: IndexProcess, change: number): Promise<void> {
  await handle(process, change).catch((error: unknown) => {
    if (!isHoldfastError(error, "IO_ERROR", "OUTCOME_UNKNOWN")) throw error;
  });
}
