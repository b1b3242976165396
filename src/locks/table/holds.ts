// Holds: which requests of a lock table still exist. Each has a mark, which its owner removes to release it. A
// directory stores marks as hold files.
import type { TableRequest, Transfer } from "./request.ts";

export interface Holds {
  /** Returns the path of the mark: an append creates it there, and a waiter listens there for its removal. */
  pathOf(id: string): string;
  /** True while the mark of the request exists. False is never a stale answer. */
  isThere(id: string): Promise<boolean>;
  /** Ends the request. */
  remove(id: string): Promise<void>;
  /** Called before the table says that the request waits for a receiver. The time of the offer starts then. */
  createOffer(id: string, transfer: Transfer): Promise<void>;
  removeOffer(id: string, transfer: Pick<Transfer, "secretHash">): Promise<void>;
  /** Called before a hold is received: records that a process holds a request that another one made. */
  createReceipt(id: string, receiver: string): Promise<void>;
  /** Never fails. */
  removeReceipt(id: string, receiver: string): Promise<void>;
  /** Returns true if no process accepted an offered hold in time, by the clock of the server. */
  isLapsed(request: Pick<TableRequest, "id" | "transfer">): Promise<boolean>;
}
