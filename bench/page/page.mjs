// The generated blocks of docs/benchmarks.md, from one result. Prose around them is written by people.
import { markdownTable, ratio, tableOfRates } from "../report.mjs";

/** Before the first result was recorded. */
export const noRun = "No run is recorded here yet. The tables below are from the runs that they name.";

export function curveName(part) {
  return `growth-${part}.svg`;
}

/** The text of each block, by name. */
export function blocksFor(result) {
  if (result === undefined) return { run: noRun, rates: "", growth: "" };
  return {
    run: describeRun(result),
    rates: tableOfRates(result.comparisons),
    growth: result.curves.map(describeCurve).join("\n\n"),
  };
}

function describeRun({ date, command, isQuick, machine, versions }) {
  const { processor, cores, memoryGb, system, fileSystem, load } = machine;
  const list = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const facts = [
    ["date", date.slice(0, 10)],
    ["command", `\`${command}\``],
    ["machine", `${processor}, ${cores} cores, ${memoryGb} GB, ${system}, ${fileSystem}; load at the start ${load}`],
    ["versions", list.join(", ")],
  ];
  const warning = isQuick ? "**A quick run: its figures mean nothing.**\n\n" : "";
  return warning + markdownTable(["run", ""], facts);
}

function describeCurve({ part, unit, calls }) {
  const sizes = calls[0].points.map(({ size }) => `${size.toLocaleString("en")} ${unit}`);
  const rows = calls.map(({ name, points }) => [
    name,
    ...points.map(({ cpuUs, ms }) => `${Math.round(cpuUs).toLocaleString("en")} µs, ${ms.toFixed(2)} ms`),
    ratio(points.at(-1).cpuUs / points[0].cpuUs),
  ]);
  const table = markdownTable([`${part}: CPU, time`, ...sizes, "CPU, last ÷ first"], rows);
  return `![${part}: CPU of a call, by the number of ${unit}](images/${curveName(part)})\n\n${table}`;
}
