// Scenarios and mutants of src/objects. A new file of either is one line here.
import { bucketMutants } from "../mutants/objects/buckets.ts";
import { collectMutants } from "../mutants/objects/collecting.ts";
import { deadBlockMutants } from "../mutants/objects/dead-blocks.ts";
import { indexForgettingMutants } from "../mutants/objects/index-forgetting.ts";
import { keyIndexMutants } from "../mutants/objects/key-index.ts";
import { keyMutants } from "../mutants/objects/keys.ts";
import { repairMutants } from "../mutants/objects/repairing.ts";
import { uploadMutants } from "../mutants/objects/uploads.ts";
import { versionMutants } from "../mutants/objects/versions.ts";
import { verifyMutants } from "../mutants/objects/verifying.ts";
import { bucketScenarios } from "../scenarios/objects/buckets.ts";
import { collectScenarios } from "../scenarios/objects/collecting.ts";
import { deadBlockScenarios } from "../scenarios/objects/dead-blocks.ts";
import { indexForgettingScenarios } from "../scenarios/objects/index-forgetting.ts";
import { keyIndexScenarios } from "../scenarios/objects/key-index.ts";
import { keyScenarios } from "../scenarios/objects/keys.ts";
import { repairScenarios } from "../scenarios/objects/repairing.ts";
import { uploadScenarios } from "../scenarios/objects/uploads.ts";
import { versionScenarios } from "../scenarios/objects/versions.ts";
import { verifyScenarios } from "../scenarios/objects/verifying.ts";
import type { ExploredRoom } from "./room.ts";

export const objectsRoom: ExploredRoom = {
  name: "objects",
  scenarios: [
    // Chains of keys.
    keyScenarios,
    // Dropped blocks of keys.
    deadBlockScenarios,
    // Puts against the deletion of their bucket.
    bucketScenarios,
    // Listings while others merge.
    keyIndexScenarios,
    // Merges that leave keys out.
    indexForgettingScenarios,
    // Completers and aborts.
    uploadScenarios,
    // Readers, conditions, removals and settings.
    versionScenarios,
    // Files that a collection removes and keeps.
    collectScenarios,
    // Damage that a verification reports.
    verifyScenarios,
    // Entries that a repair sets aside.
    repairScenarios,
  ],
  mutants: [
    keyMutants,
    deadBlockMutants,
    bucketMutants,
    keyIndexMutants,
    indexForgettingMutants,
    uploadMutants,
    versionMutants,
    collectMutants,
    verifyMutants,
    repairMutants,
  ],
};
