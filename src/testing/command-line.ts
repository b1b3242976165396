// How the harness's commands read whole numbers and lay out tables.
import { InvalidArgumentError } from "commander";

export function parseCount(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("Write a whole number.");
  return Number(text);
}

/** As `parseCount`, for what makes no sense without any. */
export function parseAtLeastOne(text: string): number {
  const count = parseCount(text);
  if (count === 0) throw new InvalidArgumentError("Write a whole number from 1.");
  return count;
}

/** Columns of text; the first to the left, the others, mostly numbers, to the right. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
