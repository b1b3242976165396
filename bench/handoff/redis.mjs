// BullMQ on a Redis server of its own that syncs each write before it answers.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { cpuUsOf, ownCpuUs } from "../cpu.mjs";
import { batch, message } from "./contestants.mjs";

/** Says what is missing when Redis or BullMQ is not installed. */
export async function openBullMq(directory) {
  const bullmq = await import("bullmq").catch(() => undefined);
  if (bullmq === undefined) return { missing: "BullMQ (npm ci in bench/ did not install it)" };
  mkdirSync(directory, { recursive: true });
  const socket = `${directory}/redis.sock`;
  const options = ["--port", "0", "--unixsocket", socket, "--dir", directory, "--save", "", "--appendonly", "yes"];
  const server = spawn("redis-server", [...options, "--appendfsync", "always"], { stdio: "ignore" });
  const failed = await Promise.race([once(server, "error").then(() => true), once(server, "spawn").then(() => false)]);
  if (failed) return { missing: "BullMQ: redis-server is not installed" };
  // Also when the run fails.
  process.once("exit", () => server.kill());
  const connection = { path: socket, maxRetriesPerRequest: null };
  const queue = new bullmq.Queue("invoices", { connection });
  await Promise.race([queue.waitUntilReady(), sleep(10_000).then(() => Promise.reject(new Error("Redis is silent.")))]);
  const worker = new bullmq.Worker("invoices", null, { connection, autorun: false });
  await worker.waitUntilReady();
  const job = () => ({ name: "invoice", data: { message } });
  return {
    name: "BullMQ, Redis appendfsync=always",
    /** Of the client and of the server. */
    cpuUs: () => ownCpuUs() + cpuUsOf(server.pid),
    publish: () => queue.add("invoice", { message }),
    publishBatch: () => queue.addBulk(Array.from({ length: batch }, job)),
    consume: async () => {
      const next = await worker.getNextJob("bench", { block: false });
      if (next === undefined) return false;
      await next.moveToCompleted({ isBooked: true }, "bench", false);
      return true;
    },
    drain: async (count, concurrency) => {
      let left = count;
      await new Promise((resolve, reject) => {
        const running = new bullmq.Worker(
          "invoices",
          async () => {
            if (--left === 0) setImmediate(() => void running.close().then(resolve, reject));
            return { isBooked: true };
          },
          { connection, concurrency },
        );
        running.on("error", reject);
      });
    },
    close: async () => {
      await worker.close();
      await queue.close();
      server.kill();
      await once(server, "exit");
    },
  };
}
