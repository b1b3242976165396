// The network of the bed: one bridge, the servers' address on it, and one tap for each guest. It
// lies in a namespace without any other interface.
import { networkInterfaces } from "node:os";
import { run } from "./command.ts";

/** Of the bed itself: the user-space servers listen here. */
export const bedAddress = "10.77.0.1";

export interface Tap {
  readonly device: string;
  readonly address: string;
  readonly mac: string;
}

export function buildNetwork(): void {
  const others = Object.keys(networkInterfaces()).filter((name) => name !== "lo");
  // Guests and servers here trust every peer, so no other machine may reach them.
  if (others.length > 0) throw new Error(`The bed must have a network of its own; this one has ${others.join(", ")}.`);
  run("ip link set lo up");
  run("ip link add br0 type bridge");
  run(`ip addr add ${bedAddress}/24 dev br0`);
  run("ip link set br0 up");
  switchOffloadsOff("br0");
}

/** For guest number 0, 1, 2 … */
export function addTap(number: number): Tap {
  const device = `tap${number}`;
  run(`ip tuntap add dev ${device} mode tap`);
  run(`ip link set ${device} master br0 up`);
  switchOffloadsOff(device);
  return { device, address: `10.77.0.${10 + number}`, mac: `02:00:00:00:77:${String(10 + number)}` };
}

/** Otherwise packets larger than the wire takes reach the guests, and long answers stall. */
function switchOffloadsOff(device: string): void {
  run(`ethtool -K ${device} tso off gso off gro off tx off sg off`);
}
