// A batch: its calls with their verdicts, its lines, and its answers.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import type { IndexedLine } from "../index/keys/indexed-line.ts";
import { keysOf } from "../index/keys/key-hash.ts";
import { encodeLine, tipAfter } from "../log/format/line.ts";
import type { Tip } from "../log/format/tip.ts";
import type { AppendCall } from "./call-queue.ts";
import type { AppendVerdict } from "./judge.ts";

export interface JudgedCall {
  readonly call: AppendCall;
  readonly verdict: AppendVerdict;
}

export interface JudgedBatch {
  /** The tip against which the calls were judged. */
  readonly at: Tip;
  /** The time of all events in this batch. */
  readonly time: string;
  readonly calls: readonly JudgedCall[];
}

export function isAccepted({ verdict }: JudgedCall): boolean {
  return verdict.kind === "accepted";
}

export function hasAccepted({ calls }: JudgedBatch): boolean {
  return calls.some(isAccepted);
}

export function answer({ call, verdict }: JudgedCall): void {
  if (verdict.kind === "refused") call.reject(verdict.error);
  else call.resolve(verdict.appended);
}

/** Reports an error to the caller: nothing of this call was written, or the outcome is unknown. */
export function failed(call: AppendCall, error: unknown): JudgedCall {
  return { call, verdict: { kind: "refused", error, needsBatch: false } };
}

interface Encoded {
  readonly bytes: Uint8Array;
  readonly lines: readonly IndexedLine[];
  readonly next: Tip;
}

export function encode(from: Tip, calls: readonly AppendCall[], time: string): Encoded {
  let next = from;
  let text = "";
  const lines: IndexedLine[] = [];
  const timeMs = Date.parse(time);
  for (const { content, heads, retag } of calls) {
    const first = next.position + 1;
    const line = encodeLine(content, first, time, next.crc);
    const { segment, length: offset } = next;
    lines.push({ segment, offset, bytes: line.bytes, first, timeMs, keys: heads.map(keysOf) });
    text += line.text;
    next = tipAfter(next, { events: heads, retag }, line);
  }
  return { bytes: Buffer.from(text), lines, next };
}

/**
 * Adds the ids to OUTCOME_UNKNOWN: the caller can safely append the same events again with them.
 */
export function withIds(error: unknown, { heads }: AppendCall): unknown {
  if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) return error;
  const ids = heads.map(({ id }) => id);
  const message = `It is not known whether these events were appended: ${error.message} Append them again with the same ids.`;
  return holdfastError("OUTCOME_UNKNOWN", message, { path: error.path, ids }, error);
}
