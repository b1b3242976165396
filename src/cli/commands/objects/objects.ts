// The command `holdfast objects`: buckets of versioned objects in a folder, for shells and pipes.
import type { Command } from "commander";
import { endHelp } from "../../help.ts";
import { failed, wrongUsage } from "../../part-verb.ts";
import type { Run } from "../../run.ts";
import { registerMakeBucket, registerRemoveBucket } from "./buckets.ts";
import { registerCopy } from "./copy.ts";
import { registerGet } from "./get.ts";
import { registerImport } from "./import.ts";
import { registerLs, registerVersions } from "./list.ts";
import { damaged, missing } from "./place.ts";
import { registerPut } from "./put.ts";
import { registerRm } from "./remove.ts";

const verbs = [
  registerMakeBucket,
  registerRemoveBucket,
  registerLs,
  registerPut,
  registerGet,
  registerRm,
  registerVersions,
  registerCopy,
  registerImport,
];

export function registerObjects(objects: Command, run: Run): void {
  objects.description(
    "Stores versioned objects in buckets; any number of processes may put the same key. Guide: docs/objects.md.",
  );
  endHelp(objects, {
    examples: [
      "holdfast objects mb /mnt/shop --bucket photos --versioning",
      "holdfast objects put /mnt/shop cats/tom.jpg tom.jpg --bucket photos",
      "holdfast objects versions /mnt/shop cats/tom.jpg --bucket photos",
    ],
    exits: {
      done: "done",
      failed: `${failed}; a condition did not hold, or a version is retained`,
      wrongUsage,
      nothingToDo: "there is no such object or version",
      verificationFailed: damaged,
      missing,
      tryAgain: "busy, or the answer was lost: try again",
    },
  });
  for (const register of verbs) register(objects, run);
}
