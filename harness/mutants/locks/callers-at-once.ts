// Known-wrong ways to let several callers of one process share a slot of the lock table.
import { createUniqueFile } from "../../../src/durable/publish/unique-file.ts";
import type { RollingEntry } from "../../../src/durable/chain/rolling-chain.ts";
import { LockTable } from "../../../src/locks/table/lock-table.ts";
import type { TableState } from "../../../src/locks/table/request.ts";
import { callersAtOnceScenarios } from "../../scenarios/locks/callers-at-once.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

type Entry = RollingEntry<TableState> | undefined;

/** Creates the hold file of a request only after its slot is won. */
class HoldFileAfterTheSlot extends LockTable {
  override async append(...[change, { keepAs, ...options } = {}]: Parameters<LockTable["append"]>): Promise<Entry> {
    let path: string | undefined;
    const entry = await super.append((state, stamp) => {
      path = keepAs?.();
      return change(state, stamp);
    }, options);
    if (entry === undefined || path === undefined) return entry;
    const { disk } = this.ground.ports;
    // A step at which other actors may run: the explorer assumes that nobody sees a hold file while
    // it is created.
    await disk.canOpen(`${path}.before`);
    await createUniqueFile(disk, path, new Uint8Array(), { sync: false });
    return entry;
  }
}

/** Gives all callers of a group the same answer. */
class OneAnswerForAll extends LockTable {
  readonly #running = new Set<Promise<Entry>>();

  override async append(...args: Parameters<LockTable["append"]>): Promise<Entry> {
    const own = super.append(...args);
    this.#running.add(own);
    const answers = await Promise.allSettled(this.#running);
    this.#running.delete(own);
    const made = answers.find((each) => each.status === "fulfilled" && each.value !== undefined);
    return (await own) ?? (made?.status === "fulfilled" ? made.value : undefined);
  }
}

export const callersAtOnceMutants: readonly Mutant[] = [
  {
    name: "locks: hold file made after the slot",
    about: "Another process finds the request without its hold file, and takes it for released.",
    scenario: scenarioNamed(
      callersAtOnceScenarios({ TableClass: HoldFileAfterTheSlot }),
      "locks: two callers of a process at once, and another process",
    ),
    breaks: /are inside together|came after fence/,
  },
  {
    name: "redo: one answer for all callers that share a slot",
    about: "A commit that the table refused is acknowledged because another commit in its slot counts.",
    scenario: scenarioNamed(
      callersAtOnceScenarios({ TableClass: OneAnswerForAll }),
      "redo: two commits of a process at once, and one of its holds is broken",
    ),
    breaks: /was put by ada, and is not there|was last put by/,
  },
];
