// The table of locks that a person reads: who holds what, since when and what for, and who waits
// for it.
import type { HolderInfo, LockMode } from "../../index.ts";
import type { BlockingLock, HeldLock } from "../../locks/index.ts";
import { printable, type Page } from "../output.ts";

const titles = ["path", "lock", "fence", "holder", "since", "for"] as const;
const gap = "  ";

export function formatHeldLocks(locks: readonly HeldLock[], { style }: Page): string {
  const rows = locks.map((lock) => [
    formatPath(lock.path),
    formatMode(lock),
    String(lock.fence),
    formatHolder(lock.holder),
    lock.since.toISOString(),
    printable(lock.tag ?? ""),
  ]);
  const widths = titles.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join(gap)
      .trimEnd();
  return [
    style("bold", line(titles)),
    ...rows.flatMap((row, index) => [line(row), ...formatWaiting(locks[index])]),
  ].join("\n");
}

export function formatStoreLock({ holder, since }: BlockingLock): string {
  return `The store lock is held by ${formatHolder(holder)}, since ${since.toISOString()}.`;
}

function formatWaiting(lock: HeldLock | undefined): string[] {
  return (lock?.waiting ?? []).map(
    ({ path, holder, since, ...claim }) =>
      `${gap}waits: ${formatHolder(holder)}, for ${formatPath(path)} (${formatMode(claim)}), since ${since.toISOString()}`,
  );
}

function formatMode({ mode, shared }: { readonly mode: LockMode; readonly shared: boolean }): string {
  return shared ? `${mode} shared` : mode;
}

function formatHolder({ name, pid, host, state }: HolderInfo): string {
  const named = name === undefined ? "" : ` (${printable(name)})`;
  return `${pid} on ${printable(host)}${named}${state === "alive" ? "" : `, ${state}`}`;
}

function formatPath(path: string): string {
  return path === "" ? "." : printable(path);
}
