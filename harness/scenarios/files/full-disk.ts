// A scenario of work that resumes automatically when a full disk has room again.
import { isHoldfastError } from "../../../src/errors.ts";
import { LastingWork } from "../../../src/files/queue/lasting-work.ts";
import { mustHold, valuesOf, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import {
  followAndWork,
  followLog,
  indexer,
  indexScenario,
  mustAgree,
  mustHaveOneTicketAtMost,
  nextProcess,
} from "./index-actors.ts";
import type { IndexScenarioOptions } from "./index-world.ts";

/** The class under test: the real one, or a known-wrong variant. */
export interface FullDiskOptions extends IndexScenarioOptions {
  readonly LastingClass?: typeof LastingWork | undefined;
}

export function fullDiskScenarios({ LastingClass = LastingWork, ...options }: FullDiskOptions = {}): Scenario[] {
  return [
    indexScenario({
      name: "files index: a log worker on a disk that is full for a while",
      about: "Any two new files may find the disk full. The work resumes automatically, and each change is indexed.",
      files: { a: "a" },
      begin: async ({ tree, takeLog }) => {
        // The chain exists before: this scenario does not create one on a full disk.
        await takeLog();
        await tree.changes.append({ kind: "written", path: "a" });
      },
      troubles: { error: 2 },
      errors: { errnos: ["ENOSPC"], operations: ["create"] },
      actors: {
        bob: indexer(options, async ({ note, ports }, process) => {
          const lasting = new LastingClass(ports.clock, () => note("interrupted"));
          const pass = async (): Promise<void> => followLog(process, await process.takeLog());
          try {
            await lasting.run(pass, new AbortController().signal);
            note("followed");
          } catch (error) {
            if (!isHoldfastError(error, "DISK_FULL")) throw error;
          }
        }),
      },
      audit: async (ports, facts) => {
        mustHold(valuesOf(facts, "followed").length === 1, "the work has ended because the disk was full");
        const next = await nextProcess(ports);
        await followAndWork(next);
        await mustAgree(next);
        await mustHaveOneTicketAtMost(next);
      },
    }),
  ];
}
