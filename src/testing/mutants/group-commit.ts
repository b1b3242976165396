// A group commit that does not take a failed sync for an answer.
import type { DiskFile } from "../../ports/disk.ts";
import { groupCommitScenarios, type MakeAppendFile } from "../scenarios/durable/group-commit.ts";
import { scenarioNamed, type Mutant } from "./mutant.ts";

/** Syncs again on the same handle, which says "fine" because the kernel has given the data up. */
const repeatsSync: MakeAppendFile = (file: DiskFile) => {
  let end = 0;
  return {
    append: async (bytes) => {
      const offset = end;
      await file.write(offset, bytes);
      await file.sync().catch(() => file.sync());
      end += bytes.length;
      return offset;
    },
  };
};

export const groupCommitMutants: readonly Mutant[] = [
  {
    name: "group commit that repeats a failed sync",
    about: "The second sync succeeds, and the data is gone.",
    scenario: scenarioNamed(groupCommitScenarios(repeatsSync), "group commit: a sync that fails once"),
    breaks: /was acknowledged, but the file is/,
  },
];
