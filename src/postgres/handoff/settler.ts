// Settles claims. Each way is one transaction guarded by the claim, so a late process changes
// nothing.
import { PacedNote } from "../../handoff/deliver/paced-note.ts";
import { claimLost, type Payload, type Settler } from "../../handoff/deliver/settler.ts";
import type { ParkedTicket } from "../../handoff/model/delivery.ts";
import type { AttemptNote } from "../../handoff/model/handoff.ts";
import type { Manifest, ManifestFile } from "../../handoff/model/manifest.ts";
import type { PgSession } from "../liveness/session.ts";
import { escaped } from "../connection/text.ts";
import { Batches, untilAnswered } from "../connection/batches.ts";
import { StagedOutputs, type SentTicket } from "./outputs.ts";
import { PayloadPaths, type KeptFolder } from "./payload-paths.ts";
import { readPieces } from "./payload-rows.ts";
import { checkSize, type PgBox } from "./pg-box.ts";
import { insertTickets } from "./publisher.ts";
import { attemptOf, type ClaimRow } from "./ticket-rows.ts";

/** A claim of this process. */
export interface PgClaim {
  readonly row: ClaimRow;
  readonly manifest: Manifest;
  readonly session: PgSession;
  readonly kept?: KeptFolder;
}

interface Ack {
  readonly claim: PgClaim;
  readonly result: string | undefined;
  readonly outputs: string | undefined;
  readonly owner: string | undefined;
}

type AckOutcome = "done" | "skipped" | "lost";
type Send = Parameters<typeof insertTickets>[0];

export type Ending =
  | { readonly how: "retry"; readonly delayMs: number; readonly reason: string }
  | { readonly how: "back"; readonly delayMs: number }
  | { readonly how: "fail"; readonly outcome: AttemptNote["outcome"]; readonly reason: string }
  | { readonly how: "park"; readonly delayMs: number; readonly kept: KeptFolder }
  | { readonly how: "skip" };

/** Settles the claims of one box. Waiting acks of this process share a transaction. */
export class Settling {
  readonly box: PgBox;
  readonly #acks: Batches<Ack, AckOutcome>;

  constructor(box: PgBox) {
    this.box = box;
    this.#acks = new Batches((acks) => this.#ackAll(acks), { items: 256, bytes: 4_000_000, bytesOf: sizeOf });
  }

  /** Commits the result, and publishes the sent tickets, in one transaction. Throws CLAIM_LOST. */
  async ack(ack: Ack, sent: readonly SentTicket[]): Promise<void> {
    mustStillHave(ack.claim);
    const outcome = await (sent.length === 0 ? this.#acks.call(ack) : this.#ackAndSend(ack, sent));
    if (outcome === "lost") throw lost(ack.claim);
    this.box.ground.signals.wake(this.box.settledPath);
  }

  /** Ends a claim without a result. Returns when the ticket is due; undefined if the claim was gone. */
  async end(claim: PgClaim, ending: Ending): Promise<Date | undefined> {
    const { database, ground, p, isSynced } = this.box;
    const { session, row, manifest } = claim;
    const { how } = ending;
    const outcome = how === "fail" ? ending.outcome : how === "retry" ? "retry" : null;
    const values = [
      ...[p, ground.part, session.holder.id, isSynced, row.id, row.serial, how],
      "delayMs" in ending ? ending.delayMs : 0,
      outcome,
      "reason" in ending ? escaped(ending.reason) : null,
      how === "park" ? JSON.stringify(ending.kept) : null,
    ];
    const [found] = await untilAnswered(database, [row.id], () =>
      database.once<{ due_ms: number | null }>(
        "select hf_settle_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) as due_ms",
        values,
      ),
    );
    const dueMs = found?.due_ms ?? undefined;
    if (dueMs === undefined) return undefined;
    if (how === "retry" || how === "back" || manifest.group !== undefined) this.box.wake();
    ground.signals.wake(this.box.settledPath);
    return new Date(Math.ceil(dueMs));
  }

  async close(): Promise<void> {
    await this.#acks.drained();
  }

  async #ackAll(acks: readonly Ack[]): Promise<AckOutcome[]> {
    const { database } = this.box;
    // The sessions differ only if one has just ended.
    const outcomes = new Map<Ack, AckOutcome>();
    for (const session of new Set(acks.map(({ claim }) => claim.session))) {
      const own = acks.filter(({ claim }) => claim.session === session);
      const found = await untilAnswered(database, idsOf(own), () =>
        this.#send(async (text, values) => await database.once(text, values), session, own),
      );
      for (const [index, ack] of own.entries()) outcomes.set(ack, found[index] ?? "lost");
    }
    if (acks.some(({ claim }) => claim.manifest.group !== undefined)) this.box.wake();
    return acks.map((ack) => outcomes.get(ack) ?? "lost");
  }

