// Scenarios and mutants of src/files. A new file of either is one line here.
import { changeLogMutants } from "../mutants/files/change-log.ts";
import { fileMutants } from "../mutants/files/files.ts";
import { indexMutants } from "../mutants/files/index-side.ts";
import { sessionMutants } from "../mutants/files/sessions.ts";
import { changeLogScenarios } from "../scenarios/files/change-log.ts";
import { fileScenarios } from "../scenarios/files/files.ts";
import { fullDiskScenarios } from "../scenarios/files/full-disk.ts";
import { indexFollowScenarios } from "../scenarios/files/index-follow.ts";
import { indexDeletedScenarios } from "../scenarios/files/index-deleted.ts";
import { indexWorkScenarios } from "../scenarios/files/index-work.ts";
import { lateCommitterScenarios } from "../scenarios/files/late-committers.ts";
import { lostAnswerScenarios } from "../scenarios/files/lost-answers.ts";
import { sessionScenarios } from "../scenarios/files/sessions.ts";
import { sidecarScenarios } from "../scenarios/files/sidecars.ts";
import { snapshotScenarios } from "../scenarios/files/snapshots.ts";
import type { ExploredRoom } from "./room.ts";

export const filesRoom: ExploredRoom = {
  name: "files",
  scenarios: [
    // Operations on a tree.
    fileScenarios,
    changeLogScenarios,
    lateCommitterScenarios,
    lostAnswerScenarios,
    // Data derived from the tree.
    indexWorkScenarios,
    fullDiskScenarios,
    indexFollowScenarios,
    indexDeletedScenarios,
    snapshotScenarios,
    sidecarScenarios,
    sessionScenarios,
  ],
  mutants: [fileMutants, changeLogMutants, indexMutants, sessionMutants],
};
