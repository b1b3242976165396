// A table for people: titles in bold, columns as wide as their longest cell.
import type { Page } from "./output.ts";

const gap = "  ";

/** One line for the titles, then one for each row. */
export function formatTable(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  { style }: Pick<Page, "style">,
): string[] {
  const widths = titles.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join(gap)
      .trimEnd();
  return [style("bold", line(titles)), ...rows.map(line)];
}
