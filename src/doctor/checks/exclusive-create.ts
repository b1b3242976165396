// Checks that a create fails if the name is taken; semaphore files and staging rely on it.
import {
  bad,
  bytesOf,
  failureOf,
  findText,
  good,
  type CheckAnswer,
  type CheckDefinition,
  type CheckContext,
} from "../check.ts";

export const exclusiveCreate: CheckDefinition = {
  id: "exclusive-create",
  question: "Does creating a file fail when the name is taken?",
  isVital: true,
  ask,
};

const meaningWhenBad =
  "Two programs that create the same semaphore file both believe that they hold it, and one overwrites the other.";
const remedy = "Put the folder on a file system that honours O_EXCL.";

async function ask(context: CheckContext): Promise<CheckAnswer> {
  const { disk } = context.ports;
  const name = `${context.scratch}/create-name`;
  await disk.createFile(name, bytesOf("first"), { sync: false });
  const repeated = await failureOf(() => disk.createFile(name, bytesOf("second"), { sync: false }));
  const content = await findText(context, name);
  if (content !== "first") return bad("Creating a file that exists changed its content.", meaningWhenBad, remedy);
  if (repeated === undefined) return bad("Creating a file that exists was reported as done.", meaningWhenBad, remedy);
  if (repeated !== "EEXIST")
    return bad(`Creating a file that exists fails with ${repeated} and not with EEXIST.`, meaningWhenBad, remedy);
  return good(
    "A second create of a name is refused, and the file there stays as it was.",
    "A semaphore file has one holder.",
  );
}