  async #ackAndSend(ack: Ack, sent: readonly SentTicket[]): Promise<AckOutcome> {
    const { database, isSynced, ground } = this.box;
    const { signals, ports } = ground;
    const outcome = await untilAnswered(database, idsOf([ack]), () =>
      database.transaction(async (send) => {
        const [found = "lost"] = await this.#send(send, ack.claim.session, [ack]);
        if (found !== "done") return found;
        // Ordered by box, so that two commits never deadlock.
        for (const p of [...new Set(sent.map((each) => each.p))].sort((a, b) => a - b)) {
          const tickets = sent.filter((each) => each.p === p).map(({ ticket }) => ticket);
          const rows = await insertTickets(send, { p, isSynced }, tickets);
          if (rows.some((row) => row.outcome === "lost")) throw lost(ack.claim);
        }
        return found;
      }),
    );
    for (const path of new Set(sent.map((each) => each.path))) {
      signals.wake(path);
      signals.notifyLater(database, ports.clock, path);
    }
    if (ack.claim.manifest.group !== undefined) this.box.wake();
    return outcome;
  }

  async #send(send: Send, session: PgSession, acks: readonly Ack[]): Promise<AckOutcome[]> {
    const { ground, p, isSynced } = this.box;
    const column = (of: (ack: Ack) => unknown): unknown[] => acks.map((ack) => of(ack) ?? null);
    const rows = await send<{ outcome: AckOutcome }>(
      "select outcome from hf_ack_1($1, $2, $3, $4, $5, $6, $7, $8, $9) order by i",
      [
        ...[p, ground.part, session.holder.id, isSynced],
        column(({ claim }) => claim.row.id),
        column(({ claim }) => claim.row.serial),
        column(({ result }) => result),
        column(({ outputs }) => outputs),
        column(({ owner }) => owner),
      ],
    );
    return rows.map(({ outcome }) => outcome);
  }
}

/** One claim, for the handler that works on it. */
export class PgSettler implements Settler {
  readonly manifest: Manifest;
  readonly attempt: number;
  readonly session: PgSession;
  readonly payload: Payload;
  readonly outputs: StagedOutputs;
  readonly #settling: Settling;
  readonly #claim: PgClaim;
  readonly #paths: PayloadPaths;
  readonly #progress: PacedNote;

  constructor(settling: Settling, claim: PgClaim) {
    const { box } = settling;
    const { row, manifest, session, kept } = claim;
    const read = (file: ManifestFile): AsyncIterable<Uint8Array> => readFile(box, claim, file);
    this.#settling = settling;
    this.#claim = claim;
    this.#paths = new PayloadPaths(box, read, kept);
    this.#progress = new PacedNote(box.ground.ports.clock, (note) => this.#writeProgress(note));
    this.manifest = manifest;
    this.attempt = attemptOf(row);
    this.session = session;
    this.payload = { read, path: (file) => this.#paths.path(file) };
    const sender = { boxId: box.part.id, id: row.id, replays: row.replays };
    this.outputs = new StagedOutputs(box, sender, (cause) => lost(claim, cause));
  }

  async commit(result: unknown): Promise<void> {
    const { outputs } = this;
    const json = result === undefined ? undefined : JSON.stringify({ result });
    if (json !== undefined) checkSize("The result of a ticket", json);
    const ack = { claim: this.#claim, result: json, outputs: JSON.stringify(outputs.files), owner: outputs.owner };
    await this.#settling.ack(ack, await outputs.sent());
    outputs.committed();
  }

  async retry(delayMs: number, reason: string): Promise<void> {
    await this.#end({ how: "retry", delayMs, reason });
  }

  async fail(reason: string): Promise<void> {
    await this.#end({ how: "fail", outcome: "fail", reason });
  }

  async giveBack(delayMs: number): Promise<boolean> {
    return (await this.#settling.end(this.#claim, { how: "back", delayMs })) !== undefined;
  }

  async park(forMs: number): Promise<ParkedTicket> {
    mustStillHave(this.#claim);
    const { folder, paths } = await this.#paths.keep(this.manifest.files);
    const dueAt = await this.#end({ how: "park", delayMs: forMs, kept: folder });
    this.#paths.release();
    const { id, claims } = this.#claim.row;
    return { ...this.manifest, claim: `${id}-${claims}`, attempt: this.attempt, dueAt, paths };
  }

  async progress(note: unknown): Promise<void> {
    await this.#progress.write(note);
  }

  async end(): Promise<void> {
    await this.#progress.end();
    await this.#paths.remove();
    await this.outputs.discard();
  }

  async #end(ending: Ending): Promise<Date> {
    mustStillHave(this.#claim);
    const dueAt = await this.#settling.end(this.#claim, ending);
    if (dueAt === undefined) throw lost(this.#claim);
    return dueAt;
  }

  async #writeProgress(note: unknown): Promise<void> {
    const { database, p } = this.#settling.box;
    const { row, session } = this.#claim;
    const rows = await database.query(
      `update hf_ticket set progress = $5
         where p = $1 and id = $2 and state = 'p' and holder = $3 and serial = $4 returning id`,
      [p, row.id, session.holder.id, row.serial, JSON.stringify({ note })],
    );
    if (rows.length === 0) throw lost(this.#claim);
  }
}

/** Yields the bytes of one file of a claimed ticket. */
export function readFile(
  box: PgBox,
  { row, manifest }: Pick<PgClaim, "manifest"> & { readonly row: Pick<ClaimRow, "id" | "inline"> },
  file: ManifestFile,
): AsyncIterable<Uint8Array> {
  return row.inline === null ? readPieces(box, row.id, file) : inlinePiece(row.inline, manifest, file);
}

async function* inlinePiece(
  inline: Buffer,
  { files }: Manifest,
  { name, size }: ManifestFile,
): AsyncGenerator<Uint8Array> {
  let start = 0;
  for (const file of files) {
    if (file.name === name) break;
    start += file.size;
  }
  // Bytes after the last file are returned with it, so that its check detects them.
  yield inline.subarray(start, files.at(-1)?.name === name ? undefined : start + size);
}

export function lost({ row }: Pick<PgClaim, "row">, cause?: unknown): Error {
  return claimLost({ id: row.id, attempt: attemptOf(row) }, cause);
}

function mustStillHave(claim: PgClaim): void {
  const { session } = claim;
  if (session.isOver) throw lost(claim, session.signal.reason);
}

function idsOf(acks: readonly Ack[]): string[] {
  return acks.map(({ claim }) => claim.row.id);
}

function sizeOf({ result = "", outputs = "" }: Ack): number {
  return result.length + outputs.length;
}
