// A session as a program holds it.
import type { Cancel } from "../../common.ts";
import { findJsonLoss } from "../../format/json-loss.ts";
import { checkCall } from "../model/arguments.ts";
import type { Archive, Message, Session } from "../model/session.ts";
import type { SessionTask } from "../queue/task.ts";
import type { TaskQueue } from "../queue/task-queue.ts";
import type { UserFunctions } from "../queue/user-functions.ts";
import { recordOf } from "./session-archives.ts";
import type { SessionLog } from "./session-log.ts";

export interface TreeSessionParts {
  readonly log: SessionLog;
  readonly user?: string | undefined;
  readonly queue: TaskQueue;
  readonly functions: UserFunctions;
  /** CLOSED. */
  readonly mustBeOpen: () => void;
}

export class TreeSession implements Session {
  readonly id: string;
  readonly #parts: TreeSessionParts;

  constructor(parts: TreeSessionParts) {
    this.id = parts.log.id;
    this.#parts = parts;
  }

  async append(...messages: readonly Message[]): Promise<void> {
    this.#parts.mustBeOpen();
    const checked = messages.map(checkMessage);
    if (checked.length > 0) await this.#parts.log.append(checked);
  }

  async messages(): Promise<readonly Message[]> {
    this.#parts.mustBeOpen();
    return (await this.#parts.log.open()).messages;
  }

  /**
   * The task is published before the archive is made, with all that the archive needs: a process that dies in between
   * leaves a commit that a worker finishes. One that dies before leaves the messages as they were. If two processes
   * commit at once, one of them archives, and the other goes on with what is left.
   */
  async commit(options: Cancel = {}): Promise<{ readonly archive: number; readonly task: string } | undefined> {
    checkCall("commit", options, { signal: true });
    const { log, queue, functions, user, mustBeOpen } = this.#parts;
    for (;;) {
      mustBeOpen();
      options.signal?.throwIfAborted();
      const { archive, upTo, messages } = await log.open();
      if (messages.length === 0) return undefined;
      const summary = await functions.archiveSummary(messages, options.signal);
      const task: SessionTask = {
        task: "session",
        session: this.id,
        archive,
        commit: log.newCommit(),
        upTo,
        ...(user === undefined ? {} : { user }),
        ...(summary === undefined ? {} : { summary }),
      };
      const { id } = await queue.publish(task);
      if (await log.archive(archive, recordOf(task))) return { archive, task: id };
    }
  }

  async *archives(): AsyncGenerator<Archive> {
    const { log, mustBeOpen } = this.#parts;
    mustBeOpen();
    const last = await log.lastArchive();
    for (let number = 1; number <= last; number++) {
      mustBeOpen();
      yield await log.get(number);
    }
  }
}

/** A copy, so that a change of the caller's object later changes nothing. */
function checkMessage(message: Message): Message {
  if (typeof message !== "object" || message === null) throw new TypeError("A message must be an object.");
  for (const name of ["role", "content"] as const)
    if (typeof message[name] !== "string") throw new TypeError(`A message must have a text as its ${name}.`);
  if (hasCycle(message)) throw new TypeError("A message must not contain itself, at any depth.");
  const loss = findJsonLoss(message, "message");
  if (loss !== undefined) throw new TypeError(`${loss}, which JSON does not have.`);
  return JSON.parse(JSON.stringify(message)) as Message;
}

function hasCycle(value: unknown, above: readonly unknown[] = []): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (above.includes(value)) return true;
  return Object.values(value).some((each) => hasCycle(each, [...above, value]));
}
