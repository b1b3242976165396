// Tickets that a handler sends to other boxes. They stand in the ledger's entry, and are published after the
// commit under keys made from its own: a process that finds the entry publishes them again, and each is delivered once.
import { posix } from "node:path";
import type { Body } from "../../common.ts";
import type { Box } from "../box/box.ts";
import type { LedgerEntry } from "../ledger/ledger.ts";
import { checkPublication, type PublishOptions } from "../model/arguments.ts";
import { publish } from "../publish/publisher.ts";

const pieceBytes = 1024 * 1024;

/** `openOther` opens the box in a directory. */
export async function publishSent(
  box: Box,
  { committed, directory }: LedgerEntry,
  openOther: (directory: string) => Promise<Box>,
): Promise<void> {
  for (const [index, sent] of committed.sent.entries()) {
    const other = await openOther(posix.join(box.layout.directory, sent.box));
    const bodies = sent.files.map((name): [string, Body] => [name, read(box, `${directory}/sent-${index}/${name}`)]);
    const options = { ...(sent.options as PublishOptions), key: `${committed.key}/${index}` };
    await publish(other, checkPublication(Object.fromEntries(bodies), options));
  }
}

async function* read({ disk }: Box, path: string): AsyncGenerator<Uint8Array> {
  const file = await disk.open(path, "read");
  try {
    for (let offset = 0; ;) {
      const piece = await file.read(offset, pieceBytes);
      if (piece.length === 0) return;
      yield piece;
      offset += piece.length;
    }
  } finally {
    await file.close();
  }
}
