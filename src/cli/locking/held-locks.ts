// The table of locks for people: who holds each lock, since when and what for, and who waits for
// it.
import type { HolderInfo, LockMode } from "../../index.ts";
import type { BlockingLock, HeldLock, SemaphoreHolder } from "../../locks/index.ts";
import { printable, type Page } from "../output.ts";
import { formatTable } from "../table.ts";

const titles = ["path", "lock", "fence", "holder", "since", "for"] as const;
const gap = "  ";

export function formatHeldLocks(locks: readonly HeldLock[], page: Page): string {
  const rows = locks.map((lock) => [
    formatPath(lock.path),
    formatMode(lock),
    String(lock.fence),
    formatHolder(lock.holder),
    lock.since.toISOString(),
    printable(lock.tag ?? ""),
  ]);
  const [head = "", ...lines] = formatTable(titles, rows, page);
  return [head, ...lines.flatMap((line, index) => [line, ...formatWaiting(locks[index])])].join("\n");
}

export function formatStoreLock({ holder, since }: BlockingLock): string {
  return `The store lock is held by ${formatHolder(holder)}, since ${since.toISOString()}.`;
}

/**
 * True for the lock of a user. The leases of parts have names that begin with a slash, which no
 * path does.
 */
export function isOfUser({ path }: Pick<HeldLock, "path">): boolean {
  return !path.startsWith("/");
}

export function formatSemaphore({ path, holder, since, tag, why }: SemaphoreHolder): string {
  const purpose = tag === undefined ? "" : ` (${printable(tag)})`;
  const where = holder.host === "" ? "" : ` on ${printable(holder.host)}`;
  const who = `process ${holder.pid}${where}, since ${since.toISOString()}${purpose}`;
  return `The semaphore file ${printable(path)} names ${who}: ${printable(why)}.`;
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

export function formatHolder({ name, pid, host, state }: HolderInfo): string {
  const named = name === undefined ? "" : ` (${printable(name)})`;
  return `${pid} on ${printable(host)}${named}${state === "alive" ? "" : `, ${state}`}`;
}

function formatPath(path: string): string {
  return path === "" ? "." : printable(path);
}
