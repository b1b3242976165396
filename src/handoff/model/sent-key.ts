// The key of a ticket that a handler sends to another box. It identifies the commit that sends it:
// no two senders share a key, and every process that completes that commit uses the same one.
import { isText } from "./arguments.ts";

/** Identifies one sent ticket: the sending box, the ticket, its replay, and the index among the tickets it sends. */
export interface Sender {
  readonly boxId: string;
  readonly id: string;
  readonly replays: number;
  readonly index: number;
}

/**
 * Contains the ticket's id, not its key: the id is short, and a key may be published and sent again
 * after its ledger entry expired. Contains the box's id because a copy of a box has the same ticket
 * ids.
 */
export function sentKey({ boxId, id, replays, index }: Sender): string {
  return `${boxId}/${id}/${replays}/${index}`;
}

/**
 * The key that builds up to 0.1 derived when they published; their ledger entries do not store it.
 * Such a build could not publish a ticket if that key was too long; then the ticket gets a key in
 * the current form.
 */
export function oldSentKey(sender: Sender, ticketKey: string): string {
  const { replays, index } = sender;
  const key = replays === 0 ? `${ticketKey}/${index}` : `${ticketKey}@${replays}/${index}`;
  return isText(key) ? key : sentKey(sender);
}
