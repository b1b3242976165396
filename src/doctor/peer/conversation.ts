// The steps of two peers that have met: they greet, run the rounds, and judge them. Each judges alone, from the same
// notes.
import type { DoctorCheck, DoctorPeer, DoctorReport } from "../report.ts";
import { contend, judgeContest } from "./contention.ts";
import {
  greet,
  isSameMachine,
  isSameVersion,
  judgeClocks,
  judgeMachines,
  judgeOther,
  otherVersion,
} from "./greeting.ts";
import { judgeLocks, tryLocks } from "./lock-round.ts";
import type { PeerSession } from "./session.ts";
import { judgeAbsence, judgeListing, judgePresence, judgeReplacement } from "./visibility-verdicts.ts";
import { measureVisibility } from "./visibility.ts";

export interface Conversation {
  readonly peer: DoctorPeer;
  readonly checks: readonly DoctorCheck[];
}

export async function converse(session: PeerSession, own: DoctorReport): Promise<Conversation> {
  const greetings = await greet(session, own);
  const theirs = greetings[session.otherRole];
  const { host, pid } = theirs;
  const peer: DoctorPeer = { state: "met", host, pid, sameMachine: isSameMachine(greetings) };
  const checks: DoctorCheck[] = [];
  const add = (id: string, question: string, answer: Omit<DoctorCheck, "id" | "question">): void => {
    checks.push({ id: `peer-${id}`, question, ...answer });
  };
  if (isSameVersion(greetings)) {
    add("machines", "Are the two on different machines?", judgeMachines(greetings));
    add("own", "What does the other one find when it examines alone?", judgeOther(theirs));
    add("clock", "Do the clocks of the two agree?", judgeClocks(greetings));
    const links = await contend(session, "link");
    add("link", "Does a hard link have one winner when both try?", judgeContest("link", links));
    const creates = await contend(session, "create");
    add("create", "Does an exclusive create have one winner when both try?", judgeContest("create", creates));
    add("os-lock", "Does an OS lock of one keep out the other?", judgeLocks(await tryLocks(session)));
    const seen = await measureVisibility(session);
    add("listing", "How soon does a listing show what the other made?", judgeListing(seen));
    add("absence", "Is a name found that was absent a moment ago?", judgeAbsence(seen));
    add("presence", "Can a file still be opened that the other removed?", judgePresence(seen));
    add("replacement", "Is a file read new that the other replaced?", judgeReplacement(seen));
  } else add("version", "Do both run the same version of Holdfast?", otherVersion(greetings));
  await session.finish();
  return { peer, checks };
}
