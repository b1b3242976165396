// The records of a session: a chain of messages and a chain of archives.
import { countOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";
import type { Message } from "../model/session.ts";

/** The messages of one `append`. */
export interface MessagesRecord {
  readonly messages: readonly Message[];
  /** Set if this record replaces unreadable messages: why. */
  readonly damaged?: string;
}

/**
 * An archive records up to which entry of the messages it goes; its own messages are those after
 * the previous archive. The messages stay where they are, so the archive also clears them: there is
 * no step in between.
 */
export interface ArchiveRecord {
  readonly upTo: number;
  /** Id of the commit that made it. */
  readonly commit: string;
  readonly user?: string;
  readonly summary?: string;
  /** Set if this record replaces an unreadable one: why. */
  readonly damaged?: string;
}

/** Returns the record that replaces unreadable messages. */
export function lostMessages(why: string): MessagesRecord {
  return { messages: [{ role: lostRole, content: why }], damaged: why };
}

/** The role of a message that stands for unreadable ones. */
const lostRole = "holdfast:lost";

export const messagesKind: RecordKind<MessagesRecord> = {
  kind: "session-messages",
  decode: (value) => {
    const { messages, damaged } = objectOf(value);
    return { messages: listOf(messages, messageOf), ...(damaged === undefined ? {} : { damaged: textOf(damaged) }) };
  },
};

export const archiveKind: RecordKind<ArchiveRecord> = {
  kind: "session-archive",
  decode: (value) => {
    const { upTo, commit, user, summary, damaged } = objectOf(value);
    return {
      upTo: countOf(upTo),
      commit: textOf(commit),
      ...(user === undefined ? {} : { user: textOf(user) }),
      ...(summary === undefined ? {} : { summary: textOf(summary) }),
      ...(damaged === undefined ? {} : { damaged: textOf(damaged) }),
    };
  },
};

function messageOf(value: unknown): Message {
  const message = objectOf(value);
  return { ...message, role: textOf(message.role), content: textOf(message.content) };
}
