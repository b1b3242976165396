// Scenarios of other rooms on Windows, beside a virus scanner. No process ends with an error: each
// waits until the scanner has closed the file.
import type { Disk, Volume } from "../../../src/ports/disk.ts";
import type { Scenario, ScenarioSize } from "../../../src/testing/explorer/scenario.ts";
import type { ServerQuirks } from "../../../src/testing/sim/server.ts";
import { fileScenarios } from "../files/files.ts";
import { handoffScenarios } from "../handoff/handoff.ts";
import { redoScenarios } from "../locks/redo.ts";
import { semaphoreScenarios } from "../locks/semaphore.ts";
import { keyScenarios } from "../objects/keys.ts";
import { filesBelow, onWindows, type WindowsWay } from "./on-windows.ts";

interface Scanned {
  /** The files that the scanner opens, or the directory below which it opens all. */
  readonly what: readonly string[] | string;
  readonly size?: ScenarioSize;
  /** Default: all of the scenario. */
  readonly actors?: readonly string[];
  /** The scanner opens files that only their creator knows. Default false. */
  readonly seesAll?: boolean;
  readonly killsMax?: number;
  /** The disk says that it is one of Windows. Default false. */
  readonly isNtfs?: boolean;
}

const ntfs: Volume = { kind: "local", type: "ntfs", mountOptions: [], hasWindowsNames: true };

const scanned: readonly (readonly [string, Scanned])[] = [
  ["redo: a reader without a lock, and power cuts", { what: ["/tree/count"] }],
  ["redo: a removal and power cuts (ext4-ordered)", { what: ["/tree/d/one"], killsMax: 1 }],
  ["redo: a move and power cuts (ext4-ordered)", { what: ["/tree/old"], killsMax: 1 }],
  ["redo: two counters, one is killed", { what: ["/tree/count"], size: "large" }],
  ["semaphore: two processes on a free name", { what: "/store", size: "large" }],
  ["files: a writer that dies", { what: "/tree" }],
  ["files: a remover that dies", { what: ["/tree/a/x"] }],
  ["files: a mover that dies", { what: "/tree", size: "large" }],
  ["files: an adder that dies", { what: "/tree", size: "large" }],
  ["key: two puts to a new key", { what: [] }],
  ["key: two puts to a new key", { what: "/staging", actors: ["ada"], seesAll: true }],
  ["key: two puts to a new key, a kill", { what: "/keys", size: "large" }],
  ["handoff: a publisher, power cuts", { what: "/box", size: "large" }],
  ["handoff: a worker, power cuts", { what: "/box", size: "large" }],
  ["handoff: a worker with outputs, power cuts", { what: "/box", size: "large" }],
  ["handoff: two tickets of one key and two workers, one with outputs", { what: [], size: "large", isNtfs: true }],
];

export function windowsScenarios(way?: WindowsWay, quirks?: ServerQuirks): Scenario[] {
  const bases = [redoScenarios(), semaphoreScenarios(), fileScenarios(), keyScenarios(), handoffScenarios()].flat();
  return scanned.map(([name, { what, size = "small", actors, seesAll = false, killsMax, isNtfs = false }]) => {
    const base = bases.find((each) => each.name === name);
    if (base === undefined) throw new Error(`There is no scenario "${name}".`);
    const chosen = Object.entries(base.actors).filter(([each]) => actors?.includes(each) ?? true);
    const scenario: Scenario = {
      ...base,
      name: windowsName(name, what),
      about: `${base.about} A scanner opens files meanwhile, and nobody gets an error for it.`,
      size,
      powerCuts: false,
      actors: Object.fromEntries(chosen),
      quirks: { ...base.quirks, ...quirks },
      ...(killsMax === undefined ? {} : { killsMax }),
      ...(seesAll ? { isUnseen: () => false } : {}),
      ...(isNtfs ? { volume: ntfs } : {}),
    };
    const find = async (disk: Disk): Promise<readonly string[]> =>
      typeof what === "string" ? await filesBelow(disk, what) : what;
    return onWindows(scenario, { find, way });
  });
}

export function windowsName(name: string, what: Scanned["what"]): string {
  const scannedFiles = typeof what === "string" ? what : what.join();
  return `windows: ${name.replace(/, (and )?power cuts$| and power cuts.*$/, "")}${scannedFiles === "" ? "" : `, a scanner of ${scannedFiles}`}`;
}
