// The state of the lock table: an ordered list of requests, and the committed redos. Each record of
// its rolling chain has all of it.
import { countOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import { isId } from "../../format/id.ts";
import type { RecordKind } from "../../format/record.ts";
import { claimOf, extentOf, type LockExtent } from "./claim.ts";
import type { Claimant } from "./conflict.ts";
import { nameOf, redoOf, type Redo } from "../redo/record.ts";

/** A lock request in the table. It holds when every earlier one that conflicts with it is over. */
export interface TableRequest extends Claimant {
  /** Also the name of its hold file, so it is never used again. */
  readonly id: string;
  /** The id of the holder that owns it now. */
  readonly holder: string;
  /** The number of the append that made it, or that upgraded it last. */
  readonly fence: number;
  readonly sinceMs: number;
  /** The append that changed it last. An author in doubt looks for it, and a judgement names it. */
  readonly change: string;
  readonly tag?: string;
  /** How often it was passed on within its process before it was transferred. */
  readonly turn?: number;
  readonly within?: string;
  /**
   * Upgrade announcement: the extent that its holder waits for. Two that wait for each other are a
   * deadlock.
   */
  readonly wants?: LockExtent;
  /** Set while it waits for a receiver. */
  readonly transfer?: Transfer;
}

/**
 * A request is passed on less often than this within its process, each time with a higher fence.
 */
const turnsMax = 65_536;

/** The fence of the hold that a request gives after `turn` passes within its process. */
export function fenceOf({ fence }: Pick<TableRequest, "fence">, turn = 0): number {
  return fence * turnsMax + turn;
}

/** The fields of a request that give `fence` to its hold. */
export function fenceParts(fence: number): Required<Pick<TableRequest, "fence" | "turn">> {
  return { fence: Math.floor(fence / turnsMax), turn: fence % turnsMax };
}

export interface Transfer {
  /** Of the secret in the token: a reader of the table cannot take the hold. */
  readonly secretHash: string;
  readonly expiresMs: number;
}

export interface TableState {
  readonly requests: readonly TableRequest[];
  /** Committed, and not known to be done. */
  readonly redos: readonly Redo[];
}

export const emptyTable: TableState = { requests: [], redos: [] };

/** The state with `by` in the place of `request`. */
export function replaceRequest({ requests, redos }: TableState, request: TableRequest, by: TableRequest): TableState {
  return { requests: requests.map((each) => (each === request ? by : each)), redos };
}

export function withoutAnnouncement({ wants: _wants, ...request }: TableRequest): TableRequest {
  return request;
}

export const tableKind: RecordKind<TableState> = {
  kind: "lock table",
  decode: (value) => {
    const { requests, redos } = objectOf(value);
    return { requests: listOf(requests, requestOf), redos: listOf(redos, redoOf) };
  },
};

/**
 * Throws when a request or redo that `before` does not have could not be read back from the disk.
 */
export function checkTable(made: TableState, before: TableState): void {
  const known = new Set<unknown>([...before.requests, ...before.redos]);
  for (const request of made.requests) if (!known.has(request)) requestOf(JSON.parse(JSON.stringify(request)));
  for (const redo of made.redos) if (!known.has(redo)) redoOf(JSON.parse(JSON.stringify(redo)));
}

function requestOf(value: unknown): TableRequest {
  const { id, holder, claims, fence, sinceMs, change, tag, turn, within, wants, transfer } = objectOf(value);
  return {
    id: nameOf(id),
    holder: holderOf(holder),
    claims: listOf(claims, claimOf),
    fence: countOf(fence),
    sinceMs: countOf(sinceMs),
    change: textOf(change),
    ...(tag === undefined ? {} : { tag: textOf(tag) }),
    ...(turn === undefined ? {} : { turn: countOf(turn) }),
    ...(within === undefined ? {} : { within: nameOf(within) }),
    ...(wants === undefined ? {} : { wants: extentOf(wants) }),
    ...(transfer === undefined ? {} : { transfer: transferOf(transfer) }),
  };
}

/** Checked because it becomes a path, like a name. */
function holderOf(value: unknown): string {
  const holder = textOf(value);
  if (!isId(holder)) throw new TypeError("not the id of a holder");
  return holder;
}

function transferOf(value: unknown): Transfer {
  const { secretHash, expiresMs } = objectOf(value);
  return { secretHash: hashOf(secretHash), expiresMs: countOf(expiresMs) };
}

/**
 * Checked because it becomes part of a path: a record that was edited by hand must not lead out of
 * the ground.
 */
function hashOf(value: unknown): string {
  const hash = textOf(value);
  if (!/^[0-9a-f]{32}$/.test(hash)) throw new TypeError("not the hash of a secret");
  return hash;
}
