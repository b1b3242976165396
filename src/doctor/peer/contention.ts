// The round in which both sides compete for the same names: exactly one must win each.
import { diskError, isOutcomeUnknown } from "../../ports/disk-error.ts";
import { bad, bytesOf, failureOf, findText, good, type CheckAnswer } from "../check.ts";
import type { Role } from "./pairing.ts";
import type { BothSides, PeerSession } from "./session.ts";

export type ContestKind = "link" | "create";

export interface Attempts {
  /** For each name "won", or the failure; EEXIST means that the name was lost. */
  readonly outcomes: readonly string[];
  /** For each name its final owner, as this side sees it; empty if the name is absent. */
  readonly owners: readonly string[];
}

const namesCount = 60;
const pauseMsMax = 4;

/**
 * Both sides try all names in the same order. The winner of a name pauses, so that the other side catches up and they
 * compete for each name.
 */
export async function contend(session: PeerSession, contest: ContestKind): Promise<BothSides<Attempts>> {
  const { clock, disk, random } = session.ports;
  const mine = bytesOf(session.role);
  const source = session.path(contest, session.role);
  await disk.createFile(source, mine, { sync: false });
  await session.exchange(`${contest}-ready`, {});
  const outcomes: string[] = [];
  for (let index = 0; index < namesCount; index++) {
    const name = session.path(contest, `name-${index}`);
    const failure = await failureOf(() =>
      contest === "link" ? disk.link(source, name) : disk.createFile(name, mine, { sync: false }),
    );
    outcomes.push(failure ?? "won");
    await session.keepUp();
    if (failure === undefined) await clock.sleep(random.fraction() * pauseMsMax);
  }
  await session.exchange(`${contest}-tried`, {});
  return await session.exchange(`${contest}-seen`, { outcomes, owners: await findOwners(session, contest) });
}

async function findOwners(session: PeerSession, contest: ContestKind): Promise<string[]> {
  // List first: that refreshes what this client has cached about each name.
  await session.ports.disk.list(`${session.directory}/${contest}`);
  const owners: string[] = [];
  for (let index = 0; index < namesCount; index++) {
    owners.push((await findText(session, session.path(contest, `name-${index}`))) ?? "");
    await session.keepUp();
  }
  return owners;
}

const meaningWhenBad =
  "Two machines can both believe that they won a number or a lock, or a winner can be overwritten: writes would be lost.";
const remedy = "Do not share this folder between these machines. Use another server or another file system.";

export function judgeContest(contest: ContestKind, attempts: BothSides<Attempts>): CheckAnswer {
  const what = contest === "link" ? "hard links" : "exclusive creates";
  const rulings = attempts.first.outcomes.map((_outcome, index) => ruleOn(attempts, index));
  const faults = rulings.flatMap(({ fault }) => fault ?? []);
  if (faults[0] !== undefined)
    return bad(
      `${faults.length} of ${rulings.length} names that both went for by ${what} were not won by exactly one: ${faults[0]}.`,
      meaningWhenBad,
      remedy,
    );
  const won = (role: Role): number => rulings.filter(({ winner }) => winner === role).length;
  const lostAnswers = rulings.filter(({ isByContent }) => isByContent).length;
  const note =
    lostAnswers === 0 ? "" : ` ${lostAnswers} answers were lost on the way, and the content told the winner.`;
  return good(
    `Of ${rulings.length} names that both went for by ${what}, each was won by exactly one.${note}`,
    "Numbers and locks are given out once, whichever machine asks.",
    { names: rulings.length, first: won("first"), second: won("second"), lostAnswers },
  );
}

interface ContestResult {
  readonly winner?: Role;
  readonly fault?: string;
  /** True if only the content showed the winner, because no reply did. */
  readonly isByContent?: boolean;
}

function ruleOn({ first, second }: BothSides<Attempts>, index: number): ContestResult {
  const outcomes = [first.outcomes[index] ?? "", second.outcomes[index] ?? ""];
  const owner = first.owners[index] ?? "";
  if (outcomes.every((outcome) => outcome === "won")) return { fault: "both were told that they had won" };
  const refusal = outcomes.find((outcome) => outcome !== "won" && outcome !== "EEXIST" && !isUnknown(outcome));
  if (refusal !== undefined) return { fault: `it failed with ${refusal}` };
  if (owner !== (second.owners[index] ?? "")) return { fault: "the two do not see the same owner" };
  if (owner !== "first" && owner !== "second") return { fault: "neither won" };
  // A lost reply may hide a win (Holdfast then checks the content too), but a reply that arrived must be right.
  const told = (["first", "second"] as const).find((_role, side) => outcomes[side] === "won");
  if (told !== undefined && told !== owner) return { fault: "the winner was replaced" };
  return { winner: owner, isByContent: told === undefined };
}

function isUnknown(errno: string): boolean {
  return isOutcomeUnknown(diskError(errno, "", ""));
}
