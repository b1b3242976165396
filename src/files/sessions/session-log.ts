// The log of a session: messages are appended, archives say how far they have been archived. No lock is needed.
import { Chain, type ChainEntry } from "../../durable/chain/chain.ts";
import { ensureDirectory } from "../../durable/publish/directory.ts";
import { retryIfSwept, type Staging } from "../../durable/publish/staging.ts";
import { fileNameOf } from "../../format/name.ts";
import { randomName } from "../../format/id.ts";
import type { Archive, Message } from "../model/session.ts";
import { archiveKind, messagesKind, type ArchiveRecord, type MessagesRecord } from "./session-record.ts";

/** Messages that are not archived. */
export interface OpenMessages {
  /** The archive that they would make. */
  readonly archive: number;
  /** The entry that the last of them is in. */
  readonly upTo: number;
  readonly messages: readonly Message[];
}

export class SessionLog {
  readonly id: string;
  readonly #staging: Staging;
  readonly #messages: Chain<MessagesRecord>;
  readonly #archives: Chain<ArchiveRecord>;

  private constructor(id: string, staging: Staging, directory: string) {
    this.id = id;
    this.#staging = staging;
    this.#messages = new Chain(staging, `${directory}/messages`, messagesKind);
    this.#archives = new Chain(staging, `${directory}/archives`, archiveKind);
  }

  /** Makes its directories if there are none. INVALID_NAME. */
  static async open(staging: Staging, sessions: string, id: string): Promise<SessionLog> {
    const directory = `${sessions}/${fileNameOf(id)}`;
    for (const name of ["messages", "archives"]) await ensureDirectory(staging.disk, `${directory}/${name}`);
    return new SessionLog(id, staging, directory);
  }

  /** All of them together, durable when it resolves. TOO_LARGE. */
  async append(messages: readonly Message[]): Promise<void> {
    await retryIfSwept(() => this.#messages.append(this.#newId(), () => ({ messages })));
  }

  async open(): Promise<OpenMessages> {
    const newest = await this.#archives.last();
    const after = newest?.body.upTo ?? 0;
    const upTo = (await this.#messages.last())?.number ?? 0;
    return { archive: (newest?.number ?? 0) + 1, upTo, messages: await this.#between(after, upTo) };
  }

  /**
   * Makes archive `number`, if it is the next one and has something in it. True when it is this one, whichever process
   * has made it.
   */
  async archive(number: number, record: ArchiveRecord): Promise<boolean> {
    const isNext = (newest: ChainEntry<ArchiveRecord> | undefined): boolean =>
      (newest?.number ?? 0) + 1 === number && (newest?.body.upTo ?? 0) < record.upTo;
    await retryIfSwept(() => this.#archives.append(this.#newId(), (newest) => (isNext(newest) ? record : undefined)));
    return (await this.#archives.find(number))?.body.commit === record.commit;
  }

  /** IO_ERROR (ENOENT) when there is none. */
  async get(number: number): Promise<Archive> {
    const { body } = await this.#archives.get(number);
    const before = number === 1 ? 0 : (await this.#archives.get(number - 1)).body.upTo;
    const { user, summary } = body;
    return {
      session: this.id,
      number,
      messages: await this.#between(before, body.upTo),
      ...(user === undefined ? {} : { user }),
      ...(summary === undefined ? {} : { summary }),
    };
  }

  async lastArchive(): Promise<number> {
    return (await this.#archives.last())?.number ?? 0;
  }

  newCommit(): string {
    return this.#newId();
  }

  async #between(after: number, upTo: number): Promise<Message[]> {
    const messages: Message[] = [];
    for (let number = after + 1; number <= upTo; number++)
      messages.push(...(await this.#messages.get(number)).body.messages);
    return messages;
  }

  #newId(): string {
    return randomName(this.#staging.random.bytes(16));
  }
}
