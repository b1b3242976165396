// Known-wrong ways to use a disk of Windows: each ends a process with an error of the file system.
import { windowsName, windowsScenarios } from "../../scenarios/windows/windows.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

const changes: readonly string[] = ["link", "rename", "unlink"];

export const windowsMutants: readonly Mutant[] = [
  {
    name: "windows: only links, renames and unlinks wait for a file that is in use",
    about: "A reader ends with EBUSY because a scanner has the file open.",
    scenario: scenarioNamed(
      windowsScenarios({ isRuled: (operation) => changes.includes(operation) }),
      windowsName("redo: a reader without a lock, and power cuts", ["/tree/count"]),
    ),
    breaks: /EBUSY/,
  },
  {
    name: "windows: a rename onto a directory is tried again, and never looked into",
    about: "The second of two puts to a new key waits for a directory that stays, and fails.",
    scenario: scenarioNamed(
      windowsScenarios({ explainsRenames: false }),
      windowsName("key: two puts to a new key", []),
    ),
    breaks: /another program has it/,
  },
  {
    name: "windows: a directory with an open file in it is not waited for",
    about: "A put fails because a scanner reads what it has prepared.",
    scenario: scenarioNamed(
      windowsScenarios({
        isRuled: async (operation, path, disk) =>
          operation !== "rename" || (await disk.findStat(path))?.kind !== "directory",
      }),
      windowsName("key: two puts to a new key", "/staging"),
    ),
    breaks: /EPERM/,
  },
  {
    name: "windows: commits with outputs and without share no lock",
    about: "A directory replaces the entry of another worker, and one key is committed twice.",
    scenario: scenarioNamed(
      windowsScenarios({}, { osLocks: "none" }),
      windowsName("handoff: two tickets of one key and two workers, one with outputs", []),
    ),
    breaks: /was committed twice/,
  },
];
