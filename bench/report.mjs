// What a run says: a table in Markdown for each group, and one of all rates at the end. Everything printed is also
// recorded. Every row with a target says whether this run met it.
import { cpuRatioOf, median, ratioOf } from "./measure.mjs";
import { recorder } from "./result.mjs";

/** Rows of a name, figures that stand below each other under `headings`, and notes. */
export function printTable(title, rows, headings = []) {
  const written = rows.map(({ name, figures, notes = [] }) => ({ name, figures, notes: notes.filter(Boolean) }));
  recorder.addTable({ title, headings, rows: written });
  const columns = Math.max(headings.length, ...rows.map(({ figures }) => figures.length));
  const padded = (cells) => Array.from({ length: columns }, (_, column) => cells[column] ?? "");
  console.log(`\n### ${title}\n\n${markdownTable(["what", ...padded(headings), "notes"], written.map(({ name, figures, notes }) => [name, ...padded(figures), notes.join("; ")]))}`); // prettier-ignore
}

/** Calls per second and processor time of a call, beside those of the baseline. */
export function printRates({ title, baseline, contenders }, results) {
  const base = results.get(baseline);
  const rows = contenders.map(({ name, notes = [], targets = [] }) => {
    const result = results.get(name);
    return {
      name,
      rateRatio: rounded(ratioOf(result, base)),
      cpuRatio: rounded(cpuRatioOf(result, base)),
      rate: rounded(median(result.rates)),
      cpuUs: rounded(result.cpuUs / result.calls),
      operations: result.operations ?? "",
      notes: [...notes, ...targets.map((target) => judge(target, results, name))].filter(Boolean),
    };
  });
  recorder.addComparison({ title, baseline, rows });
  console.log(`\n### ${title} (ratios to: ${baseline})\n\n${markdownTable(rateHeadings, rows.map(cellsOfRate))}`);
}

/** Of a row that is compared with another: how fast it is by the clock, and what it costs of a core. */
export const rateHeadings = ["what", "rate, ×", "CPU, ×", "rate", "CPU", "operations", "notes"];

export function cellsOfRate({ name, rateRatio, cpuRatio, rate, cpuUs, operations, notes }) {
  return [
    name,
    cell(rateRatio, ratio),
    cell(cpuRatio, ratio),
    cell(rate, (value) => `${Math.round(value).toLocaleString("en")}/s`),
    cell(cpuUs, (value) => `${Math.round(value).toLocaleString("en")} µs`),
    operations,
    notes.join("; "),
  ];
}

/** All rates of a run in one table. Each comparison begins with what it compares, and then its peer. */
export function tableOfRates(comparisons) {
  const rows = comparisons.flatMap(({ title, baseline, rows: all }) => {
    const isPeer = ({ name }) => name === baseline;
    const ordered = [...all.filter(isPeer), ...all.filter((row) => !isPeer(row))];
    return [[`**${title}**`, ...rateHeadings.slice(1).fill("")], ...ordered.map(cellsOfRate)];
  });
  return markdownTable(rateHeadings, rows);
}

export function markdownTable(headings, rows) {
  const escaped = rows.map((cells) => cells.map((cell) => String(cell).replaceAll("|", "\\|")));
  const widths = headings.map((_, column) =>
    Math.max(3, ...[headings, ...escaped].map((cells) => cells[column].length)),
  );
  const line = (cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column])).join(" | ")} |`;
  return [headings, widths.map((width) => "-".repeat(width)), ...escaped].map(line).join("\n");
}

export function ratio(value) {
  return `${value.toFixed(2)} ×`;
}

export function verdict(target, isMet) {
  return `target ${target}: ${isMet ? "met" : "missed"}`;
}

/** Four digits: more are noise. Null if a round was too short for a single call or tick: JSON has no infinity. */
function rounded(value) {
  return Number.isFinite(value) ? Number(value.toPrecision(4)) : null;
}

function cell(value, print) {
  return value === null ? "–" : print(value);
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
