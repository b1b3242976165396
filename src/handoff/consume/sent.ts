// Tickets that a handler sends to other boxes. The ledger entry lists them with their keys, and
// they are published after the commit. A process that finds the entry may publish them again; their
// keys prevent a second delivery.
import { posix } from "node:path";
import type { Body } from "../../common.ts";
import { readChunks } from "../../part/read-chunks.ts";
import { holdfastError } from "../../errors.ts";
import { Box } from "../box/box.ts";
import type { LedgerEntry } from "../ledger/ledger.ts";
import { recordBytesMax } from "../../format/record.ts";
import { checkPublication, type Files, type PublishOptions } from "../model/arguments.ts";
import type { SendTarget } from "../model/delivery.ts";
import { oldSentKey } from "../model/sent-key.ts";
import { publish } from "../publish/publisher.ts";
import type { TargetBoxes } from "../publish/target-boxes.ts";
import type { StagedOutputs } from "./outputs.ts";

/** Stages a ticket for another box, to be published after the commit. Throws TypeError, RangeError, NOT_A_STORE. */
export async function stageSent(
  box: Box,
  outputs: StagedOutputs,
  target: SendTarget,
  targets: TargetBoxes,
  files: Files,
  options: PublishOptions,
): Promise<void> {
  const { bodies } = checkPublication(files, options);
  const { signal: _signal, ...rest } = options;
  // A copy as the ledger stores it, without undefined fields: `ack` and a later claim then publish
  // the same ticket.
  const kept = JSON.parse(JSON.stringify(rest)) as object;
  checkTicketSize(bodies, kept);
  // Opened before the commit: afterwards the handler could no longer be told of an error.
  const { directory } = target;
  const other = await targets.open(directory);
  // A box in memory, or on another machine's disk, may have the same path.
  const boxId = "box" in target && target.box instanceof Box ? target.box.id : undefined;
  if (boxId !== undefined && boxId !== other.id) throw otherTarget(directory);
  await outputs.send(posix.relative(box.layout.directory, directory), bodies, kept);
}

export async function publishSent(
  box: Box,
  { committed, directory }: LedgerEntry,
  targets: Pick<TargetBoxes, "open">,
): Promise<void> {
  for (const [index, sent] of committed.sent.entries()) {
    const other = await targets.open(posix.join(box.layout.directory, sent.box));
    const bodies = sent.files.map((name): [string, Body] => [
      name,
      readChunks(box.disk, `${directory}/sent-${index}/${name}`),
    ]);
    const given = sent.options as PublishOptions;
    const { id, key: ticketKey, replays } = committed;
    const key = given.key ?? oldSentKey({ boxId: box.id, id, replays, index }, ticketKey);
    await publish(other, checkPublication(Object.fromEntries(bodies), { ...given, key }));
  }
}

/**
 * Upper limits of what a ticket's record contains besides its options and file names: checksums and
 * sizes for each file, small contents for all.
 */
const bytesPerFile = 150;
const bytesBeside = 100 * 1024;

/** Throws TOO_LARGE for a ticket whose record might not fit: after the commit it is too late to report it. */
function checkTicketSize(bodies: readonly (readonly [name: string, body: Body])[], options: object): void {
  const names = bodies.reduce((sum, [name]) => sum + 2 * Buffer.byteLength(name) + bytesPerFile, 0);
  const actual = Buffer.byteLength(JSON.stringify(options)) + names + bytesBeside;
  if (actual <= recordBytesMax) return;
  const message = `send: the ticket's meta and file names take about ${actual} bytes, over the limit of ${recordBytesMax} bytes. Put large data into a file of the ticket.`;
  throw holdfastError("TOO_LARGE", message, { limit: recordBytesMax, actual });
}

function otherTarget(path: string): Error {
  const message = `The box in ${path} is not the target: the target is not on the disk of this box. Nothing can be sent from a disk to memory, or between two memories.`;
  return holdfastError("NOT_A_STORE", message, { path });
}
