// Processor time, user and system together, in microseconds. Of other processes in ticks of 10 ms, and on Linux only.
import { readFileSync } from "node:fs";

export function ownCpuUs() {
  const { user, system } = process.cpuUsage();
  return user + system;
}

export function cpuUsOf(pid) {
  return ticksOf(pid, 11);
}

/** Of all child processes that have ended. */
export function endedChildrenCpuUs() {
  return ticksOf("self", 13);
}

function ticksOf(pid, field) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[field]) + Number(fields[field + 1])) * 10_000;
}
