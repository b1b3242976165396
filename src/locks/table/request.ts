// The state of the lock table: an ordered list of requests, and the committed redos.
import { countOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import { isId } from "../../format/id.ts";
import type { RecordKind } from "../../format/record.ts";
import { claimOf, extentOf, type LockExtent } from "./claim.ts";
import type { ListedClaims } from "./conflict.ts";
import { nameOf, redoOf, type Redo } from "../redo/record.ts";

/** A lock request in the table. It holds once every earlier one that conflicts with it is over. */
export interface TableRequest extends ListedClaims {
  /** Also the name of its hold file. Never reused. */
  readonly id: string;
  /** The id of its current owner. */
  readonly holder: string;
  /** The number of the append that created it, or last upgraded it. */
  readonly fence: number;
  readonly sinceMs: number;
  /** The id of the append that last changed it. An author in doubt looks for it, and a verdict names it. */
  readonly change: string;
  readonly tag?: string;
  /** How often it was passed on within its process before it was transferred. */
  readonly turn?: number;
  readonly within?: string;
  /**
   * Upgrade announcement: the extent for which its holder waits. Two holders that wait for each other are a deadlock.
   */
  readonly wants?: LockExtent;
  /** Set while it waits for a receiver. */
  readonly transfer?: Transfer;
}

/** The limit of passes within one process. Each pass gives a higher fence. */
const turnsMax = 65_536;

/** The fence of a hold after its request was passed on `turn` times within its process. */
export function fenceOf({ fence }: Pick<TableRequest, "fence">, turn = 0): number {
  return fence * turnsMax + turn;
}

/** Splits `fence` into the fields of a request that give this fence to its hold. */
export function fenceParts(fence: number): Required<Pick<TableRequest, "fence" | "turn">> {
  return { fence: Math.floor(fence / turnsMax), turn: fence % turnsMax };
}

export interface Transfer {
  /** The hash of the secret in the token: reading the table does not suffice to receive the hold. */
  readonly secretHash: string;
  readonly expiresMs: number;
}

export interface TableState {
  readonly requests: readonly TableRequest[];
  /** Redos that are committed and not known to be applied. */
  readonly redos: readonly Redo[];
}

export const emptyTable: TableState = { requests: [], redos: [] };

/** Returns the state with `by` instead of `request`. */
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

export function requestOf(value: unknown): TableRequest {
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

/** Checked because it becomes part of a path, like any name. */
function holderOf(value: unknown): string {
  const holder = textOf(value);
  if (!isId(holder)) throw new TypeError("not the id of a holder");
  return holder;
}

function transferOf(value: unknown): Transfer {
  const { secretHash, expiresMs } = objectOf(value);
  return { secretHash: hashOf(secretHash), expiresMs: countOf(expiresMs) };
}

/** Checked because it becomes part of a path: a record that was edited by hand must not lead out of the ground. */
function hashOf(value: unknown): string {
  const hash = textOf(value);
  if (!/^[0-9a-f]{32}$/.test(hash)) throw new TypeError("not the hash of a secret");
  return hash;
}
