// SessionLog: appends messages, and records in archives how far they have been archived. It needs
// no lock.
import { Chain, type ChainEntry } from "../../durable/chain/chain.ts";
import { ensureDirectory, parentOf } from "../../durable/publish/directory.ts";
import { retryIfSwept, type Staging } from "../../durable/publish/staging.ts";
import { isHoldfastError } from "../../errors.ts";
import { fileNameOf } from "../../format/name.ts";
import { randomName } from "../../format/id.ts";
import { describeDamage } from "../../part/findings.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Archive, Message } from "../model/session.ts";
import { isDamagedRecord, replaceRecord } from "../tree/damaged-record.ts";
import { archiveKind, lostMessages, messagesKind, type ArchiveRecord, type MessagesRecord } from "./session-record.ts";

/** Messages that are not archived. */
export interface OpenMessages {
  /** The number of the archive that they would make. */
  readonly archive: number;
  /** The entry of the last of them. */
  readonly upTo: number;
  readonly messages: readonly Message[];
}

export interface SessionDamage {
  readonly path: string;
  readonly what: string;
  /** "replaced": another entry has taken its place. */
  readonly state: "damaged" | "newer" | "replaced";
}

export class SessionLog {
  readonly id: string;
  readonly #staging: Staging;
  /** The directory whose `aside/` receives damaged entries. */
  readonly #aside: string;
  readonly #messages: Chain<MessagesRecord>;
  readonly #archives: Chain<ArchiveRecord>;

  private constructor(id: string, staging: Staging, directory: string) {
    this.id = id;
    this.#staging = staging;
    this.#aside = parentOf(parentOf(directory));
    this.#messages = new Chain(staging, `${directory}/messages`, messagesKind);
    this.#archives = new Chain(staging, `${directory}/archives`, archiveKind);
  }

  /** Opens a session, and creates its directories if they do not exist. Throws INVALID_NAME. */
  static async open(staging: Staging, sessions: string, id: string): Promise<SessionLog> {
    const directory = `${sessions}/${fileNameOf(id)}`;
    for (const name of ["messages", "archives"]) await ensureDirectory(staging.disk, `${directory}/${name}`);
    return new SessionLog(id, staging, directory);
  }

  /** Returns the session in this directory, and creates nothing. */
  static at(staging: Staging, directory: string): SessionLog {
    return new SessionLog("", staging, directory);
  }

  /** Appends all messages together; durable when it resolves. Throws TOO_LARGE. */
  async append(messages: readonly Message[]): Promise<void> {
    await this.#mending(() => retryIfSwept(() => this.#messages.append(this.#newId(), () => ({ messages }))));
  }

