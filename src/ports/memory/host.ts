// The host of a world in memory: one process, alone, which ends with its world.
import type { Host } from "../host.ts";
import type { Clock } from "../clock.ts";
import type { Random } from "../random.ts";

export function createMemoryHost({ clock, random }: { clock: Clock; random: Random }, warn: Host["warn"]): Host {
  const hex = Buffer.from(random.bytes(16)).toString("hex");
  return {
    name: "memory",
    pid: 1,
    bootId: `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`,
    processSpace: "",
    startedAtMs: Math.round(clock.wallMs()),
    startMark: hex,
    processState: (pid, startMark) => (pid === 1 && startMark === hex ? "alive" : "dead"),
    startMarkOf: (pid) => (pid === 1 ? hex : ""),
    findStartMs: () => undefined,
    warn,
  };
}
