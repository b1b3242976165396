// Progress: what a handler reports while it works, for people. Only the last report is kept.
// Reports are not synced, so a handler may report as often as it likes.
import { parentOf, unlinkIfThere } from "../../durable/publish/directory.ts";
import { replace } from "../../durable/publish/publish.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import { countOf, objectOf } from "../../format/decoding.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import type { Box } from "../box/box.ts";
import type { TicketName } from "../model/ticket-name.ts";
import { PacedNote } from "../deliver/paced-note.ts";
import type { ClaimedTicket } from "./claim.ts";
import { claimTaken } from "./settle.ts";

interface Progress {
  /** The number of the claim that made this report. */
  readonly claims: number;
  readonly progress?: unknown;
}

export const progressKind: RecordKind<Progress> = {
  kind: "progress",
  decode: (value) => {
    const { claims, progress } = objectOf(value);
    return { claims: countOf(claims), progress };
  },
};

export function progressPath({ layout }: Box, id: string): string {
  return layout.note(id, "progress");
}

/** Returns the last report of the worker that has the ticket now, or undefined if there is none. */
export async function findProgress(box: Box, { id, claims }: TicketName): Promise<unknown> {
  const found = await findRecord(box.disk, progressKind, progressPath(box, id));
  return found?.claims === claims ? found.progress : undefined;
}

/** The progress note of one delivery. */
export class ProgressNote {
  readonly #box: Box;
  readonly #claim: ClaimedTicket;
  readonly #note: PacedNote;

  constructor(box: Box, claim: ClaimedTicket) {
    this.#box = box;
    this.#claim = claim;
    this.#note = new PacedNote(box.ground.ports.clock, (progress) => this.#replace(progress));
  }

  async write(progress: unknown): Promise<void> {
    await this.#note.write(progress);
  }

  /**
   * Removes the note, because no worker has the ticket any more. Nothing is written after this
   * resolves.
   */
  async end(): Promise<void> {
    const isWritten = await this.#note.end();
    // A worker that lost its claim leaves the note, because it may be that of the next worker.
    if (!isWritten || this.#claim.session.isOver) return;
    await unlinkIfThere(this.#box.disk, progressPath(this.#box, this.#claim.name.id)).catch(() => undefined);
  }

  async #replace(progress: unknown): Promise<void> {
    const bytes = encodeRecord(progressKind, { claims: this.#claim.name.claims, progress });
    const path = progressPath(this.#box, this.#claim.name.id);
    await this.#box.ensure(parentOf(path));
    try {
      await replace(this.#claim.session.staging, path, bytes, { sync: false });
    } catch (error) {
      if (this.#claim.session.isOver) throw claimTaken(this.#claim, error);
      throw error;
    }
  }
}
