// From a claim to its ack: what `take` and `ack` do in the database.
//
// 1. `hf_claim_1` claims tickets for all callers of this process that wait: those without a group in
//    their order, and the first ticket of each lane that is ready. Others skip rows that are locked.
// 2. The files are checked against the manifest. A ticket that expired, does not match or was tried
//    too often becomes a dead letter, with a note.
// 3. The handler runs. Its outputs, and the files of tickets that it sends, become rows that are
//    staged.
// 4. `hf_ack_1` commits result, outputs and archive in one transaction, and with it the tickets that
//    are sent. The claim guards it.
//
// If the process dies before 4 is committed, nothing is done: recovery returns the ticket and
// removes what was staged. There is no state between the result and the archive.
import { holdfastError, messageOf } from "../../errors.ts";
import type { Arrivals } from "../../handoff/deliver/arrivals.ts";
import { checkFiles } from "../../handoff/deliver/file-check.ts";
import type { ClaimRequest, Settler, TicketSource } from "../../handoff/deliver/settler.ts";
import { findVerdict, pauseAfterMs } from "../../handoff/deliver/verdict.ts";
import type { AttemptNote } from "../../handoff/model/handoff.ts";
import type { Manifest } from "../../handoff/model/manifest.ts";
import { isOutOfConnections, isLost } from "../connection/failure.ts";
import type { PgSession } from "../liveness/session.ts";
import { Batches } from "../connection/batches.ts";
import type { PgPause } from "./pause.ts";
import type { KeptFolder } from "./payload-paths.ts";
import type { PgBox } from "./pg-box.ts";
import { PgSettler, readFile, Settling, type PgClaim, type Ending } from "./settler.ts";
import { attemptOf, claimColumns, manifestOf, type ClaimRow } from "./ticket-rows.ts";

/** Another process may have delayed a ticket since the last check. */
const dueAgainMs = 250;
const claimsAtOnce = 64;

interface Taken {
  readonly row: ClaimRow;
  readonly session: PgSession;
}

export interface PgSourceContext {
  readonly arrivals: Arrivals;
  readonly pause: PgPause;
  readonly leaseMs: number;
  readonly inFlight: number | undefined;
}

export class PgSource implements TicketSource {
  readonly directory: string;
  readonly arrivals: Arrivals;
  readonly pause: PgPause;
  readonly #box: PgBox;
  readonly #context: PgSourceContext;
  readonly #settling: Settling;
  readonly #claims: Batches<AbortSignal, Taken | undefined>;
  /** The number of the next claim of this process. */
  #serial = 1;
  /** Claims whose answer was lost, by holder. No caller works on them. */
  #unknown: { readonly holder: string; readonly serials: readonly number[] }[] = [];
  #isLaneFirst = false;
  #reapedAtMs = -Infinity;
  #dueAtMs = -Infinity;

  constructor(box: PgBox, context: PgSourceContext) {
    this.directory = box.directory;
    this.arrivals = context.arrivals;
    this.pause = context.pause;
    this.#box = box;
    this.#context = context;
    this.#settling = new Settling(box);
    this.#claims = new Batches((callers) => this.#claimAll(callers), { items: claimsAtOnce });
  }

