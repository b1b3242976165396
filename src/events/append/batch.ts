// One batch: its calls with what was judged of them, its lines, and its answers.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import type { IndexedLine } from "../index/indexed-line.ts";
import { keysOf } from "../index/key-hash.ts";
import { encodeLine, tipAfter } from "../log/format/line.ts";
import type { Tip } from "../log/format/tip.ts";
import type { Call } from "./call.ts";
import type { Verdict } from "./judge.ts";

export interface JudgedCall {
  readonly call: Call;
  readonly verdict: Verdict;
}

export interface Judged {
  /** The end of the log that they were judged against. */
  readonly at: Tip;
  /** Of all events that this batch writes. */
  readonly time: string;
  readonly calls: readonly JudgedCall[];
}

export function isAccepted({ verdict }: JudgedCall): boolean {
  return verdict.kind === "accepted";
}

export function hasAccepted({ calls }: Judged): boolean {
  return calls.some(isAccepted);
}

export function answer({ call, verdict }: JudgedCall): void {
  if (verdict.kind === "refused") call.reject(verdict.error);
  else call.resolve(verdict.appended);
}

/** Told like a refusal: nothing of this call was written, or it is not known. */
export function failed(call: Call, error: unknown): JudgedCall {
  return { call, verdict: { kind: "refused", error, needsBatch: false } };
}

interface Encoded {
  readonly bytes: Uint8Array;
  readonly lines: readonly IndexedLine[];
  readonly next: Tip;
}

export function encode(from: Tip, calls: readonly Call[], time: string): Encoded {
  let next = from;
  let text = "";
  const lines: IndexedLine[] = [];
  for (const { content, heads, retag } of calls) {
    const first = next.position + 1;
    const line = encodeLine(content, first, time, next.crc);
    const { segment, length: offset } = next;
    lines.push({ segment, offset, bytes: line.bytes, first, keys: heads.map(keysOf) });
    text += line.text;
    next = tipAfter(next, { events: heads, retag }, line);
  }
  return { bytes: Buffer.from(text), lines, next };
}

/** So that the caller can append the very same events again, which is safe. */
export function withIds(error: unknown, { heads }: Call): unknown {
  if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) return error;
  const ids = heads.map(({ id }) => id);
  const message = `It is not known whether these events were appended: ${error.message} Append them again with the same ids.`;
  return holdfastError("OUTCOME_UNKNOWN", message, { path: error.path, ids }, error);
}
