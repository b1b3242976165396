// Checks which names this file system treats as one: `A` and `a`, or two spellings of the same
// accented letter.
import {
  bytesOf,
  failureOf,
  good,
  limited,
  type CheckAnswer,
  type CheckDefinition,
  type CheckContext,
} from "../check.ts";

export const caseOfNames: CheckDefinition = {
  id: "case",
  question: "Are `A` and `a` two names?",
  isVital: false,
  ask: askCase,
};

export const spellingOfNames: CheckDefinition = {
  id: "spelling",
  question: "Are the two Unicode spellings of `é` two names?",
  isVital: false,
  ask: askSpelling,
};

async function askCase(context: CheckContext): Promise<CheckAnswer> {
  const { names } = await makeBoth(context, "case-a", "CASE-A");
  if (names === 2) return good("`A` and `a` are two names.", "Names that differ in case are two files.");
  return limited(
    "`A` and `a` are one name.",
    "Holdfast's own names are in lower case and are safe; paths of yours that differ only in case are one file and one lock.",
    "Do not tell files of this folder apart by case alone.",
  );
}

async function askSpelling(context: CheckContext): Promise<CheckAnswer> {
  const { names, refusal } = await makeBoth(context, "spelling-\u00e9", "spelling-e\u0301");
  if (refusal !== undefined)
    return limited(
      `Names with accented letters are refused (${refusal}).`,
      "Holdfast's own names are plain ASCII and are safe; files of yours can have no other letters here.",
      "Mount with UTF-8 names (`iocharset=utf8` on cifs and vfat).",
    );
  if (names === 2)
    return good(
      "The two spellings of `é` are two names.",
      "Path locks treat both spellings as one path; the files are two.",
    );
  return limited(
    "The two spellings of `é` are one name.",
    "Path locks treat both spellings as one path too, so locks are right; a listing may show the other spelling than the one that was written.",
    'Compare names after `normalize("NFC")`.',
  );
}

/**
 * Returns how many names exist after creating both. Counted by a listing, because create may be
 * broken on this disk.
 */
async function makeBoth(
  { ports, scratch }: CheckContext,
  one: string,
  other: string,
): Promise<{ names: number; refusal: string | undefined }> {
  const before = new Set(await ports.disk.list(scratch));
  const refusals: string[] = [];
  for (const name of [one, other]) {
    const refusal = await failureOf(() => ports.disk.createFile(`${scratch}/${name}`, bytesOf(name), { sync: false }));
    if (refusal !== undefined && refusal !== "EEXIST") refusals.push(refusal);
  }
  const names = (await ports.disk.list(scratch)).filter((name) => !before.has(name)).length;
  return { names, refusal: refusals[0] };
}
