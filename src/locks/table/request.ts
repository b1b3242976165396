// The state of the lock table: an ordered list of requests, and the committed redos. And the difference
// that one append makes to a table with many requests, so that a slot need not hold the whole table.
import { countOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import { isId } from "../../format/id.ts";
import type { RecordKind } from "../../format/record.ts";
import { claimOf, extentOf, type LockExtent, type ListedClaims } from "./conflict.ts";
import { nameOf, redoOf, type Redo } from "../redo/redo.ts";
import type { DeltaKind } from "../../durable/chain/state-delta.ts";
import type { Volume } from "../../ports/disk.ts";

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

/**
 * A table with more entries than this is written in deltas. A share reads a table of some kilobytes in one round
 * trip, but needs one for each delta.
 */
const entriesMax: Readonly<Record<Volume["kind"], number>> = { local: 16, network: 256, unknown: 256 };

interface Named {
  readonly id: string;
}

/** Applied to a list: removes `drop`, replaces entries with the same id, and appends the rest. */
interface ListDelta<E extends Named> {
  readonly drop: readonly string[];
  readonly put: readonly E[];
}

export function tableDeltas(volume: Volume["kind"]): DeltaKind<TableState> {
  return {
    isLarge: ({ requests, redos }) => requests.length + redos.length > entriesMax[volume],
    between: (before, made) => ({
      requests: difference(before.requests, made.requests),
      redos: difference(before.redos, made.redos),
    }),
    apply: (before, delta) => {
      const { requests, redos } = objectOf(delta);
      return {
        requests: changed(before.requests, requests, requestOf),
        redos: changed(before.redos, redos, redoOf),
      };
    },
  };
}

/** Throws if a request or redo that `before` does not have could not be read back from the disk. */
export function checkTable(made: TableState, before: TableState): void {
  for (const request of difference(before.requests, made.requests).put) requestOf(JSON.parse(JSON.stringify(request)));
  for (const redo of difference(before.redos, made.redos).put) redoOf(JSON.parse(JSON.stringify(redo)));
}

/** Compares two lists in which unchanged entries are the same objects, in the same order. */
function difference<E extends Named>(before: readonly E[], made: readonly E[]): ListDelta<E> {
  const drop: string[] = [];
  const put: E[] = [];
  let at = 0;
  for (const entry of before) {
    const now = made[at];
    // Usually true, and then nothing of the entry is compared.
    if (now === entry) at++;
    else if (now?.id === entry.id) {
      put.push(now);
      at++;
    } else drop.push(entry.id);
  }
  return { drop, put: [...put, ...made.slice(at)] };
}

function changed<E extends Named>(before: readonly E[], delta: unknown, decode: (value: unknown) => E): readonly E[] {
  const { drop, put } = objectOf(delta);
  const dropped = new Set(listOf(drop, textOf));
  const made = new Map(listOf(put, decode).map((entry) => [entry.id, entry]));
  if (dropped.size === 0 && made.size === 0) return before;
  const kept: E[] = [];
  for (const entry of before) {
    if (dropped.has(entry.id)) continue;
    kept.push(made.get(entry.id) ?? entry);
    made.delete(entry.id);
  }
  return [...kept, ...made.values()];
}
