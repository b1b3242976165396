// Publishes tickets. Large files become rows first; then one transaction inserts all waiting
// tickets of this process.
import type { ManifestFile } from "../../handoff/model/manifest.ts";
import { describeFile, type Publication, type Published } from "../../handoff/model/publication.ts";
import { gatherPayload, type Payload } from "../../handoff/publish/payload.ts";
import { keyOf } from "../connection/text.ts";
import type { Send } from "../connection/database.ts";
import { Batches, untilAnswered } from "../connection/batches.ts";
import { StagedPieces, judgedDead } from "./payload-rows.ts";
import { checkSize, type PgBox } from "./pg-box.ts";

const batchMax = { items: 256, bytes: 4 * 1024 * 1024 };

/** A ticket as `hf_publish_1` inserts it. */
export interface NewTicket {
  readonly id: string;
  readonly key: string;
  readonly isKeyed: boolean;
  readonly group: string | undefined;
  readonly priority: number;
  readonly delayMs: number | undefined;
  readonly expiresMs: number | undefined;
  readonly bytes: number;
  readonly manifest: string;
  readonly inline: Buffer | undefined;
}

interface Row {
  readonly ticket: string;
  readonly outcome: "new" | "duplicate" | "lost";
}

export class PgPublisher {
  readonly #box: PgBox;
  readonly #batches: Batches<NewTicket, Row>;

  constructor(box: PgBox) {
    this.#box = box;
    this.#batches = new Batches((tickets) => this.#insert(tickets), {
      ...batchMax,
      bytesOf: ({ manifest, inline }) => manifest.length + (inline?.length ?? 0),
    });
  }

  async publish(publication: Publication): Promise<Published> {
    const id = this.#box.newId();
    const pieces = new StagedPieces(this.#box, id);
    try {
      const ticket = await prepareTicket(this.#box, id, publication, pieces);
      publication.signal?.throwIfAborted();
      const { ticket: first, outcome } = await this.#batches.call(ticket);
      if (outcome === "lost") throw judgedDead(this.#box);
      if (outcome === "new" && !((publication.delayMs ?? 0) > 0)) this.#box.wake();
      return { id: first, key: ticket.key, duplicate: outcome === "duplicate" };
    } catch (error) {
      // This removes only pieces that no ticket has.
      await pieces.discard();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#batches.drained();
  }

  async #insert(tickets: readonly NewTicket[]): Promise<Row[]> {
    const { database, p, isSynced } = this.#box;
    const ids = tickets.map(({ id }) => id);
    return await untilAnswered(database, ids, () =>
      insertTickets(async (text, values) => await database.once(text, values), { p, isSynced }, tickets),
    );
  }
}

/** Stages the files of a ticket, and describes it. */
export async function prepareTicket(
  box: PgBox,
  id: string,
  publication: Publication,
  pieces: StagedPieces,
): Promise<NewTicket> {
  const { facts, key, delayMs, expiresMs, signal } = publication;
  const payload: Payload = await gatherPayload(publication, async (bodies) => {
    const files = [];
    for (const [name, body] of bodies) files.push(await pieces.write(name, body, signal));
    return files;
  });
  const bytes = payload.files.reduce((sum, { size }) => sum + size, 0);
  await publication.admit?.(bytes, id);
  const { priority, ...rest } = facts;
  const { name: host, pid } = box.ground.ports.host;
  const files: ManifestFile[] = payload.files.map((file) => describeFile(file, publication));
  const ownKey = typeof key === "function" ? key(payload.files) : key;
  const manifest = JSON.stringify({ key: ownKey ?? id, files, producer: { host, pid }, ...rest });
  checkSize("The manifest of a ticket", manifest);
  return {
    id,
    key: ownKey ?? id,
    isKeyed: ownKey !== undefined,
    group: facts.group,
    priority,
    delayMs,
    expiresMs,
    bytes,
    manifest,
    inline: payload.inline && Buffer.concat(payload.inline),
  };
}

export async function insertTickets(
  send: Send,
  { p, isSynced }: { readonly p: number; readonly isSynced: boolean },
  tickets: readonly NewTicket[],
): Promise<Row[]> {
  const column = (of: (ticket: NewTicket) => unknown): unknown[] => tickets.map((ticket) => of(ticket) ?? null);
  return await send<Row & Record<string, unknown>>(
    "select ticket, outcome from hf_publish_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) order by i",
    [
      p,
      isSynced,
      column(({ id }) => id),
      column(({ key }) => keyOf(key)),
      column(({ isKeyed }) => isKeyed),
      column(({ group }) => (group === undefined ? undefined : keyOf(group))),
      column(({ priority }) => priority),
      column(({ delayMs }) => delayMs),
      column(({ expiresMs }) => expiresMs),
      column(({ bytes }) => bytes),
      column(({ manifest }) => manifest),
      column(({ inline }) => inline),
      column(({ inline }) => inline === undefined),
    ],
  );
}
