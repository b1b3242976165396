// The two-machine part: two examinations of one folder find each other in it, run the rounds
// together, and reach the same verdict.
import { errnoOf, hasErrno } from "../ports/disk-error.ts";
import type { Ports } from "../ports/ports.ts";
import { formatMs } from "./check.ts";
import type { DoctorOptions } from "./doctor.ts";
import { converse, type Conversation } from "./peer/conversation.ts";
import { findPeer, type Pairing } from "./peer/pairing.ts";
import { Presence, removeSession } from "./peer/presence.ts";
import { PeerGone, PeerSession } from "./peer/session.ts";
import { verdictOf, type DoctorCheck, type DoctorReport } from "./report.ts";
import { leftBehind } from "./scratch.ts";

const timeoutMsDefault = 60_000;

/**
 * Adds the findings of both peers to `own`, or the finding that no peer came. Leaves nothing behind, whatever
 * happens.
 */
export async function meetPeer(ports: Ports, own: DoctorReport, options: DoctorOptions): Promise<DoctorReport> {
  const meeting = new PeerMeeting(ports, own, options);
  let outcome: Conversation;
  try {
    outcome = await meeting.hold();
  } catch (error) {
    // A person waits for this answer: do only the cleanup that needs no waiting.
    if (!meeting.isOverBy(error)) {
      await meeting.cleanUp({ patient: false });
      throw error;
    }
    outcome = { peer: { state: "went away" }, checks: [wentAway(error)] };
  }
  const isClean = await meeting.cleanUp({ patient: true });
  const checks = [...own.checks, ...outcome.checks, ...(isClean ? [] : [leftBehind(meeting.room)])];
  return { ...own, verdict: verdictOf(checks.map(({ verdict }) => verdict)), checks, peer: outcome.peer };
}

class PeerMeeting {
  readonly room: string;
  readonly #ports: Ports;
  readonly #own: DoctorReport;
  readonly #options: DoctorOptions;
  readonly #presence: Presence;
  #session: string | undefined;

  constructor(ports: Ports, own: DoctorReport, options: DoctorOptions) {
    this.room = `${own.directory}/.holdfast-doctor-peer`;
    this.#ports = ports;
    this.#own = own;
    this.#options = options;
    this.#presence = new Presence(ports, this.room);
  }

  async hold(): Promise<Conversation> {
    const { signal, onPeer, timeoutMs = timeoutMsDefault } = this.#options;
    onPeer?.("waiting");
    const pairing = await findPeer(this.#ports, this.#presence, {
      timeoutMs,
      signal,
      prepare: (peer) => PeerSession.make(this.#ports, this.#directoryOf({ role: "first", peer })),
    });
    if (pairing === undefined) return { peer: { state: "none came" }, checks: [nobodyCame(timeoutMs)] };
    onPeer?.("met");
    const directory = this.#directoryOf(pairing);
    const session = new PeerSession({ ports: this.#ports, presence: this.#presence, ...pairing, directory, signal });
    return await converse(session, this.#own);
  }

  /**
   * True if the peer has gone. That includes a removed session: the peer was cancelled, or judged this process dead.
   */
  isOverBy(error: unknown): error is Error {
    return error instanceof PeerGone || (this.#session !== undefined && hasErrno(error, "ENOENT", "ESTALE"));
  }

  /** Returns false if it could not remove everything. */
  async cleanUp(options: { readonly patient: boolean }): Promise<boolean> {
    try {
      const isRemoved = this.#session === undefined || (await removeSession(this.#ports.disk, this.#session));
      return (await this.#presence.leave(options)) && isRemoved;
    } catch (error) {
      // The findings, or the reason of the failure, are more important than a disk error now.
      if (errnoOf(error) === undefined) throw error;
      return false;
    }
  }

  #directoryOf({ role, peer }: Pairing): string {
    const me = this.#presence.id;
    return (this.#session = `${this.room}/${role === "first" ? `${me}-${peer}` : `${peer}-${me}`}`);
  }
}

const question = "Is there another machine to examine this folder with?";
const meaning = "What one machine sees of another was not examined.";

function nobodyCame(timeoutMs: number): DoctorCheck {
  return {
    id: "peer",
    question,
    verdict: "limited",
    finding: `No peer came within ${formatMs(timeoutMs)}.`,
    meaning,
    remedy: "Run the same command on another machine, on the same folder, while this one waits.",
  };
}

function wentAway(cause: Error): DoctorCheck {
  return {
    id: "peer",
    question,
    verdict: "limited",
    finding: `A peer came, and went away before all was examined: ${cause.message}.`,
    meaning,
    remedy: "Run it again on both machines, and look at the message of the other one.",
  };
}