  async open(): Promise<OpenMessages> {
    const archive = await lastOf(this.#archives);
    const upTo = await lastOf(this.#messages);
    return { archive: archive + 1, upTo, messages: await this.#between(await this.#upToOf(archive), upTo) };
  }

  /**
   * Makes archive `number` if it is the next one and not empty. Returns true if the archive is this
   * one, whichever process made it.
   */
  async archive(number: number, record: ArchiveRecord): Promise<boolean> {
    const isNext = (newest: ChainEntry<ArchiveRecord> | undefined): boolean =>
      (newest?.number ?? 0) + 1 === number && (newest?.body.upTo ?? 0) < record.upTo;
    return await this.#mending(async () => {
      await retryIfSwept(() => this.#archives.append(this.#newId(), (newest) => (isNext(newest) ? record : undefined)));
      return (await this.#archives.find(number))?.body.commit === record.commit;
    });
  }

  /** Returns an archive. Throws IO_ERROR (ENOENT) if it does not exist. */
  async get(number: number): Promise<Archive> {
    const { damaged, upTo, user, summary } = await this.#archiveAt(number);
    return {
      session: this.id,
      number,
      messages: await this.#between(await this.#upToOf(number - 1), upTo),
      ...(user === undefined ? {} : { user }),
      ...(summary === undefined ? {} : { summary }),
      ...(damaged === undefined ? {} : { damaged }),
    };
  }

  async lastArchive(): Promise<number> {
    return await lastOf(this.#archives);
  }

  newCommit(): string {
    return this.#newId();
  }

  /** Yields every unreadable entry, and those that replaced one. Also reports entries of a newer format. */
  async *damages(onEntry: () => void = () => undefined): AsyncGenerator<SessionDamage> {
    for (const [name, chain] of this.#chains)
      for (let number = 1, last = await lastNumberOf(chain); number <= last; number++) {
        onEntry();
        const path = chain.pathOf(number);
        const subject = `Entry ${number} of the ${name}`;
        try {
          const { damaged } = (await chain.get(number)).body;
          if (damaged !== undefined) yield { path, what: damaged, state: "replaced" };
        } catch (error) {
          const { what } = describeDamage(subject, error);
          yield { path, what, state: isHoldfastError(error, "NEWER_FORMAT") ? "newer" : "damaged" };
        }
      }
  }

  /**
   * Replaces each unreadable entry, and keeps it in `aside/`. The replacement of messages states
   * that they are lost. The content of a replaced archive is unknown: its messages belong to the
   * next archive, or are open again.
   */
  async mend(): Promise<void> {
    const replace = async <T>(chain: Chain<T>, number: number, body: T): Promise<void> => {
      const bytes = chain.encode({ number, id: this.#newId(), body });
      await replaceRecord(this.#staging, this.#aside, chain.pathOf(number), bytes);
    };
    for (let number = 1, last = await lastNumberOf(this.#messages); number <= last; number++) {
      const { damaged, isOnDisk } = await readMessages(this.#messages, number);
      if (damaged !== undefined && !isOnDisk) await replace(this.#messages, number, lostMessages(damaged));
    }
    for (let number = 1, last = await lastNumberOf(this.#archives); number <= last; number++) {
      const { isOnDisk, ...record } = await this.#archiveAt(number);
      if (!isOnDisk) await replace(this.#archives, number, record);
    }
  }

  get #chains(): [string, Chain<{ readonly damaged?: string }>][] {
    return [
      ["messages", this.#messages],
      ["archives", this.#archives],
    ];
  }

  /**
   * Runs `work`. An append reads the newest entry: if that is damaged, the chain is repaired first.
   */
  async #mending<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!isDamagedRecord(error)) throw error;
    }
    await this.mend();
    return await work();
  }

  async #between(after: number, upTo: number): Promise<Message[]> {
    const messages: Message[] = [];
    for (let number = after + 1; number <= upTo; number++)
      messages.push(...(await readMessages(this.#messages, number)).messages);
    return messages;
  }

  async #upToOf(archive: number): Promise<number> {
    return archive === 0 ? 0 : (await this.#archiveAt(archive)).upTo;
  }

  async #archiveAt(number: number): Promise<ArchiveRecord & { readonly isOnDisk: boolean }> {
    try {
      return { ...(await this.#archives.get(number)).body, isOnDisk: true };
    } catch (error) {
      if (!isLost(error) || number > (await lastOf(this.#archives))) throw error;
      const { what } = describeDamage(`Archive ${number}`, error);
      return { upTo: await this.#upToOf(number - 1), commit: "", damaged: what, isOnDisk: false };
    }
  }

  #newId(): string {
    return randomName(this.#staging.random.bytes(16));
  }
}

/** Returns the newest number, even if its entry is unreadable. */
async function lastOf(chain: Chain<unknown>): Promise<number> {
  try {
    return (await chain.last())?.number ?? 0;
  } catch (error) {
    if (!isDamagedRecord(error)) throw error;
    return await chain.lastNumber();
  }
}

async function lastNumberOf(chain: Chain<unknown>): Promise<number> {
  try {
    return await chain.lastNumber();
  } catch (error) {
    // The process died while it opened the session for the first time, or a file has the name of
    // the chain.
    if (!hasErrno(error, "ENOENT", "ENOTDIR")) throw error;
    return 0;
  }
}

async function readMessages(
  chain: Chain<MessagesRecord>,
  number: number,
): Promise<MessagesRecord & { readonly isOnDisk: boolean }> {
  try {
    return { ...(await chain.get(number)).body, isOnDisk: true };
  } catch (error) {
    if (!isLost(error)) throw error;
    return { ...lostMessages(describeDamage(`Entry ${number} of the messages`, error).what), isOnDisk: false };
  }
}

/** True if the entry existed and cannot be read. */
function isLost(error: unknown): boolean {
  return isDamagedRecord(error) || hasErrno(error, "ENOENT");
}
