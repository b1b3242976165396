// A scenario of work that goes on by itself when a disk that was full has room again.
import { isHoldfastError } from "../../../errors.ts";
import { LastingWork } from "../../../files/queue/lasting-work.ts";
import { mustHold, valuesOf, type Scenario } from "../../explorer/scenario.ts";
import {
  dispatchAndWork,
  indexer,
  indexScenario,
  mustAgree,
  mustHaveOneTicketEach,
  nextProcess,
} from "./index-actors.ts";
import type { IndexScenarioOptions } from "./index-world.ts";

/** The scenario runs on the real class, or on a known-wrong variant. */
export interface FullDiskOptions extends IndexScenarioOptions {
  readonly LastingClass?: typeof LastingWork | undefined;
}

export function fullDiskScenarios({ LastingClass = LastingWork, ...options }: FullDiskOptions = {}): Scenario[] {
  return [
    indexScenario({
      name: "files index: a dispatcher on a disk that is full for a while",
      about: "Any two new files find no room: the work begins again by itself, and each change has one ticket.",
      files: { a: "a", b: "b" },
      begin: async ({ place, takeDispatch }) => {
        // Its chain is there: how one is made on a full disk is not what this is about.
        await takeDispatch();
        for (const path of ["a", "b"]) await place.changes.append({ kind: "written", path });
      },
      troubles: { error: 2 },
      errors: { errnos: ["ENOSPC"], operations: ["create"] },
      actors: {
        bob: indexer(options, async ({ note, ports }, { dispatcher, takeDispatch }) => {
          const lasting = new LastingClass({ clock: ports.clock, onFailure: () => note("interrupted") });
          const pass = async (): Promise<void> => {
            mustHold(await dispatcher.pass(await takeDispatch()), "the dispatcher has lost its lease");
          };
          try {
            await lasting.run(pass, new AbortController().signal);
            note("dispatched");
          } catch (error) {
            if (!isHoldfastError(error, "DISK_FULL")) throw error;
          }
        }),
      },
      audit: async (ports, facts) => {
        mustHold(valuesOf(facts, "dispatched").length === 1, "the work has ended because the disk was full");
        const next = await nextProcess(ports);
        await mustHaveOneTicketEach(next);
        await dispatchAndWork(next);
        await mustAgree(next);
        await mustHaveOneTicketEach(next);
      },
    }),
  ];
}
