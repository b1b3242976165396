// How the harness's commands read whole numbers and lay out tables.
import { InvalidArgumentError } from "commander";

export function parseCount(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("Write a whole number.");
  return Number(text);
}

/** Like `parseCount`, but refuses 0. */
export function parseAtLeastOne(text: string): number {
  const count = parseCount(text);
  if (count === 0) throw new InvalidArgumentError("Write a whole number from 1.");
  return count;
}

/**
 * Returns a table of text. The first column is left-aligned; the others, mostly numbers, are
 * right-aligned.
 */
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
