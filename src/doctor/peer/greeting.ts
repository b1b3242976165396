// The first exchange of two peers: who they are, what each found alone, and the offset of its clock
// from the server's.
import { packageVersion } from "../../format/version.ts";
import { formatMs, good, limited, type CheckAnswer } from "../check.ts";
import { clockOffsetMsMax, measureClockOffsetMs } from "../clock-offset.ts";
import type { CheckVerdict, DoctorReport, DoctorVerdict } from "../report.ts";
import type { BothSides, PeerSession } from "./session.ts";

export interface Greeting {
  readonly version: string;
  readonly host: string;
  readonly pid: number;
  readonly bootId: string;
  /** The verdict of its own examination. */
  readonly verdict: DoctorVerdict;
  /** The ids of its checks that were not good. */
  readonly weak: readonly string[];
  /** How far the clock that stamps files is ahead of its own. */
  readonly clockOffsetMs: number;
}

export async function greet(session: PeerSession, { verdict, checks }: DoctorReport): Promise<BothSides<Greeting>> {
  const { ports } = session;
  const { host } = ports;
  return await session.exchange<Greeting>("greeting", {
    version: packageVersion,
    host: host.name,
    pid: host.pid,
    bootId: host.bootId,
    verdict,
    weak: checks.filter((check) => check.verdict !== "good").map(({ id }) => id),
    clockOffsetMs: await measureClockOffsetMs(ports, session.path("clock", session.role)),
  });
}

export function isSameMachine({ first, second }: BothSides<Greeting>): boolean {
  return first.bootId === second.bootId;
}

export function isSameVersion({ first, second }: BothSides<Greeting>): boolean {
  return first.version === second.version;
}

export function otherVersion({ first, second }: BothSides<Greeting>): CheckAnswer {
  return limited(
    `${first.host} runs Holdfast ${first.version}, ${second.host} runs ${second.version}.`,
    "They were not examined together: the rounds of two versions need not be the same.",
    "Install the same version on both and run it again.",
  );
}

export function judgeMachines(greetings: BothSides<Greeting>): CheckAnswer {
  const names = `${greetings.first.host} (process ${greetings.first.pid}) and ${greetings.second.host} (process ${greetings.second.pid})`;
  if (!isSameMachine(greetings))
    return good(`They are two machines: ${names}.`, "What follows was seen between two machines.");
  return limited(
    `They are on one machine: ${names}.`,
    "The following results come from one machine and prove nothing about two.",
    "Run it on two machines that mount the same folder.",
  );
}

const verdictByReport: Readonly<Record<DoctorVerdict, CheckVerdict>> = {
  ok: "good",
  limited: "limited",
  unusable: "bad",
};

/** The worse result counts for both, so that both reach the same verdict. */
export function judgeOther({ host, pid, verdict, weak }: Greeting): CheckAnswer {
  if (verdict === "ok")
    return good(`${host} (process ${pid}) finds everything good.`, "Both sides are fit for Holdfast.");
  const list = weak.join(", ");
  return {
    verdict: verdictByReport[verdict],
    finding: `${host} (process ${pid}) finds limits: ${list}.`,
    meaning: "A folder that is shared is only as good as its weakest machine.",
    remedy: "See what the doctor says on that machine.",
  };
}

/** Compares both clocks with the one that stamps files, so that no times of two machines are compared. */
export function judgeClocks({ first, second }: BothSides<Greeting>): CheckAnswer {
  const differenceMs = Math.abs(first.clockOffsetMs - second.clockOffsetMs);
  const measured = { differenceMs };
  if (differenceMs <= clockOffsetMsMax)
    return good(
      `Their clocks agree to within ${formatMs(clockOffsetMsMax)}, by the stamps of the server.`,
      "Times that the two write can be compared.",
      measured,
    );
  const ahead = first.clockOffsetMs < second.clockOffsetMs ? first : second;
  return {
    ...limited(
      `The clock of ${ahead.host} (process ${ahead.pid}) is ${formatMs(differenceMs)} ahead of the other's.`,
      "Holdfast never compares the clocks of two machines, so nothing is lost; people who compare times are misled, and so are other programs that judge a semaphore file by its age.",
      "Let all machines take their time from the same place (NTP).",
    ),
    measured,
  };
}
