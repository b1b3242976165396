// Scenarios of operations on a tree whose replies are lost: the caller learns what happened, or that the outcome is
// unknown.
import { isHoldfastError } from "../../../src/errors.ts";
import {
  mustHold,
  valuesOf,
  type ActorContext,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";
import { audited, fileScenario, worker, type FileScenarioOptions, type OpenFiles } from "./file-actors.ts";

interface Lost {
  readonly name: string;
  readonly work: (opened: OpenFiles) => Promise<unknown>;
  readonly before: Readonly<Record<string, string>>;
  readonly after: Readonly<Record<string, string>>;
}

const operations: readonly Lost[] = [
  {
    name: "a writer",
    work: ({ files }) => files.write("x", "new"),
    before: { x: "old" },
    after: { x: "new" },
  },
  { name: "a remover", work: ({ files }) => files.remove("x"), before: { x: "old" }, after: {} },
  { name: "a mover", work: ({ files }) => files.move("x", "y"), before: { x: "old" }, after: { y: "old" } },
];

/** The errors that a caller gets if the operation may have happened. */
const inDoubt = ["OUTCOME_UNKNOWN", "committed"];

export function lostAnswerScenarios(options: FileScenarioOptions = {}): Scenario[] {
  return operations.map(({ name, work, before, after }) =>
    fileScenario(
      {
        name: `files: ${name} whose answers are lost`,
        about:
          "An append is done, its reply is lost, and the check for it fails. The answer is true, whether it is success, an ordinary error or doubt.",
        troubles: { lostReply: 1, error: 1 },
        errors: { errnos: ["EIO"], operations: ["read", "link"] },
        actors: { ada: worker(options, (context, opened) => noteAnswer(context, () => work(opened))) },
        audit: async (ports, facts) => {
          const seen = JSON.stringify((await audited(ports)).texts);
          mustHold(
            [before, after].some((each) => JSON.stringify(each) === seen),
            `the tree has ${seen}`,
          );
          mustBeTold(facts, seen === JSON.stringify(after));
        },
      },
      before,
    ),
  );
}

async function noteAnswer({ note }: ActorContext, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
    note("answer", "done");
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    note("answer", isHoldfastError(error, "RESOURCE_BUSY") && error.committed === true ? "committed" : error.code);
  }
}

function mustBeTold(facts: readonly Fact[], hasHappened: boolean): void {
  const [answer] = valuesOf(facts, "answer").map(String);
  if (answer === undefined || inDoubt.includes(answer)) return;
  if (answer === "done") mustHold(hasHappened, "it was acknowledged, and has not happened");
  else mustHold(!hasHappened, `the caller was told ${answer}, and it has happened all the same`);
}
