// Checks that a hard link gives a name away only once; chains, locks and objects rely on it.
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

export const hardLink: CheckDefinition = {
  id: "hard-link",
  question: "Does a hard link win a name exactly once?",
  isVital: true,
  ask,
};

const meaningWhenBad =
  "Holdfast gives out numbers and locks by hard links: without one that is exclusive, two writers can both believe that they won, and a write is lost.";
const remedy =
  "Put the folder on a file system with hard links (ext4, xfs, btrfs, APFS, NTFS, or an NFS or SMB share of one; not FAT, exFAT or a bucket).";

async function ask(context: CheckContext): Promise<CheckAnswer> {
  const { disk } = context.ports;
  const [first, second] = [`${context.scratch}/link-first`, `${context.scratch}/link-second`];
  const name = `${context.scratch}/link-name`;
  await disk.createFile(first, bytesOf("first"), { sync: false });
  await disk.createFile(second, bytesOf("second"), { sync: false });

  const refusal = await failureOf(() => disk.link(first, name));
  if (refusal !== undefined) return bad(`A hard link cannot be made (${refusal}).`, meaningWhenBad, remedy);
  if ((await findText(context, name)) !== "first")
    return bad("The new name does not show the file that was linked.", meaningWhenBad, remedy);

  const repeated = await failureOf(() => disk.link(second, name));
  // Check it in any case: a link can fail and still replace the file.
  const content = await findText(context, name);
  if (content !== "first")
    return bad("A second link to a taken name replaced the file that was there.", meaningWhenBad, remedy);
  if (repeated === undefined) return bad("A second link to a taken name was reported as won.", meaningWhenBad, remedy);
  if (repeated !== "EEXIST")
    return bad(`A second link to a taken name fails with ${repeated} and not with EEXIST.`, meaningWhenBad, remedy);
  return good(
    "A second link to a taken name is refused, and the file there stays as it was.",
    "Of many writers exactly one wins each number and each lock.",
  );
}
