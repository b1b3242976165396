// Progress: what a handler says of how far it is, for people that look. The last word counts; none of it is
// synced, and a handler may say it as often as it likes.
import { parentOf, unlinkIfThere } from "../../durable/publish/directory.ts";
import { replace } from "../../durable/publish/publish.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import { countOf, objectOf } from "../../format/decoding.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import type { Box } from "../box/box.ts";
import type { TicketName } from "../model/ticket-name.ts";
import type { Claimed } from "./claim.ts";
import { claimLost } from "./settle.ts";

/** Between two writes of one delivery. */
const pauseMs = 500;

interface Progress {
  /** Which claim of the ticket has said it. */
  readonly claims: number;
  readonly progress?: unknown;
}

const progressKind: RecordKind<Progress> = {
  kind: "progress",
  decode: (value) => {
    const { claims, progress } = objectOf(value);
    return { claims: countOf(claims), progress };
  },
};

export function progressPath({ layout }: Box, id: string): string {
  return layout.note(id, "progress");
}

/** What the worker that has the ticket now has said last; undefined when it has said nothing. */
export async function findProgress(box: Box, { id, claims }: TicketName): Promise<unknown> {
  const found = await findRecord(box.disk, progressKind, progressPath(box, id));
  return found?.claims === claims ? found.progress : undefined;
}

/** Of one delivery. */
export class ProgressNote {
  readonly #box: Box;
  readonly #claim: Claimed;
  #writtenAtMs = -Infinity;
  /** What is to be written when the pause is over. */
  #next: { readonly bytes: Uint8Array } | undefined;
  #stopAlarm: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();
  #hasEnded = false;

  constructor(box: Box, claim: Claimed) {
    this.#box = box;
    this.#claim = claim;
  }

  /** Written now, or with what is said until then after a pause. A note that cannot be written then is left out. */
  async write(progress: unknown): Promise<void> {
    const bytes = encodeRecord(progressKind, { claims: this.#claim.name.claims, progress });
    const { clock } = this.#box.ground.ports;
    const leftMs = this.#writtenAtMs + pauseMs - clock.monotonicMs();
    if (leftMs <= 0) return await this.#replace(bytes);
    this.#next = { bytes };
    this.#stopAlarm ??= clock.alarm(leftMs, () => {
      this.#stopAlarm = undefined;
      if (this.#next !== undefined) this.#replace(this.#next.bytes).catch(() => undefined);
    });
  }

  /** Nothing is written after it resolves. What was said is forgotten: the ticket is in no hands any more. */
  async end(): Promise<void> {
    this.#hasEnded = true;
    this.#stopAlarm?.();
    if (this.#writtenAtMs === -Infinity) return;
    await this.#writing.catch(() => undefined);
    // A worker that lost its claim leaves it: the next one may have said something.
    if (this.#claim.session.isOver) return;
    await unlinkIfThere(this.#box.disk, progressPath(this.#box, this.#claim.name.id)).catch(() => undefined);
  }

  async #replace(bytes: Uint8Array): Promise<void> {
    this.#next = undefined;
    this.#writtenAtMs = this.#box.ground.ports.clock.monotonicMs();
    this.#writing = this.#writing.catch(() => undefined).then(() => this.#replaceNow(bytes));
    await this.#writing;
  }

  async #replaceNow(bytes: Uint8Array): Promise<void> {
    if (this.#hasEnded) return;
    const path = progressPath(this.#box, this.#claim.name.id);
    await this.#box.ensure(parentOf(path));
    try {
      await replace(this.#claim.session.staging, path, bytes, { sync: false });
    } catch (error) {
      if (this.#claim.session.isOver) throw claimLost(this.#claim, error);
      throw error;
    }
  }
}
