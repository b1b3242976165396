// From a claim to its ack: what `take` and `ack` do on disk.
//
// 1. The leases are acquired: one of those that limit deliveries in progress, and for a ticket of a
//    group that of its lane (claimer.ts).
// 2. The ticket is renamed to `processing/<holder>`; its new name counts the attempt (claim.ts).
//    One process wins.
// 3. The files are checked against the manifest. A ticket that expired, does not match or was tried
//    too often ends in `error/`, with a note.
// 4. The ledger is checked. If the key is committed, the ticket continues at 7, without a handler.
// 5. The handler runs. Its outputs, and the tickets that it sends, go to `staging/<holder>`.
// 6. The result is committed, once: the ledger entry is linked, or with outputs the staged
//    directory is renamed to `ledger/<hash>`, and synced. From here on the ticket is done and `ack`
//    cannot fail.
// 7. The tickets that it sends are published, under the keys in the ledger entry (sent.ts).
// 8. The ticket is renamed to `archive/`. Without a sync: the ledger is authoritative.
//
// If the process dies before 6, nothing is done: recovery removes what it staged, then returns the
// ticket. If it dies after 6, recovery also returns the ticket, and the next claim does 7 and 8.
import { isHoldfastError, messageOf } from "../../errors.ts";
import { isUnreadable } from "../../durable/publish/record-file.ts";
import type { Box } from "../box/box.ts";
import type { Arrivals } from "../deliver/arrivals.ts";
import type { ClaimRequest, Outputs, Payload, Settler, TicketSource } from "../deliver/settler.ts";
import { findVerdict, pauseAfterMs, type TicketVerdict } from "../deliver/verdict.ts";
import { findCommitted, type LedgerEntry } from "../ledger/ledger.ts";
import type { ParkedTicket } from "../model/delivery.ts";
import type { AttemptNote } from "../model/handoff.ts";
import type { Manifest } from "../model/manifest.ts";
import { attemptOf } from "../model/ticket-name.ts";
import type { Pause } from "../operate/pause.ts";
import type { TargetBoxes } from "../publish/target-boxes.ts";
import type { Recovery } from "../recover/recovery.ts";
import type { ClaimedTicket } from "./claim.ts";
import type { Claimer, LeasedClaim } from "./claimer.ts";
import { StagedOutputs } from "./outputs.ts";
import { describeParked, park } from "./parked.ts";
import { checkPayload, readPayload } from "./payload-check.ts";
import { PayloadFiles } from "./payload-files.ts";
import { ProgressNote } from "./progress.ts";
import { publishSent, stageSent } from "./sent.ts";
import { archive, commitResult, failPermanently, returnToQueue, retryLater } from "./settle.ts";

type Fail = (outcome: AttemptNote["outcome"], reason: string) => Promise<undefined>;

export class BoxSource implements TicketSource {
  readonly directory: string;
  readonly arrivals: Arrivals;
  readonly pause: Pause;
  readonly #box: Box;
  readonly #claimer: Claimer;
  readonly #recovery: Recovery;
  readonly #targets: TargetBoxes;

  constructor(
    box: Box,
    {
      arrivals,
      claimer,
      pause,
      recovery,
      targets,
    }: {
      readonly arrivals: Arrivals;
      readonly claimer: Claimer;
      readonly pause: Pause;
      readonly recovery: Recovery;
      readonly targets: TargetBoxes;
    },
  ) {
    this.directory = box.layout.directory;
    this.arrivals = arrivals;
    this.pause = pause;
    this.#box = box;
    this.#claimer = claimer;
    this.#recovery = recovery;
    this.#targets = targets;
  }

  async recover(): Promise<void> {
    await this.#recovery.nowAndThen();
  }

  async claim(request: ClaimRequest, signal: AbortSignal): Promise<Settler | undefined> {
    while (!signal.aborted) {
      const leased = await this.#claimer.claim();
      if (leased === undefined) return undefined;
      let settler: Settler | undefined;
      try {
        settler = await this.#check(leased, request, signal);
      } finally {
        if (settler === undefined) await this.#claimer.end(leased);
      }
      if (settler !== undefined) return settler;
    }
    return undefined;
  }

  async resume(claim: string, signal: AbortSignal): Promise<Settler> {
    const leased = await this.#claimer.unpark(claim, signal);
    return this.#settlerOf(leased, leased.claim);
  }

  async close(): Promise<void> {
    await this.#claimer.close();
  }

  #settlerOf(leased: LeasedClaim, claim: ClaimedTicket): Settler {
    return new BoxSettler(this.#box, claim, this.#targets, () => this.#claimer.end(leased));
  }

