// Checks if a rename replaces an old file by a whole new one, even while the old one is being read.
import {
  bad,
  bytesOf,
  failureOf,
  findText,
  good,
  limited,
  type CheckAnswer,
  type CheckDefinition,
  type CheckContext,
} from "../check.ts";

export const renameReplaces: CheckDefinition = {
  id: "rename",
  question: "Does a rename replace an existing file?",
  isVital: true,
  ask: askReplace,
};

export const renameWhileOpen: CheckDefinition = {
  id: "rename-while-open",
  question: "Can a file be replaced and removed while a program has it open?",
  isVital: false,
  ask: askWhileOpen,
};

async function askReplace(context: CheckContext): Promise<CheckAnswer> {
  const { disk } = context.ports;
  const [target, temp] = [`${context.scratch}/rename-target`, `${context.scratch}/rename-temp`];
  const meaning = "Holdfast replaces a file by renaming a complete one over it: here readers would keep the old one.";
  const remedy = "Use another file system, or a server that renames as POSIX says.";
  await disk.createFile(target, bytesOf("old"), { sync: false });
  await disk.createFile(temp, bytesOf("new"), { sync: false });
  const refusal = await failureOf(() => disk.rename(temp, target));
  if (refusal !== undefined) return bad(`A rename over an existing file fails (${refusal}).`, meaning, remedy);
  if ((await findText(context, target)) !== "new")
    return bad("After a rename over an existing file the old content is still there.", meaning, remedy);
  if ((await disk.list(context.scratch)).includes("rename-temp"))
    return bad("After a rename the old name is still there.", meaning, remedy);
  return good(
    "A rename puts the new file in the place of the old one.",
    "Readers see the old file or the new one, whole.",
  );
}

async function askWhileOpen(context: CheckContext): Promise<CheckAnswer> {
  const { disk } = context.ports;
  const [target, temp] = [`${context.scratch}/open-target`, `${context.scratch}/open-temp`];
  await disk.createFile(target, bytesOf("old"), { sync: false });
  await disk.createFile(temp, bytesOf("new"), { sync: false });
  const reader = await disk.open(target, "read");
  let refusal: string | undefined;
  try {
    const replacing = await failureOf(() => disk.rename(temp, target));
    // EEXIST has nothing to do with the open file. The check above reports it.
    refusal =
      replacing === undefined || replacing === "EEXIST" ? await failureOf(() => disk.unlink(target)) : replacing;
  } finally {
    await reader.close();
  }
  if (refusal === undefined)
    return good("An open file can be replaced and removed.", "A program that reads a file does not hold up a writer.");
  return limited(
    `While a program has a file open, it cannot be replaced or removed (${refusal}).`,
    "A slow reader, a virus scanner or a backup holds up writers; Holdfast tries again for a bounded time, then says so.",
    "Keep scanners and backups out of this folder.",
  );
}