  /**
   * Returns the tickets of dead processes every quarter of a lease, and moves due tickets into the
   * queue as soon as the next one is due.
   */
  async recover(): Promise<void> {
    const { ground, database, p } = this.#box;
    const nowMs = ground.ports.clock.monotonicMs();
    for (const unknown of this.#unknown.splice(0)) await this.#return(unknown);
    if (nowMs - this.#reapedAtMs >= this.#context.leaseMs / 4) {
      this.#reapedAtMs = nowMs;
      await ground.sweep();
      await database.query("select hf_reap_1($1, $2)", [p, ground.part]);
    }
    if (nowMs < this.#dueAtMs) return;
    this.#dueAtMs = nowMs + dueAgainMs;
    const [row] = await database.query<{ next_ms: number | null }>("select next_ms from hf_due_1($1)", [p]);
    this.#dueAtMs = nowMs + Math.min(dueAgainMs, Math.max(0, row?.next_ms ?? dueAgainMs));
  }

  async claim(request: ClaimRequest, signal: AbortSignal): Promise<Settler | undefined> {
    while (!signal.aborted) {
      const taken = await this.#claims.call(signal);
      if (taken === undefined) return undefined;
      const settler = await this.#check(taken, request, signal);
      if (settler !== undefined) return settler;
    }
    return undefined;
  }

  async resume(claim: string, signal: AbortSignal): Promise<Settler> {
    signal.throwIfAborted();
    const { database, p, ground } = this.#box;
    const session = await ground.session();
    const id = claim.slice(0, 36);
    const claims = /^-([0-9]{1,9})$/.exec(claim.slice(36))?.[1];
    const serial = this.#serial++;
    const [kept] = await database.query<{ kept: KeptFolder | null }>(
      "select kept from hf_ticket where p = $1 and id = $2 and state = 'k'",
      [p, id],
    );
    const isNamed = claim.length === 36 || claims !== undefined;
    if (kept !== undefined && isNamed)
      await database.query("select hf_unpark_1($1, $2, $3, $4, $5)", [
        p,
        session.holder.id,
        id,
        claims ?? null,
        serial,
      ]);
    const [row] = await database.query<ClaimRow & Record<string, unknown>>(
      `select ${claimColumns} from hf_ticket t
         where t.p = $1 and t.id = $2 and t.state = 'p' and t.holder = $3 and t.serial = $4`,
      [p, id, session.holder.id, serial],
    );
    if (row === undefined) throw notParked(claim);
    const folder = kept?.kept ?? undefined;
    const claimed = { row, manifest: manifestOf(row), session, ...(folder && { kept: folder }) };
    return new PgSettler(this.#settling, claimed);
  }

  async close(): Promise<void> {
    await this.#claims.drained();
    await this.#settling.close();
    for (const unknown of this.#unknown.splice(0)) await this.#return(unknown).catch(() => undefined);
  }

  /**
   * Claims for all callers with one statement. It is not repeated: if the answer is lost, the next
   * recovery returns the claims.
   */
  async #claimAll(callers: readonly AbortSignal[]): Promise<(Taken | undefined)[]> {
    const { ground, database, p } = this.#box;
    const session = await ground.session();
    const wanted = callers.filter(({ aborted }) => !aborted).length;
    if (wanted === 0) return callers.map(() => undefined);
    const found = await database.patiently(async () => {
      const first = this.#serial;
      this.#serial += wanted;
      const lanesFirst = (this.#isLaneFirst = !this.#isLaneFirst);
      try {
        return await database.once<ClaimRow & { outcome: "claimed" | "paused" | "dead" }>(
          "select * from hf_claim_1($1, $2, $3, $4, $5, $6, $7)",
          [p, ground.part, session.holder.id, first, wanted, lanesFirst, this.#context.inFlight ?? null],
        );
      } catch (error) {
        const serials = Array.from({ length: wanted }, (_, index) => first + index);
        if (isLost(error)) this.#unknown.push({ holder: session.holder.id, serials });
        throw error;
      }
    });
    if (found[0]?.outcome === "paused") this.pause.reportPaused();
    if (found[0]?.outcome === "dead") session.reportDead();
    const rows = found.filter(({ outcome }) => outcome === "claimed");
    return callers.map(({ aborted }) => {
      const row = aborted ? undefined : rows.shift();
      return row && { row, session };
    });
  }

  async #return(unknown: { readonly holder: string; readonly serials: readonly number[] }): Promise<void> {
    const { database, p } = this.#box;
    try {
      await database.query("select hf_return_1($1, $2, $3)", [p, unknown.holder, unknown.serials]);
    } catch (error) {
      this.#unknown.push(unknown);
      if (!isLost(error) && !isOutOfConnections(error)) throw error;
    }
  }

  /** Step 2. Returns undefined if the ticket was settled here, or was lost meanwhile. */
  async #check(
    { row, session }: Taken,
    { attempts, onDeadLetter }: ClaimRequest,
    signal: AbortSignal,
  ): Promise<Settler | undefined> {
    const attempt = attemptOf(row);
    const end = async (claim: PgClaim, ending: Ending): Promise<undefined> => {
      const isEnded = (await this.#settling.end(claim, ending)) !== undefined;
      if (isEnded && ending.how === "fail")
        onDeadLetter?.({ id: row.id, attempt, outcome: ending.outcome, reason: ending.reason });
    };
    let manifest: Manifest;
    try {
      manifest = manifestOf(row);
    } catch (error) {
      const unreadable = { row, session, manifest: { id: row.id } as Manifest };
      return await end(unreadable, { how: "fail", outcome: "fail", reason: messageOf(error) });
    }
    const claim: PgClaim = { row, session, manifest };
    if (row.is_done) return await end(claim, { how: "skip" });
    const verdict = await findVerdict(
      manifest,
      attempt,
      {
        attempts,
        nowMs: () => this.#box.nowMs(),
        check: (stopping) => checkFiles(manifest, (file) => readFile(this.#box, claim, file), stopping),
      },
      signal,
    );
    if (verdict === "stopped") return await end(claim, { how: "back", delayMs: 0 });
    if (verdict?.outcome === "retry" && attempt < attempts)
      return await end(claim, { how: "retry", delayMs: pauseAfterMs(attempt), reason: verdict.reason });
    if (verdict !== undefined) {
      const outcome: AttemptNote["outcome"] = verdict.outcome === "retry" ? "fail" : verdict.outcome;
      return await end(claim, { how: "fail", outcome, reason: verdict.reason });
    }
    return session.isOver ? undefined : new PgSettler(this.#settling, claim);
  }
}

function notParked(claim: string): Error {
  const message = `The claim ${claim} is not parked: it was settled, or its time ran out and the ticket returned to the queue.`;
  return holdfastError("CLAIM_LOST", message, { id: claim.slice(0, 36), attempt: Number(claim.slice(37)) });
}
