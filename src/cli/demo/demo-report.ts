// The text that a person reads during and after the demo.
import { wrap, type Page } from "../output.ts";
import type { DemoFigures, DemoResult, StationFindings } from "./demo.ts";
import { stationKinds } from "./workstation.ts";

/** How many findings of each kind are printed in full. */
const toldMax = 10;

export function formatStart(workstations: number, directory: string, isTemporary: boolean): string {
  return [
    `${workstations} workstations share one folder, ${directory}${isTemporary ? " (removed at the end)" : ""}. No server.`,
    ...stationKinds.map(({ about }) => about),
    "Meanwhile some are killed and started again, and some are paused.",
    "",
  ].join("\n");
}

export function formatConsole(url: string): string {
  return [
    `Console: ${url}`,
    "It shows one store, the front desk: every workstation sends it a receipt for each piece of work.",
    "Find out who holds the lock on the shelves, why a label was not printed, and replay its ticket.",
    "",
  ].join("\n");
}

export function formatSecond({ seconds, pieces, piecesPerSecond, kills, pauses }: DemoFigures): string {
  const cells = [
    `${seconds.toFixed(0)} s`,
    `${pieces} ${listOf(stationKinds.map((kind) => kind.pieces))}`,
    `${piecesPerSecond}/s`,
    `${kills} killed`,
    `${pauses} paused`,
  ];
  return cells.map((cell, index) => cell.padStart([5, 60, 8, 11, 11][index] ?? 0)).join("");
}

export function formatResult(result: DemoResult, page: Page): string {
  const { failures, stations, isSound, kills, pauses } = result;
  return [
    "",
    ...stations.flatMap((findings) => [...formatFindings(findings, page), ""]),
    ...failures.map((failure) => page.style("red", `failed: ${failure}`)),
    isSound
      ? page.style("green", wrap(`Nothing was lost and nothing was doubled: ${countOf(kills, "kill")} and ${countOf(pauses, "pause")} cost time, never a write.`, page.columns, 0)) // prettier-ignore
      : page.style("red", verdictOf(result)),
  ].join("\n");
}

function formatFindings(
  { pieces, acknowledged, found, lost, doubled, disorder, shown }: StationFindings,
  page: Page,
): string[] {
  const row = (name: string, count: number, note = ""): string =>
    `${name.padEnd(14)}${String(count).padStart(8)}${note === "" ? "" : `  ${note}`}`;
  const extra = found - acknowledged + lost.length;
  const surplus =
    extra > 0 ? `${extra} more than acknowledged: written just before a kill, by hand, or in an earlier demo` : "";
  return [
    page.style("bold", `The audit of the ${pieces}, by reading the folder anew:`),
    row("acknowledged", acknowledged),
    row("found", found, surplus),
    ...formatBad("lost", lost, page),
    ...formatBad("doubled", doubled, page),
    ...formatBad("out of order", disorder, page),
    ...(lost.length + doubled.length + disorder.length === 0 ? [shown] : []),
  ];

  function formatBad(name: string, list: readonly string[], { style }: Page): string[] {
    if (list.length === 0) return [row(name, 0)];
    const rest = list.length > toldMax ? [`  and ${list.length - toldMax} more`] : [];
    return [
      style("red", row(name, list.length)),
      ...list.slice(0, toldMax).map((each) => `  ${name}: ${each}`),
      ...rest,
    ];
  }
}

function verdictOf({ stations, failures }: DemoResult): string {
  const sum = (of: (findings: StationFindings) => readonly string[]): number =>
    stations.reduce((total, findings) => total + of(findings).length, 0);
  const parts = [
    [sum(({ lost }) => lost), "lost"],
    [sum(({ doubled }) => doubled), "doubled"],
    [sum(({ disorder }) => disorder), "out of order"],
    [failures.length, "failed"],
  ] as const;
  const told = parts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  return `A promise was broken: ${told.join(", ")}.`;
}

/** Joins words: "a, b and c". */
function listOf(words: readonly string[]): string {
  return [words.slice(0, -1).join(", "), ...words.slice(-1)].join(" and ");
}

function countOf(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
