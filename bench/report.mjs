// What a run says: a table for each group, in which every row with a target says whether this run
// met it.
import { median, ratioOf } from "./measure.mjs";

/** Rows of a name, figures that stand below each other, and notes. */
export function printTable(title, rows) {
  console.log(`\n${title}`);
  const nameWidth = Math.max(44, ...rows.map(({ name }) => name.length));
  const widths = [];
  for (const { figures } of rows)
    for (const [column, figure] of figures.entries()) widths[column] = Math.max(widths[column] ?? 0, figure.length);
  for (const { name, figures, notes = [] } of rows) {
    const cells = figures.map((figure, column) => figure.padStart(widths[column]));
    console.log(`  ${[name.padEnd(nameWidth), ...cells, ...notes].join("  ").trimEnd()}`);
  }
}

/** Calls per second beside those of the baseline. */
export function printRates({ title, baseline, contenders }, results) {
  const rows = contenders.map(({ name, targets = [] }) => {
    const result = results.get(name);
    const figures = [
      ratio(ratioOf(result, results.get(baseline))),
      `${Math.round(median(result.rates))}/s`,
      `${Math.round(result.cpuUs / result.calls)} µs CPU`,
    ];
    return { name, figures, notes: [result.operations, ...targets.map((target) => judge(target, results, name))] };
  });
  printTable(`${title} (ratio to: ${baseline})`, rows);
}

export function ratio(value) {
  return `${value.toFixed(2)} ×`;
}

export function verdict(target, isMet) {
  return `[target ${target}: ${isMet ? "met" : "missed"}]`;
}

function judge({ ratioMin, of, operationsMax }, results, name) {
  const { operationsTotal } = results.get(name);
  if (operationsMax !== undefined)
    return verdict(`≤ ${operationsMax} operations, ${operationsTotal} counted`, operationsTotal <= operationsMax);
  const actual = ratioOf(results.get(name), results.get(of));
  return verdict(`≥ ${ratioMin} × ${of}, is ${actual.toFixed(2)} ×`, actual >= ratioMin);
}
