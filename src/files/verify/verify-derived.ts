// Verifies the derived data of a tree, and its queue. Damage there affects no file and no change,
// so it is only noted. A repair removes it, and workers make it again.
import type { Problem } from "../../common.ts";
import { getRecord } from "../../durable/publish/record-file.ts";
import { removeTree } from "../../durable/publish/directory.ts";
import { randomName } from "../../format/id.ts";
import { findSlotNumber } from "../../format/name.ts";
import { encodeRecord } from "../../format/record.ts";
import { describeDamage } from "../../part/findings.ts";
import { hasErrno, isUnwritable } from "../../ports/disk-error.ts";
import type { Derived } from "../documents/derived.ts";
import { outcomeKind } from "../documents/outcome.ts";
import type { TaskContext } from "../queue/task-context.ts";
import type { TaskQueue } from "../queue/task-queue.ts";
import { replaceRecord } from "../tree/damaged-record.ts";
import { namesIn, type RecordsOptions } from "./verify-records.ts";

const isDerived = "It is derived, and does no harm. Run `verify` with `repair`, or rebuild the index.";
const removed = "It was removed, and is made again.";

export async function verifyDerived(
  { derived, queue }: Pick<TaskContext, "derived" | "queue">,
  options: RecordsOptions,
): Promise<void> {
  await verifyOutcomes(derived, options);
  await verifyDocuments(derived, options);
  await verifySnapshots(derived, options);
  await verifyQueue(queue, options);
  await noteRedos(derived, options);
}

async function verifyOutcomes({ tree }: Derived, options: RecordsOptions): Promise<void> {
  const { layout, disk, ground } = tree;
  const { findings, repair, signal, onRecord } = options;
  const outcomes = `${layout.documents}/outcomes`;
  for (const block of await namesIn(disk, outcomes))
    for (const name of await namesIn(disk, `${outcomes}/${block}`)) {
      signal?.throwIfAborted();
      const change = findSlotNumber(name);
      if (change === undefined) continue;
      const path = `${outcomes}/${block}/${name}`;
      onRecord();
      try {
        await getRecord(disk, outcomeKind, path);
      } catch (error) {
        // A snapshot contains the outcome, which may be removed meanwhile.
        if (hasErrno(error, "ENOENT")) continue;
        const { what } = describeDamage("The outcome", error);
        // Has the effect of reading a damaged one: its documents are found by their names.
        const body = {
          id: randomName(ground.staging.random.bytes(16)),
          change,
          paths: [],
          documents: [],
          hasMore: true,
        };
        if (repair) await replaceRecord(ground.staging, layout.directory, path, encodeRecord(outcomeKind, body));
        findings.note({ path }, what, repair ? "Another one was put in its place." : isDerived, { repaired: repair });
      }
    }
}

/** Notes unreadable documents. The comparison of all files finds the files that they belong to. */
async function verifyDocuments({ tree, documents }: Derived, options: RecordsOptions): Promise<void> {
  const { findings, repair, signal, onRecord } = options;
  for await (const path of documents.unreadable()) {
    signal?.throwIfAborted();
    onRecord();
    if (repair) await removeTree(tree.disk, path);
    findings.note({ path }, "A document of the index cannot be read.", repair ? removed : isDerived, {
      repaired: repair,
    });
  }
}

async function verifySnapshots({ snapshots }: Derived, { findings, repair }: RecordsOptions): Promise<void> {
  const damage = await snapshots.findDamage().catch(unlessUnwritable);
  if (damage === undefined) return;
  if (repair) await snapshots.remove();
  findings.note({ path: damage.path }, damage.what, repair ? removed : isDerived, { repaired: repair });
}

async function verifyQueue(queue: TaskQueue, { findings, repair, signal }: RecordsOptions): Promise<void> {
  const report = await queue.verify({ repair, signal }).catch(unlessUnwritable);
  const tell = ({ severity, path, what, remedy, repaired }: Problem): void => {
    if (severity === "damage") findings.damage({ path }, what, remedy, { repaired });
    else if (severity === "leftover") findings.leftover({ path }, what, remedy, { repaired });
    else findings.note({ path }, what, remedy, { repaired });
  };
  for (const problem of report?.problems ?? []) tell(problem);
}

/**
 * Notes committed changes that are incomplete because their process died. A living process is about
 * to complete its own.
 */
async function noteRedos({ tree }: Derived, { findings }: RecordsOptions): Promise<void> {
  const { requests, redos } = (await tree.locks.table.read()).state;
  for (const { request, steps } of redos) {
    const holder = requests.find(({ id }) => id === request)?.holder;
    if (holder !== undefined && (await tree.ground.stateOf(holder, { once: true })) !== "dead") continue;
    for (const { target } of steps)
      findings.note(
        { path: target },
        "A committed change of it is not completed.",
        "The next process that needs the path completes it. If something blocks it, move that away.",
      );
  }
}

/** Ignores errors of a disk that cannot be written: there may be nothing to check. */
function unlessUnwritable(error: unknown): undefined {
  if (!isUnwritable(error)) throw error;
}
