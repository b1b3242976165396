// What the lock table says: an ordered list of requests and of committed redos. Each version of it is one record of a rolling chain.
import { countOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import { isId } from "../../format/id.ts";
import type { RecordKind } from "../../format/record.ts";
import { claimOf, extentOf, type LockExtent } from "./claim.ts";
import type { Claimant } from "./conflict.ts";
import { nameOf, redoOf, type Redo } from "../redo/record.ts";

/** Who wants what. It holds when every earlier one that conflicts with it is over. */
export interface LockRequestRecord extends Claimant {
  /** Also the name of its hold file, so it is never used again. */
  readonly id: string;
  /** Who owns it now. */
  readonly holder: string;
  /** The number of the append that made it, or that widened it last. */
  readonly fence: number;
  readonly sinceMs: number;
  /** The append that changed it last: settles the doubt of its author. */
  readonly change: string;
  readonly tag?: string;
  /** How often it was passed on within its process before it was transferred. */
  readonly turn?: number;
  readonly within?: string;
  /** What its holder waits to become. Two that wait for each other are a deadlock. */
  readonly wants?: LockExtent;
  /** It waits for whoever has the secret. */
  readonly transfer?: Transfer;
}

/** A request may be passed on so often within its process, each time with a higher fence. */
const turnsMax = 65_536;

/** The fence of the hold that a request gives, the `turn`th time. */
export function fenceOf({ fence }: Pick<LockRequestRecord, "fence">, turn = 0): number {
  return fence * turnsMax + turn;
}

/** What `fence` of a hold says in its request. */
export function fenceParts(fence: number): Required<Pick<LockRequestRecord, "fence" | "turn">> {
  return { fence: Math.floor(fence / turnsMax), turn: fence % turnsMax };
}

export interface Transfer {
  /** Of the secret that the token carries: who reads the table cannot take what is in it. */
  readonly secretHash: string;
  readonly expiresMs: number;
}

export interface Table {
  readonly requests: readonly LockRequestRecord[];
  /** Committed, and not known to be done. */
  readonly redos: readonly Redo[];
}

export const emptyTable: Table = { requests: [], redos: [] };

export const tableKind: RecordKind<Table> = {
  kind: "lock table",
  decode: (value) => {
    const { requests, redos } = objectOf(value);
    return { requests: listOf(requests, requestOf), redos: listOf(redos, redoOf) };
  },
};

/** Throws when a request or redo that `before` does not have could not be read back from the disk. */
export function checkTable(made: Table, before: Table): void {
  const known = new Set<unknown>([...before.requests, ...before.redos]);
  for (const request of made.requests) if (!known.has(request)) requestOf(JSON.parse(JSON.stringify(request)));
  for (const redo of made.redos) if (!known.has(redo)) redoOf(JSON.parse(JSON.stringify(redo)));
}

function requestOf(value: unknown): LockRequestRecord {
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

/** It becomes a path, as `nameOf` says. */
function holderOf(value: unknown): string {
  const holder = textOf(value);
  if (!isId(holder)) throw new TypeError("not the id of a holder");
  return holder;
}

function transferOf(value: unknown): Transfer {
  const { secretHash, expiresMs } = objectOf(value);
  return { secretHash: hashOf(secretHash), expiresMs: countOf(expiresMs) };
}

/** It becomes part of a path, and one that was edited by hand must not lead us out of the ground. */
function hashOf(value: unknown): string {
  const hash = textOf(value);
  if (!/^[0-9a-f]{32}$/.test(hash)) throw new TypeError("not the hash of a secret");
  return hash;
}
