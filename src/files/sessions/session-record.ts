// What a session is on the disk: a chain of messages and a chain of archives.
import { countOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import type { RecordKind } from "../../format/record.ts";
import type { Message } from "../model/session.ts";

/** One call of `append`. */
export interface MessagesRecord {
  readonly messages: readonly Message[];
}

/**
 * An archive says up to which entry of the messages it goes; its own messages are those after the archive before it.
 * The messages stay where they are, so an archive is the clearing: there is no step between the two.
 */
export interface ArchiveRecord {
  readonly upTo: number;
  /** Of the commit that made it. */
  readonly commit: string;
  readonly user?: string;
  readonly summary?: string;
}

export const messagesKind: RecordKind<MessagesRecord> = {
  kind: "session-messages",
  decode: (value) => ({ messages: listOf(objectOf(value).messages, messageOf) }),
};

export const archiveKind: RecordKind<ArchiveRecord> = {
  kind: "session-archive",
  decode: (value) => {
    const { upTo, commit, user, summary } = objectOf(value);
    return {
      upTo: countOf(upTo),
      commit: textOf(commit),
      ...(user === undefined ? {} : { user: textOf(user) }),
      ...(summary === undefined ? {} : { summary: textOf(summary) }),
    };
  },
};

function messageOf(value: unknown): Message {
  const message = objectOf(value);
  return { ...message, role: textOf(message.role), content: textOf(message.content) };
}
