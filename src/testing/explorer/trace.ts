// A schedule in readable form: what each actor did, in which order, and which answer it received.

/** One step of a schedule. */
export interface TraceRow {
  /** The name of the actor. */
  readonly actor: string;
  /** The operation, such as "link". */
  readonly operation: string;
  /** Paths and values of the operation, for people. */
  readonly detail: string;
  /** How it differed from an ordinary success or failure; empty if it did not. */
  readonly label: string;
  /** The answer that the actor received. */
  readonly seen: string;
}

/** Formats a trace as a table with one row a step. Long random names are shortened to their last letters. */
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
