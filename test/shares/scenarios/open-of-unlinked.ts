// Whether a file that one machine has unlinked can still be seen by another. A chain asks this of
// the file `open` of its epoch, and every win rests on the answer.
import { setTimeout as sleep } from "node:timers/promises";
import type { Question } from "../guest/hand.ts";
import { Hand } from "../hand.ts";
import type { Report, Scenario } from "../scenario.ts";

const rounds = 5;
const questionsOfFile: readonly Question[] = [
  "open",
  "open after its directory",
  "open after a link beside it",
  "link from it",
  "link from it after a link beside it",
  "readdir",
  "stat",
  "exclusive create",
];

/**
 * If it were a directory: no client keeps a removed one under another name, and no server keeps it
 * for processes that had it open.
 */
const questionsOfDirectory: readonly Question[] = ["list it", "open it", "stat"];

/**
 * The process that has the file open when it is unlinked. Asking by `open` is enough for that, and
 * the asker can be stopped in the middle.
 */
type Keeper = "no process" | "the asker" | "another process beside the asker" | "the unlinker" | "a third machine";

interface Hands {
  readonly asker: Hand;
  readonly besideAsker: Hand;
  readonly unlinker: Hand;
  readonly third: Hand;
}

export const openOfUnlinked: Scenario = {
  name: "disk-open-of-unlinked",
  about:
    "a file that another machine has unlinked cannot be linked from any more, though it was opened a moment before",
  async run(bed, report) {
    const directory = await bed.directory("unlinked");
    const [asker, besideAsker, unlinker, third] = await Promise.all([
      Hand.open(bed, bed.guest(1)),
      Hand.open(bed, bed.guest(1)),
      Hand.open(bed, bed.guest(2)),
      Hand.open(bed, bed.guest(3)),
    ]);
    const hands: Hands = { asker, besideAsker, unlinker, third };
    const keepers: readonly (readonly [Keeper, Hand | undefined])[] = [
      ["no process", undefined],
      ["the asker", asker],
      ["another process beside the asker", besideAsker],
      ["the unlinker", unlinker],
      ["a third machine", third],
    ];
    try {
      for (const [keeper, hand] of keepers) {
        const wrong = await askAll(hands, keeper, hand, `${directory}/file`, questionsOfFile);
        report.note(`a file kept open by ${keeper}: ${textOf(wrong)}`);
        const isRight = wrong.get("link from it after a link beside it") === 0;
        report.must(isRight, `an unlinked file can be linked from while ${keeper} has it open`);
      }
      for (const [keeper, hand] of keepers) {
        const listed = await countListed(hands, hand, `${directory}/listed-${keeper.replaceAll(" ", "-")}`);
        report.note(`a file kept open by ${keeper}: the unlinker itself still lists it: ${listed} of ${rounds}`);
      }
      for (const [keeper, hand] of keepers) {
        const wrong = await askAll(hands, keeper, hand, `${directory}/directory`, questionsOfDirectory);
        report.note(`a directory kept open by ${keeper}: ${textOf(wrong)}`);
      }
      await measureStaleness(hands, directory, report);
    } finally {
      await Promise.all(Object.values(hands).map((hand) => hand.close()));
    }
  },
};

/** How often each question was answered by "it is there" when it was not. */
async function askAll(
  { asker, unlinker }: Hands,
  keeper: Keeper,
  hand: Hand | undefined,
  prefix: string,
  questions: readonly Question[],
): Promise<Map<Question, number>> {
  const isDirectory = questions === questionsOfDirectory;
  const wrong = new Map<Question, number>();
  for (const question of questions) {
    wrong.set(question, 0);
    for (let round = 0; round < rounds; round++) {
      // A place for each, so that a listing has nothing to remember from the round before.
      const place = [prefix, keeper, question, round].join("-").replaceAll(" ", "-");
      const path = `${place}/open`;
      const ask = async (): Promise<boolean> => await asker.do<boolean>("isThere", question, path, `${place}-linked`);
      await unlinker.do("mkdir", place);
      await (isDirectory ? unlinker.do("mkdir", path) : unlinker.do("make", path, "x"));
      // The asker knows it well.
      for (let again = 0; again < 3; again++) await ask();
      const handle = await (isDirectory ? hand?.do<number>("openListing", path) : hand?.do<number>("open", path, "r"));
      await ask();
      await unlinker.do(isDirectory ? "rmdir" : "unlink", path);
      if (await ask()) wrong.set(question, (wrong.get(question) ?? 0) + 1);
      if (handle !== undefined) await hand?.do("close", handle);
    }
  }
  return wrong;
}

/**
 * Whether the unlinker can see that a process has it open: SMB keeps the name until the last one
 * closes it.
 */
async function countListed({ asker, unlinker }: Hands, hand: Hand | undefined, place: string): Promise<number> {
  let listed = 0;
  await unlinker.do("mkdir", place);
  for (let round = 0; round < rounds; round++) {
    const path = `${place}/open-${round}`;
    await unlinker.do("make", path, "x");
    await asker.do("isThere", "open", path, "");
    const handle = await hand?.do<number>("open", path, "r");
    await unlinker.do("unlink", path);
    if ((await unlinker.do<string[]>("readdir", place)).includes(`open-${round}`)) listed++;
    if (handle !== undefined) await hand?.do("close", handle);
  }
  return listed;
}

function textOf(wrong: ReadonlyMap<Question, number>): string {
  return `wrong "it is there" of ${rounds}: ${[...wrong].map(([question, count]) => `${question} ${count}`).join(", ")}`;
}

/** How long the worst case lasts. */
async function measureStaleness({ asker, besideAsker, unlinker }: Hands, directory: string, report: Report) {
  const path = `${directory}/lasting`;
  await unlinker.do("make", path, "x");
  await asker.do("isThere", "open", path, "");
  const handle = await besideAsker.do<number>("open", path, "r");
  await unlinker.do("unlink", path);
  const found = await asker.do<{ ms: number } | undefined>("awaitAbsence", "open", path, 50, 45_000);
  await besideAsker.do("close", handle);
  await sleep(100);
  const isThere = await asker.do<boolean>("isThere", "open", path, "");
  report.note(
    `kept open beside the asker, asked every 50 ms: ${found === undefined ? "there for more than 45 s" : `gone after ${Math.round(found.ms)} ms`}; once it is closed: ${isThere ? "there" : "gone"}`,
  );
}
