// Tickets that a handler sends to other boxes. They stand in the ledger's entry, and are published after the
// commit under keys made from its own: a process that finds the entry publishes them again, and each is delivered once.
import { posix } from "node:path";
import type { Body } from "../../common.ts";
import { readChunks } from "../../part/read-chunks.ts";
import { holdfastError } from "../../errors.ts";
import type { Box } from "../box/box.ts";
import type { LedgerEntry } from "../ledger/ledger.ts";
import { checkPublication, type Files, type PublishOptions } from "../model/arguments.ts";
import type { Neighbours } from "../publish/neighbours.ts";
import { publish } from "../publish/publisher.ts";
import type { StagedOutputs } from "./outputs.ts";

interface Target {
  readonly directory: string;
  /** Of the box that the caller has open there. */
  readonly boxId: string | undefined;
}

/** Stages a ticket for another box, to be published after the commit. TypeError, RangeError, NOT_A_STORE. */
export async function stageSent(
  box: Box,
  outputs: StagedOutputs,
  { directory, boxId }: Target,
  neighbours: Neighbours,
  files: Files,
  options: PublishOptions,
): Promise<void> {
  const { bodies } = checkPublication(files, options);
  const { signal: _signal, ...rest } = options;
  // Now, while the handler can still be told: after the commit there is no way back.
  const other = await neighbours.open(directory);
  // A box in memory, or on another machine's disk, may have the same path.
  if (boxId !== undefined && boxId !== other.id) throw otherTarget(directory);
  await outputs.send(posix.relative(box.layout.directory, directory), bodies, rest);
}

export async function publishSent(
  box: Box,
  { committed, directory }: LedgerEntry,
  neighbours: Pick<Neighbours, "open">,
): Promise<void> {
  for (const [index, sent] of committed.sent.entries()) {
    const other = await neighbours.open(posix.join(box.layout.directory, sent.box));
    const bodies = sent.files.map((name): [string, Body] => [
      name,
      readChunks(box.disk, `${directory}/sent-${index}/${name}`),
    ]);
    const options: PublishOptions = { key: sentKey(committed, index), ...(sent.options as PublishOptions) };
    await publish(other, checkPublication(Object.fromEntries(bodies), options));
  }
}

/** Of its own for each replay of the ticket: that commits again, and sends again. */
function sentKey({ key, replays }: LedgerEntry["committed"], index: number): string {
  return replays === 0 ? `${key}/${index}` : `${key}@${replays}/${index}`;
}

function otherTarget(path: string): Error {
  const message = `The box in ${path} is another one than the target: that is not on the disk of this box. Nothing can be sent from a disk to memory, or between two memories.`;
  return holdfastError("NOT_A_STORE", message, { path });
}
