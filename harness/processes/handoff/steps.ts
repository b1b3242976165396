// The steps of a hand-off by name. The process tests use them as crash points.
import type { DiskChange } from "../crash-point-disk.ts";

/** The box of the run, and the box to which its workers send tickets. */
export const boxName = "box";
export const nextBoxName = "next";

const publishing = ["staging a ticket", "making a place for a payload", "claiming a key", "publishing"] as const;
const working = [
  "claiming a ticket",
  "staging outputs",
  "committing",
  "sending",
  "archiving",
  "noting an attempt",
  "giving back",
  "coming due",
  "failing for good",
  "declaring a death",
  "taking staged things away",
  "removing the place of the dead",
] as const;

type Step = (typeof publishing)[number] | (typeof working)[number];

/** The points at which each role can crash, in the words of `crashPointDisk`. */
export const crashPoints: Readonly<Record<"producer" | "worker", readonly string[]>> = {
  producer: pointsOf(publishing),
  worker: pointsOf(working),
};

function pointsOf(steps: readonly Step[]): string[] {
  return steps.flatMap((step) => [`before ${step}`, `after ${step}`]);
}

/** Returns the step that a change of names in one of the two boxes makes. */
export function stepOf({ operation, path, target }: DiskChange): Step | undefined {
  const [from, to] = [roomOf(path), target === undefined ? undefined : roomOf(target)];
  switch (operation) {
    case "createFile":
      return from === "staging" && path.endsWith("-0.json") ? "staging a ticket" : undefined;
    case "mkdir":
      if (from === "data" && depthOf(path) === 3) return "making a place for a payload";
      return from === "staging" && depthOf(path) === 3 ? "staging outputs" : undefined;
    case "link":
      if (to === "keys") return "claiming a key";
      if (to === "ledger") return "committing";
      return to === "notes" ? "noting an attempt" : undefined;
    case "rename":
      return stepOfRename(path, from, target ?? "", to);
    case "rmdir":
      return from === "processing" || from === "staging" ? "removing the place of the dead" : undefined;
    case "unlink":
      return undefined;
  }
}

const waiting = ["incoming", "lanes", "delayed"];

function stepOfRename(path: string, from: string, target: string, to: string | undefined): Step | undefined {
  if (target.endsWith(".dead")) return "declaring a death";
  if (to === undefined) return undefined;
  if (to === "processing") return "claiming a ticket";
  if (to === "ledger") return "committing";
  if (to === "archive") return "archiving";
  if (to === "error") return "failing for good";
  if (to === "trash" && from === "staging") return "taking staged things away";
  if (!waiting.includes(to)) return undefined;
  if (from === "staging") return path.includes(`/${nextBoxName}/`) ? "sending" : "publishing";
  if (from === "processing") return "giving back";
  return from === "delayed" ? "coming due" : undefined;
}

/** Returns the top directory of the box that a path is in, such as "incoming". */
function roomOf(path: string): string {
  return partsOf(path)[0] ?? "";
}

function depthOf(path: string): number {
  return partsOf(path).length;
}

function partsOf(path: string): string[] {
  const parts = path.split("/");
  const box = parts.findLastIndex((part) => part === boxName || part === nextBoxName);
  return box === -1 ? [] : parts.slice(box + 1);
}