  /**
   * Steps 3 and 4. Returns undefined if this settled the ticket, or if the claim was lost
   * meanwhile.
   */
  async #check(
    leased: LeasedClaim,
    { attempts, onDeadLetter }: ClaimRequest,
    signal: AbortSignal,
  ): Promise<Settler | undefined> {
    const { claim } = leased;
    const box = this.#box;
    const attempt = attemptOf(claim.name);
    const fail: Fail = async (outcome, reason) => {
      const isDead = await unlessLost(failPermanently(box, claim, outcome, reason));
      if (isDead) onDeadLetter?.({ id: claim.name.id, attempt, outcome, reason });
    };
    if ("damage" in claim) return await fail("fail", claim.damage.message);
    const { ticket, session } = claim;
    const check = (stopping: AbortSignal): Promise<void> => checkPayload(box, ticket, stopping);
    const limits = { attempts, nowMs: () => box.nowMs(), check };
    const verdict = await findVerdict(ticket.manifest, attempt, limits, signal);
    // A ticket with too many attempts may be done: its worker may have died between the commit and
    // the archive. Before such a ticket becomes a dead letter, the ledger lookup bypasses the
    // share's caches.
    const path = box.layout.ledger(ticket.manifest.key, claim.name.replays);
    let before: LedgerEntry | undefined;
    try {
      before = await findCommitted(box, path, { isSure: verdict !== undefined && verdict !== "stopped" });
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      const reason = `The ledger entry of its key cannot be read: ${messageOf(error)} ${repairAdvice}`;
      return await fail("fail", reason);
    }
    if (before !== undefined) await this.#finish(claim, before, attempts, fail);
    else if (verdict === "stopped") await returnToQueue(box, claim);
    else if (verdict !== undefined) await this.#reject(claim, verdict, attempts, fail);
    // If this process slept meanwhile, recovery has returned the ticket to the queue.
    else if (!session.isOver) return this.#settlerOf(leased, claim);
    return undefined;
  }

  async #reject(claim: ClaimedTicket, { outcome, reason }: TicketVerdict, attempts: number, fail: Fail): Promise<void> {
    const attempt = attemptOf(claim.name);
    if (outcome !== "retry") await fail(outcome, reason);
    else if (attempt >= attempts) await fail("fail", reason);
    else await unlessLost(retryLater(this.#box, claim, pauseAfterMs(attempt), reason));
  }

  /** Steps 7 and 8, for a ticket whose key is committed. */
  async #finish(claim: ClaimedTicket, before: LedgerEntry, attempts: number, fail: Fail): Promise<void> {
    try {
      await publishSent(this.#box, before, this.#targets);
    } catch (error) {
      if (isHoldfastError(error, "CLAIM_LOST", "LOCK_LOST", "CLOSED")) throw error;
      const reason = `It is done, but the tickets it sends cannot be published: ${messageOf(error)}`;
      const attempt = attemptOf(claim.name);
      if (attempt > attempts) await fail("fail", `${reason} Replay it when that is fixed.`);
      else await unlessLost(retryLater(this.#box, claim, pauseAfterMs(attempt), reason));
      return;
    }
    await archive(this.#box, claim, before);
  }
}

/** A claim whose ticket a handler processes. */
class BoxSettler implements Settler {
  readonly manifest: Manifest;
  readonly attempt: number;
  readonly session: ClaimedTicket["session"];
  readonly payload: Payload;
  readonly outputs: Outputs;
  readonly #box: Box;
  readonly #claim: ClaimedTicket;
  readonly #targets: TargetBoxes;
  readonly #files: PayloadFiles;
  readonly #staged: StagedOutputs;
  readonly #progress: ProgressNote;
  readonly #onEnd: () => Promise<void>;

  constructor(box: Box, claim: ClaimedTicket, targets: TargetBoxes, onEnd: () => Promise<void>) {
    const staged = new StagedOutputs(box, claim);
    const files = new PayloadFiles(box, claim);
    this.manifest = claim.ticket.manifest;
    this.attempt = attemptOf(claim.name);
    this.session = claim.session;
    this.payload = { read: (file) => readPayload(box, claim.ticket, file), path: (file) => files.path(file) };
    this.outputs = {
      add: (name, body) => staged.add(name, body),
      send: (target, bodies, options) => stageSent(box, staged, target, targets, bodies, options),
    };
    this.#box = box;
    this.#claim = claim;
    this.#targets = targets;
    this.#files = files;
    this.#staged = staged;
    this.#progress = new ProgressNote(box, claim);
    this.#onEnd = onEnd;
  }

  /** Steps 6 to 8. */
  async commit(result: unknown): Promise<void> {
    const entry = await commitResult(this.#box, this.#claim, result, this.#staged);
    // The ticket is done, even if a later step fails: then it returns to the queue, and the next
    // claim finishes these steps.
    await publishSent(this.#box, entry, this.#targets)
      .then(() => archive(this.#box, this.#claim, entry))
      .catch(() => undefined);
  }

  async retry(delayMs: number, reason: string): Promise<void> {
    await retryLater(this.#box, this.#claim, delayMs, reason);
  }

  async fail(reason: string): Promise<void> {
    await failPermanently(this.#box, this.#claim, "fail", reason);
  }

  async giveBack(delayMs: number): Promise<boolean> {
    return await returnToQueue(this.#box, this.#claim, delayMs);
  }

  async park(forMs: number): Promise<ParkedTicket> {
    const paths = await this.#files.keep();
    return describeParked(this.#claim, await park(this.#box, this.#claim, forMs), paths);
  }

  async progress(note: unknown): Promise<void> {
    await this.#progress.write(note);
  }

  /** Files that cannot be removed now are removed when the session is swept. */
  async end(): Promise<void> {
    await this.#progress.end();
    await this.#files.remove();
    await this.#staged.discard();
    await this.#onEnd();
  }
}

const repairAdvice = "`holdfast handoff verify DIR --repair` moves the entry aside; then replay the ticket.";

/** Returns false if another process has the ticket now and is responsible for it. */
async function unlessLost(settling: Promise<void>): Promise<boolean> {
  try {
    await settling;
    return true;
  } catch (error) {
    if (!isHoldfastError(error, "CLAIM_LOST", "LOCK_LOST")) throw error;
    return false;
  }
}
