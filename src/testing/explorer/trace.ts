// A schedule as people read it: what each actor did, in which order, and what it was answered.

export interface TraceRow {
  readonly actor: string;
  readonly operation: string;
  readonly detail: string;
  /** How it differed from an ordinary success or failure. */
  readonly label: string;
  readonly seen: string;
}

/** A table with one row a step. Long random names are cut: the first letters tell them apart. */
export function formatTrace(rows: readonly TraceRow[]): string {
  const cells = rows.map(({ actor, operation, detail, label, seen }, index) => [
    String(index + 1),
    actor,
    operation,
    shortNames(detail),
    [shortNames(seen), label === "" ? "" : `(${label})`].filter((part) => part !== "").join(" "),
  ]);
  const table = [["step", "actor", "operation", "on", "answer"], ...cells];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...table.map((row) => (row[column] ?? "").length)));
  return table
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function shortNames(text: string): string {
  return text.replace(/\b[0-9a-hjkmnp-tv-z]{20,}\b/g, (name) => name.slice(-6));
}
