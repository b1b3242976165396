// Scenarios and mutants of src/locks. A new file of either is one line here.
import { callersAtOnceMutants } from "../mutants/locks/callers-at-once.ts";
import { commitAnswerMutants } from "../mutants/locks/commit-answers.ts";
import { pathLockMutants } from "../mutants/locks/path-locks.ts";
import { redoMutants } from "../mutants/locks/redo.ts";
import { seedPathLockMutants } from "../mutants/locks/seed-path-locks.ts";
import { semaphoreMutants } from "../mutants/locks/semaphore.ts";
import { brokenHolderScenarios } from "../scenarios/locks/broken-holders.ts";
import { callersAtOnceScenarios } from "../scenarios/locks/callers-at-once.ts";
import { changingHandsScenarios } from "../scenarios/locks/changing-hands.ts";
import { pathLockScenarios } from "../scenarios/locks/path-locks.ts";
import { redoScenarios } from "../scenarios/locks/redo.ts";
import { tornSlotScenarios } from "../scenarios/locks/torn-slot.ts";
import { semaphoreScenarios } from "../scenarios/locks/semaphore.ts";
import { staleRedoScenarios } from "../scenarios/locks/stale-redo.ts";
import type { ExploredRoom } from "./room.ts";

export const locksRoom: ExploredRoom = {
  name: "locks",
  scenarios: [
    semaphoreScenarios,
    pathLockScenarios,
    changingHandsScenarios,
    redoScenarios,
    staleRedoScenarios,
    brokenHolderScenarios,
    tornSlotScenarios,
    callersAtOnceScenarios,
  ],
  mutants: [
    semaphoreMutants,
    pathLockMutants,
    commitAnswerMutants,
    redoMutants,
    seedPathLockMutants,
    callersAtOnceMutants,
  ],
};
