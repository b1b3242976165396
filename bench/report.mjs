// What a run says: a table in Markdown for each group, as docs/benchmarks.md has them. Every row with
// a target says whether this run met it.
import { cpuRatioOf, median, ratioOf } from "./measure.mjs";

/** Rows of a name, figures that stand below each other under `headings`, and notes. */
export function printTable(title, rows, headings = []) {
  const columns = Math.max(headings.length, ...rows.map(({ figures }) => figures.length));
  const cellsOf = ({ name, figures, notes = [] }) => [
    name,
    ...Array.from({ length: columns }, (_, column) => figures[column] ?? ""),
    notes.filter((note) => note !== "").join("; "),
  ];
  const lines = [
    ["what", ...Array.from({ length: columns }, (_, column) => headings[column] ?? ""), "notes"],
    ...rows.map(cellsOf),
  ];
  const widths = lines[0].map((_, column) => Math.max(3, ...lines.map((cells) => cells[column].length)));
  const print = (cells) => console.log(`| ${cells.map((cell, column) => cell.padEnd(widths[column])).join(" | ")} |`);
  console.log(`\n### ${title}\n`);
  print(lines[0]);
  print(widths.map((width) => "-".repeat(width)));
  for (const cells of lines.slice(1)) print(cells);
}

/** Calls per second and processor time of a call, beside those of the baseline. */
export function printRates({ title, baseline, contenders }, results) {
  const base = results.get(baseline);
  const rows = contenders.map(({ name, targets = [] }) => {
    const result = results.get(name);
    const figures = [
      ratio(ratioOf(result, base)),
      ratio(cpuRatioOf(result, base)),
      `${Math.round(median(result.rates))}/s`,
      `${Math.round(result.cpuUs / result.calls)} µs`,
    ];
    return { name, figures, notes: [result.operations, ...targets.map((target) => judge(target, results, name))] };
  });
  printTable(`${title} (ratios to: ${baseline})`, rows, rateHeadings);
}

/** Of a row that is compared with another: how fast it is by the clock, and what it costs of a core. */
export const rateHeadings = ["rate, ×", "CPU, ×", "rate", "CPU"];

export function ratio(value) {
  return `${value.toFixed(2)} ×`;
}

export function verdict(target, isMet) {
  return `target ${target}: ${isMet ? "met" : "missed"}`;
}

/** A target is a rate, or a processor time, as a ratio to another contender; or a number of operations. */
function judge({ ratioMin, cpuMax, of, operationsMax }, results, name) {
  const { operationsTotal } = results.get(name);
  if (operationsMax !== undefined)
    return verdict(`≤ ${operationsMax} operations, ${operationsTotal} counted`, operationsTotal <= operationsMax);
  if (!results.has(of)) return "";
  if (cpuMax !== undefined) {
    const cost = cpuRatioOf(results.get(name), results.get(of));
    return verdict(`≤ ${cpuMax} × CPU of ${of}, is ${cost.toFixed(2)}`, cost <= cpuMax);
  }
  const actual = ratioOf(results.get(name), results.get(of));
  return verdict(`≥ ${ratioMin} × ${of}, is ${actual.toFixed(2)}`, actual >= ratioMin);
}
