// Which connection gives way when there is no room for a new one.
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { afterEach, expect, it, vi } from "vitest";
import { Connections } from "./connections.ts";

afterEach(() => void vi.useRealTimers());

let port = 0;
function newSocket(): Socket & { destroyed: boolean } {
  const socket = Object.assign(new EventEmitter(), {
    remoteAddress: "::1",
    remotePort: ++port,
    destroyed: false,
    destroy: () => void (socket.destroyed = true),
  });
  return socket as unknown as Socket & { destroyed: boolean };
}

it("an unsigned upload is closed before a fresh connection, and after an idle one", () => {
  vi.useFakeTimers({ now: 0 });
  const connections = new Connections(2);
  const [upload, fresh, next, last] = [newSocket(), newSocket(), newSocket(), newSocket()];
  connections.add(upload);
  connections.begin(upload);
  connections.giveWay(upload, true);
  connections.add(fresh);
  connections.add(next);
  expect([upload.destroyed, fresh.destroyed]).toEqual([true, false]);
  connections.begin(next);
  connections.giveWay(next, true);
  vi.setSystemTime(2_000);
  connections.add(last);
  expect([fresh.destroyed, next.destroyed]).toEqual([true, false]);
});
