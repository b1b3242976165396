// TreeSession: a session, as programs use it.
import type { Cancel } from "../../common.ts";
import { findJsonLoss } from "../../format/json-loss.ts";
import { checkCall } from "../model/arguments.ts";
import type { Archive, Message, Session } from "../model/session.ts";
import type { TaskContext } from "../queue/task-context.ts";
import type { SessionTask } from "../queue/task.ts";
import { recordOf } from "./session-archives.ts";
import type { SessionLog } from "./session-log.ts";

export class TreeSession implements Session {
  readonly id: string;
  readonly #log: SessionLog;
  readonly #user: string | undefined;
  readonly #context: Pick<TaskContext, "queue" | "functions">;
  readonly #mustBeOpen: () => void;

  /** `mustBeOpen` throws CLOSED. */
  constructor(
    log: SessionLog,
    user: string | undefined,
    context: Pick<TaskContext, "queue" | "functions">,
    mustBeOpen: () => void,
  ) {
    this.id = log.id;
    this.#log = log;
    this.#user = user;
    this.#context = context;
    this.#mustBeOpen = mustBeOpen;
  }

  async append(...messages: readonly Message[]): Promise<void> {
    this.#mustBeOpen();
    const checked = messages.map(checkMessage);
    if (checked.length > 0) await this.#log.append(checked);
  }

  async messages(): Promise<readonly Message[]> {
    this.#mustBeOpen();
    return (await this.#log.open()).messages;
  }

  /**
   * Archives the open messages. The task is published before the archive is made, with everything
   * that the archive needs: if the process dies in between, a worker finishes the commit. If it
   * dies earlier, the messages are unchanged. If two processes commit at once, one archives, and
   * the other continues with what is left.
   */
  async commit(options: Cancel = {}): Promise<{ readonly archive: number; readonly task: string } | undefined> {
    checkCall("commit", options, { signal: true });
    const [log, user, { queue, functions }] = [this.#log, this.#user, this.#context];
    for (;;) {
      this.#mustBeOpen();
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
    this.#mustBeOpen();
    const last = await this.#log.lastArchive();
    for (let number = 1; number <= last; number++) {
      this.#mustBeOpen();
      yield await this.#log.get(number);
    }
  }
}

/** Copies the message, so that later changes of the caller's object have no effect. */
function checkMessage(message: Message): Message {
  if (typeof message !== "object" || message === null) throw new TypeError("A message must be an object.");
  for (const name of ["role", "content"] as const)
    if (typeof message[name] !== "string") throw new TypeError(`A message must have a string as its ${name}.`);
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
