// The agent in a guest: takes orders over the one connection that is never cut, runs scripts and
// commands, and passes on what they say.
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { createServer, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { agentPort, type AgentOrder, type AgentReport } from "./agent-protocol.ts";

const outputBytesMax = 16 * 1024 * 1024;

// The first process of a machine: when it ends, the machine does.
process.on("uncaughtException", (error) => console.error(error));
createServer((socket) => serve(socket)).listen(agentPort, "0.0.0.0");

function serve(socket: Socket): void {
  socket.setNoDelay(true);
  // The bed is gone or has given this guest up; it ends the guest by itself.
  socket.on("error", () => socket.destroy());
  const children = new Map<number, ChildProcess>();
  const tell = (report: AgentReport): void => void socket.write(`${JSON.stringify(report)}\n`);
  createInterface({ input: socket }).on("line", (line) => {
    const order = JSON.parse(line) as AgentOrder;
    if (order.order === "start") children.set(order.id, start(order, tell));
    else if (order.order === "clock") tell({ id: order.id, kind: "clock", ms: Number(process.hrtime.bigint()) / 1e6 });
    else if (order.order === "signal") children.get(order.id)?.kill(order.signal);
    else if (order.order === "send") children.get(order.id)?.send(order.message as object, () => undefined);
    else
      execFile("/bin/sh", ["-c", order.command], { maxBuffer: outputBytesMax }, (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === "number" ? error.code : 1;
        tell({ id: order.id, kind: "ran", code, stdout, stderr });
      });
  });
}

function start(order: AgentOrder & { order: "start" }, tell: (report: AgentReport) => void): ChildProcess {
  const { id, module, args, env } = order;
  const child = spawn(process.execPath, [module, ...args], {
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    env: { ...process.env, ...env },
  });
  if (child.stdout !== null)
    createInterface({ input: child.stdout }).on("line", (line) => tell({ id, kind: "line", line }));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => tell({ id, kind: "stderr", text }));
  child.once("error", (error) => tell({ id, kind: "stderr", text: String(error) }));
  child.once("close", (code, signal) => tell({ id, kind: "end", code, signal }));
  return child;
}
